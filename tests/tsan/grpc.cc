// SPDX-License-Identifier: Apache-2.0
//
// Tells ThreadSanitizer what gRPC orders between threads: what was done before a batch of
// operations began comes before what is done once its tag came back; and a server outlives its
// calls, so what their reactors did comes before what follows its end. Debian's gRPC is not
// instrumented, so without this the fields of each reactor look like races. The names are those of
// tests/tsan/BUILD.bazel; in a program without gRPC the originals are null and nobody calls these.
#include <grpc/grpc.h>
#include <sanitizer/tsan_interface.h>

#include <cstddef>

namespace {

// What every call's end releases and every server's end acquires.
char ended_calls;

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's --wrap wants these names
extern "C" {

[[gnu::weak]] grpc_call_error __real_grpc_call_start_batch(grpc_call* call, const grpc_op* ops,
                                                           size_t count, void* tag, void* reserved);
[[gnu::weak]] void __real_grpc_call_unref(grpc_call* call);
[[gnu::weak]] void __real_grpc_server_destroy(grpc_server* server);
[[gnu::weak]] grpc_event __real_grpc_completion_queue_next(grpc_completion_queue* queue,
                                                           gpr_timespec deadline, void* reserved);
[[gnu::weak]] grpc_event __real_grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                                            gpr_timespec deadline, void* reserved);

grpc_call_error __wrap_grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count,
                                             void* tag, void* reserved) {
  __tsan_release(tag);
  return __real_grpc_call_start_batch(call, ops, count, tag, reserved);
}

// gRPC's C++ gives a call back after its reactor's OnDone.
void __wrap_grpc_call_unref(grpc_call* call) {
  __tsan_release(&ended_calls);
  __real_grpc_call_unref(call);
}

void __wrap_grpc_server_destroy(grpc_server* server) {
  __tsan_acquire(&ended_calls);
  __real_grpc_server_destroy(server);
}

grpc_event __wrap_grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                             void* reserved) {
  const grpc_event event = __real_grpc_completion_queue_next(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

grpc_event __wrap_grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                              gpr_timespec deadline, void* reserved) {
  const grpc_event event = __real_grpc_completion_queue_pluck(queue, tag, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(tag);
  return event;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
