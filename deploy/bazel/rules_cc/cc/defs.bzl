"""Bazel's own C++ rules under the name @rules_cc: Debian's rules_cc is too new for Debian's Bazel."""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
objc_library = native.objc_library
fdo_profile = native.fdo_profile
fdo_prefetch_hints = native.fdo_prefetch_hints
cc_toolchain_alias = native.cc_toolchain_alias
cc_host_toolchain_alias = native.cc_host_toolchain_alias
cc_libc_top_alias = native.cc_libc_top_alias
