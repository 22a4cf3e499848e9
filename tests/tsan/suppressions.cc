// SPDX-License-Identifier: Apache-2.0
//
// What ThreadSanitizer is told to overlook: each line with the reason why it cannot be our race.
#include <sanitizer/tsan_interface.h>

// NOLINTBEGIN(bugprone-reserved-identifier): the runtime's names for them
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_options();

extern "C" const char* __tsan_default_suppressions() {
  return
      // libstdc++ 12's std::atomic<std::shared_ptr> ends a load by a relaxed unlock, which orders
      // nothing by the letter. The load holds its lock bit while it reads, so a store waits for it.
      "race:bits/shared_ptr_atomic.h\n"
      // gRPC takes a call apart, and has its reactor do so in OnDone, once all reactions have
      // returned. It counts them partly in its own code, which is not instrumented.
      "race:grpc::internal::*::CallOnDone\n"
      // A reactor gives up its Outbox there; whoever has it last destroys it after that.
      "race:phobos::rpc::Outbox::~Outbox\n"
      // gRPC joins a thread that its server no longer needs when the next one ends: a process that
      // ends before has not leaked it.
      "thread:grpc_core::Thread::Thread\n";
}

// A kernel that faults ends its worker by the signal, as without a sanitizer. The memcpy of
// Debian's libraries is intercepted, but what orders it is not seen: calls of memcpy, free and the
// like are no accesses, in our code neither. A report ends its process: that of a daemon is in the
// log of a cache which is gone after the test.
extern "C" const char* __tsan_default_options() {
  return "handle_segv=0:ignore_interceptors_accesses=1:halt_on_error=1";
}
// NOLINTEND(bugprone-reserved-identifier)
