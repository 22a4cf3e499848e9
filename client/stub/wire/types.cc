// SPDX-License-Identifier: Apache-2.0
#include "client/stub/wire/types.h"

namespace phobos {

int64_t ElementBytes(DType dtype) {
  switch (dtype) {
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return 1;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16:
    case DType::kU16:
      return 2;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kF64:
    case DType::kI64:
    case DType::kU64:
      return 8;
    case DType::kUnspecified:
      break;
  }
  return 0;
}

}  // namespace phobos
