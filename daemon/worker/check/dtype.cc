// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/check/dtype.h"

namespace phobos::worker {

int64_t ElementBytes(compiler::v1::DType dtype) {
  switch (dtype) {
    case compiler::v1::DTYPE_I8:
    case compiler::v1::DTYPE_U8:
    case compiler::v1::DTYPE_BOOL:
      return 1;
    case compiler::v1::DTYPE_F16:
    case compiler::v1::DTYPE_BF16:
    case compiler::v1::DTYPE_I16:
    case compiler::v1::DTYPE_U16:
      return 2;
    case compiler::v1::DTYPE_F32:
    case compiler::v1::DTYPE_I32:
    case compiler::v1::DTYPE_U32:
      return 4;
    case compiler::v1::DTYPE_F64:
    case compiler::v1::DTYPE_I64:
    case compiler::v1::DTYPE_U64:
      return 8;
    default:
      return 0;
  }
}

}  // namespace phobos::worker
