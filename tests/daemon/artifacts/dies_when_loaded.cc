// SPDX-License-Identifier: Apache-2.0
//
// A shared object that ends whatever process loads it.
namespace {

__attribute__((constructor)) void Die() { *reinterpret_cast<volatile int*>(16) = 1; }

}  // namespace

extern "C" __attribute__((visibility("default"))) void add() {}
