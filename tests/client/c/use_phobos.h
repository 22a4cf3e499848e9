// SPDX-License-Identifier: Apache-2.0
//
// The part of the test of the C ABI that is C. One thread.
#ifndef PHOBOS_TESTS_CLIENT_C_USE_PHOBOS_H_
#define PHOBOS_TESTS_CLIENT_C_USE_PHOBOS_H_

#ifdef __cplusplus
extern "C" {
#endif

// Goes through the whole C ABI against the tuner at `socket`; gives the number of failures, each
// told on stderr.
int UsePhobos(const char* socket, const char* source);

#ifdef __cplusplus
}
#endif

#endif  // PHOBOS_TESTS_CLIENT_C_USE_PHOBOS_H_
