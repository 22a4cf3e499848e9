// SPDX-License-Identifier: Apache-2.0
//
// lld's driver initializes every target that LLVM was built with, and the pass plugins that
// Debian's build names. What is not linked into this compiler is defined here as nothing: it keeps
// 60 MiB of other machines' back ends out.
#include "llvm/Passes/PassPlugin.h"

#define PHOBOS_ABSENT_TARGET(target)                      \
  extern "C" void LLVMInitialize##target##Target();       \
  extern "C" void LLVMInitialize##target##Target() {}     \
  extern "C" void LLVMInitialize##target##TargetInfo();   \
  extern "C" void LLVMInitialize##target##TargetInfo() {} \
  extern "C" void LLVMInitialize##target##TargetMC();     \
  extern "C" void LLVMInitialize##target##TargetMC() {}   \
  extern "C" void LLVMInitialize##target##AsmPrinter();   \
  extern "C" void LLVMInitialize##target##AsmPrinter() {} \
  extern "C" void LLVMInitialize##target##AsmParser();    \
  extern "C" void LLVMInitialize##target##AsmParser() {}

PHOBOS_ABSENT_TARGET(AArch64)
PHOBOS_ABSENT_TARGET(AMDGPU)
PHOBOS_ABSENT_TARGET(ARM)
PHOBOS_ABSENT_TARGET(AVR)
PHOBOS_ABSENT_TARGET(BPF)
PHOBOS_ABSENT_TARGET(Hexagon)
PHOBOS_ABSENT_TARGET(Lanai)
PHOBOS_ABSENT_TARGET(LoongArch)
PHOBOS_ABSENT_TARGET(M68k)
PHOBOS_ABSENT_TARGET(MSP430)
PHOBOS_ABSENT_TARGET(Mips)
PHOBOS_ABSENT_TARGET(PowerPC)
PHOBOS_ABSENT_TARGET(RISCV)
PHOBOS_ABSENT_TARGET(Sparc)
PHOBOS_ABSENT_TARGET(SystemZ)
PHOBOS_ABSENT_TARGET(VE)
PHOBOS_ABSENT_TARGET(WebAssembly)
PHOBOS_ABSENT_TARGET(XCore)
PHOBOS_ABSENT_TARGET(Xtensa)

llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "absent", "", nullptr};
}
