// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cuda/kernels.h"

namespace phobos::device {

// PTX 6.3 is the oldest version that knows sm_75, so that no driver we take is too old for it.
const char kOwnPtx[] = R"(// phobos-tuner: the worker's own kernels
.version 6.3
.target sm_75
.address_size 64

.visible .entry phobos_nothing()
{
  ret;
}

.visible .entry phobos_first_difference(
  .param .u64 a,
  .param .u64 b,
  .param .u64 count,
  .param .u64 first
)
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<20>;

  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [count];
  ld.param.u64 %rd4, [first];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  cvta.to.global.u64 %rd4, %rd4;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  cvt.u64.u32 %rd5, %r3;
  mul.wide.u32 %rd6, %r1, %r2;
  add.s64 %rd5, %rd5, %rd6;
  mul.wide.u32 %rd6, %r2, %r4;
again:
  setp.ge.u64 %p1, %rd5, %rd3;
  @%p1 bra done;
  shl.b64 %rd7, %rd5, 4;
  add.s64 %rd8, %rd1, %rd7;
  add.s64 %rd9, %rd2, %rd7;
  ld.global.v2.u64 {%rd10, %rd11}, [%rd8];
  ld.global.v2.u64 {%rd12, %rd13}, [%rd9];
  xor.b64 %rd14, %rd10, %rd12;
  xor.b64 %rd15, %rd11, %rd13;
  or.b64 %rd16, %rd14, %rd15;
  setp.ne.u64 %p2, %rd16, 0;
  @%p2 bra found;
  add.s64 %rd5, %rd5, %rd6;
  bra again;
found:
  atom.global.min.u64 %rd17, [%rd4], %rd5;
done:
  ret;
}
)";

}  // namespace phobos::device
