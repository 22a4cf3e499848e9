// SPDX-License-Identifier: Apache-2.0
//
// The values that the C face gives out as JSON, by convention 7 of phobos.h. Pure, any thread.
#ifndef PHOBOS_CLIENT_C_JSON_H_
#define PHOBOS_CLIENT_C_JSON_H_

#include <string>
#include <vector>

#include "client/cpp/plan/plan.h"
#include "client/stub/daemon.h"
#include "client/stub/wire/types.h"

namespace phobos::json {

// {"BLOCK":256,"PRECISION":"tf32"}
std::string Settings(const std::vector<Constant>& settings);
std::string Description(const KernelDescription& description);
std::string ResultText(const Result& result, bool cached);
std::string Variants(const std::vector<VariantResult>& variants);
std::string PlanText(const Plan& plan);
std::string Hello(const stub::Link& link);

}  // namespace phobos::json

#endif  // PHOBOS_CLIENT_C_JSON_H_
