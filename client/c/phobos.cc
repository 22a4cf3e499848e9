// SPDX-License-Identifier: Apache-2.0
//
// The C face: every function turns C's values into those of client/cpp, calls, and turns the answer
// back.
#include "client/c/phobos.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/version.h"
#include "client/c/json.h"
#include "client/cpp/client.h"
#include "client/cpp/gpu/gpu.h"
#include "client/cpp/plan/plan.h"
#include "client/cpp/plan_source.h"
#include "client/cpp/text.h"
#include "client/cpp/tune/tune.h"
#include "client/stub/wire/codec.h"
#include "client/stub/wire/words.h"

struct phobos_client {
  std::shared_ptr<phobos::Client> client;
};

struct phobos_kernel {
  std::shared_ptr<phobos::PlanSource> plans;
};

struct phobos_plan {
  std::shared_ptr<const phobos::Plan> plan;
};

struct phobos_result {
  phobos::Result result;
  bool cached = false;
  std::string bytes;
};

struct phobos_sink {
  std::string message;
};

struct phobos_expected {
  phobos::ReferenceCall* call = nullptr;
};

namespace {

// As much as the wire carries (client/stub/stream.cc).
constexpr size_t kLongestResult = 32 << 20;

using phobos::Code;
using phobos::ErrorDetail;
using phobos::Status;
using phobos::StatusOr;

// An error with the texts that it points at.
struct OwnedError : phobos_error {
  std::string reason_text, message_text, kernel_text, key_text, remedy_text, variants_text;
};

phobos_code Fail(const Status& status, phobos_error** error) {
  if (error == nullptr) return static_cast<phobos_code>(status.code());
  auto owned = std::make_unique<OwnedError>();
  const ErrorDetail none;
  const ErrorDetail& detail = status.detail() == nullptr ? none : *status.detail();
  owned->code = static_cast<phobos_code>(status.code());
  owned->reason_text = phobos::stub::Word(detail.reason);
  // Paths and names of the caller's, which need not be UTF-8, stand in some of them.
  owned->message_text = phobos::Utf8Of(status.message());
  owned->kernel_text = phobos::Utf8Of(detail.kernel);
  owned->key_text = phobos::Utf8Of(detail.key);
  owned->remedy_text = phobos::Utf8Of(detail.remedy);
  owned->variants_text = phobos::json::Variants(detail.variants);
  owned->reason = owned->reason_text.c_str();
  owned->message = owned->message_text.c_str();
  owned->kernel = owned->kernel_text.c_str();
  owned->key = owned->key_text.c_str();
  owned->remedy = owned->remedy_text.c_str();
  owned->variants_json = owned->variants_text.c_str();
  *error = owned.release();
  return (*error)->code;
}

phobos_code Missing(const char* what, phobos_error** error) {
  return Fail(Status(Code::kInvalidArgument, std::string(what) + " is NULL"), error);
}

// Sets an out-value to nothing; what a call begins with.
template <typename T>
void Clear(T** out) {
  if (out != nullptr) *out = nullptr;
}

char* CopyText(const std::string& text) {
  char* copy = static_cast<char*>(malloc(text.size() + 1));
  if (copy != nullptr) memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

std::string TextOf(const char* text) { return text == nullptr ? "" : text; }

// The caller's struct as of his header's version; what he does not know of is zero.
template <typename Struct>
Struct ReadStruct(const Struct* theirs) {
  Struct ours = {};
  if (theirs != nullptr) memcpy(&ours, theirs, std::min(theirs->struct_bytes, sizeof(ours)));
  return ours;
}

// The count, which `what` names, is looked at before the array is.
template <typename T>
StatusOr<std::vector<T>> Values(const char* what, const T* values, int32_t count) {
  if (count < 0 || count > PHOBOS_MOST_PARAMETERS) {
    return Status(Code::kInvalidArgument, std::string(what) + " is " + std::to_string(count) +
                                              "; it must be 0 to " +
                                              std::to_string(PHOBOS_MOST_PARAMETERS));
  }
  return values == nullptr ? std::vector<T>() : std::vector<T>(values, values + count);
}

StatusOr<std::vector<int64_t>> Extents(const int64_t* extents, int32_t count) {
  return Values("extent_count", extents, count);
}

std::optional<double> OptionalOf(const double* value) {
  return value == nullptr ? std::nullopt : std::optional<double>(*value);
}

// What a callback that failed said, or that it said nothing.
Status Failure(const phobos_sink& sink, const char* who) {
  if (sink.message.empty()) return Status(Code::kUnknown, std::string(who) + " failed");
  return Status(Code::kUnknown, phobos::Utf8Of(sink.message));  // it goes to the daemon
}

phobos::TuneCallbacks CallbacksOf(const phobos_tune_request& request) {
  phobos::TuneCallbacks callbacks;
  void* const user = request.user;
  callbacks.grid = [user, function = request.grid](
                       int32_t variant,
                       const std::vector<phobos::Constant>& settings) -> StatusOr<phobos::Grid> {
    phobos_sink sink;
    int64_t grid[3] = {1, 1, 1};
    if (function(user, variant, phobos::json::Settings(settings).c_str(), grid, &sink) != 0) {
      return Failure(sink, "the grid function");
    }
    return phobos::Grid{grid[0], grid[1], grid[2]};
  };
  if (request.reference != nullptr) {
    callbacks.reference = [user, function = request.reference](phobos::ReferenceCall& call) {
      phobos_sink sink;
      phobos_expected expected = {&call};
      if (function(user, call.arguments().data(), &expected, &sink) == 0) return Status();
      return Failure(sink, "the reference");
    };
  }
  if (request.memory != nullptr) {
    callbacks.memory = [user, function = request.memory](size_t parameter, int64_t bytes) {
      return function(user, static_cast<int32_t>(parameter), static_cast<size_t>(bytes));
    };
  }
  if (request.progress != nullptr) {
    callbacks.progress = [user, function = request.progress](const phobos::TuneProgress& now) {
      const bool is_known = now.progress.phase != phobos::stub::Phase::kUnspecified;
      const std::string phase = is_known ? phobos::stub::Word(now.progress.phase) : "";
      phobos_progress progress = {};
      progress.struct_bytes = sizeof(progress);
      progress.phase = phase.c_str();
      progress.done = now.progress.done;
      progress.total = now.progress.total;
      progress.best_ns = now.progress.best_ns;
      progress.best_variant = now.progress.best_variant;
      progress.queue_position = now.progress.queue_position;
      progress.estimate_ms = now.progress.estimate_ms;
      progress.elapsed_ms = now.elapsed_ms;
      progress.leads = now.leads ? 1 : 0;
      progress.note = now.progress.note.c_str();
      return function(user, &progress) != 0;
    };
  }
  return callbacks;
}

StatusOr<phobos::TuneRequest> RequestOf(const phobos_tune_request& theirs) {
  StatusOr<std::vector<int64_t>> extents = Extents(theirs.extents, theirs.extent_count);
  if (!extents.ok()) return extents.status();
  StatusOr<std::vector<uint64_t>> values = Values("value_count", theirs.values, theirs.value_count);
  if (!values.ok()) return values.status();
  if (theirs.tie_break < 0 || theirs.tie_break > 2) {
    return Status(Code::kInvalidArgument,
                  "tie_break is " + std::to_string(theirs.tie_break) + "; it must be 0, 1 or 2");
  }
  phobos::TuneRequest request;
  request.extents = *std::move(extents);
  request.values = *std::move(values);
  request.options.rtol = OptionalOf(theirs.rtol);
  request.options.atol = OptionalOf(theirs.atol);
  request.options.flush_l2 = theirs.no_flush_l2 == 0;
  request.options.tie_break = static_cast<phobos::TieBreak>(theirs.tie_break);
  request.timeouts.queue_ms = theirs.queue_timeout_ms;
  request.timeouts.run_ms = theirs.run_timeout_ms;
  request.timeouts.upload_ms = theirs.upload_timeout_ms;
  request.timeouts.reference_ms = theirs.reference_timeout_ms;
  request.callbacks = CallbacksOf(theirs);
  request.force = theirs.force != 0;
  request.stream = theirs.stream;
  return request;
}

phobos_plan* NewPlan(std::shared_ptr<const phobos::Plan> plan) {
  return new phobos_plan{std::move(plan)};
}

phobos_result* NewResult(phobos::Result result, bool cached) {
  auto made = std::make_unique<phobos_result>();
  made->bytes = phobos::stub::Encode(result);
  made->result = std::move(result);
  made->cached = cached;
  return made.release();
}

// Gives a plan out, or the error, or that there is none.
phobos_code Give(StatusOr<std::shared_ptr<const phobos::Plan>> found, phobos_plan** plan,
                 phobos_error** error) {
  if (!found.ok()) return Fail(found.status(), error);
  if (*found == nullptr) return PHOBOS_MISS;
  *plan = NewPlan(*std::move(found));
  return PHOBOS_OK;
}

}  // namespace

extern "C" {

const char* phobos_version(void) { return phobos::kVersion; }

void phobos_error_free(phobos_error* error) { delete static_cast<OwnedError*>(error); }

void phobos_text_free(char* text) { free(text); }

phobos_code phobos_client_open(const phobos_client_options* options, phobos_client** client,
                               phobos_error** error) {
  Clear(error);
  if (client == nullptr) return Missing("client", error);
  *client = nullptr;
  const phobos_client_options theirs = ReadStruct(options);
  phobos::ClientOptions ours;
  ours.socket = TextOf(theirs.socket);
  ours.daemon = TextOf(theirs.daemon);
  ours.client_name = theirs.client_name == nullptr ? std::string("c ") + phobos::kVersion
                                                   : std::string(theirs.client_name);
  ours.autostart = theirs.no_autostart == 0;
  if (theirs.threads < 0) {
    return Fail(Status(Code::kInvalidArgument,
                       "threads is " + std::to_string(theirs.threads) + "; it must be 0 or more"),
                error);
  }
  ours.threads = theirs.threads;
  void* const user = theirs.user;
  if (theirs.interrupted != nullptr) {
    ours.interrupted = [user, function = theirs.interrupted] { return function(user) != 0; };
  }
  if (theirs.warn != nullptr) {
    ours.warn = [user, function = theirs.warn](const std::string& text) {
      function(user, phobos::Utf8Of(text).c_str());
    };
  }
  *client = new phobos_client{phobos::Client::Open(std::move(ours))};
  return PHOBOS_OK;
}

void phobos_client_free(phobos_client* client) { delete client; }

phobos_code phobos_client_hello_json(phobos_client* client, char** json, phobos_error** error) {
  Clear(error);
  Clear(json);
  if (client == nullptr || json == nullptr) return Missing("client or json", error);
  const StatusOr<std::shared_ptr<const phobos::stub::Link>> link = client->client->Hello();
  if (!link.ok()) return Fail(link.status(), error);
  *json = CopyText(phobos::json::Hello(**link));
  return PHOBOS_OK;
}

phobos_code phobos_card_of(phobos_client* client, uint64_t address, int32_t* ordinal,
                           phobos_error** error) {
  Clear(error);
  if (client == nullptr || ordinal == nullptr) return Missing("client or ordinal", error);
  *ordinal = -1;
  const StatusOr<std::shared_ptr<phobos::Gpus>> cards = client->client->Cards();
  if (!cards.ok()) return Fail(cards.status(), error);
  const StatusOr<std::optional<int>> card = (*cards)->CardOf(address);
  if (!card.ok()) return Fail(card.status(), error);
  *ordinal = card->value_or(-1);
  return PHOBOS_OK;
}

phobos_code phobos_card_uuid(phobos_client* client, int32_t ordinal, char** uuid,
                             phobos_error** error) {
  Clear(error);
  Clear(uuid);
  if (client == nullptr || uuid == nullptr) return Missing("client or uuid", error);
  const StatusOr<std::shared_ptr<phobos::Gpus>> cards = client->client->Cards();
  if (!cards.ok()) return Fail(cards.status(), error);
  const StatusOr<std::string> found = (*cards)->UuidOf(ordinal);
  if (!found.ok()) return Fail(found.status(), error);
  *uuid = CopyText(*found);
  return PHOBOS_OK;
}

phobos_code phobos_kernel_open(phobos_client* client, const char* source, size_t source_bytes,
                               const char* file_name, const char* kernel_name,
                               const char* device_uuid, phobos_kernel** kernel,
                               phobos_error** error) {
  Clear(error);
  Clear(kernel);
  if (client == nullptr || source == nullptr || kernel_name == nullptr || kernel == nullptr) {
    return Missing("client, source, kernel_name or kernel", error);
  }
  phobos::KernelSource ours;
  ours.file_name = file_name == nullptr ? "kernel.py" : file_name;
  if (source_bytes > phobos::kLongestSource) {  // before it is copied
    return Fail(phobos::SourceTooLong(ours.file_name, source_bytes), error);
  }
  ours.text.assign(source, source_bytes);
  ours.kernel = kernel_name;
  ours.device_uuid = TextOf(device_uuid);
  StatusOr<std::shared_ptr<phobos::PlanSource>> plans =
      phobos::PlanSource::Open(client->client, std::move(ours));
  if (!plans.ok()) return Fail(plans.status(), error);
  *kernel = new phobos_kernel{*std::move(plans)};
  return PHOBOS_OK;
}

void phobos_kernel_free(phobos_kernel* kernel) { delete kernel; }

phobos_code phobos_kernel_describe_json(phobos_kernel* kernel, char** json, phobos_error** error) {
  Clear(error);
  Clear(json);
  if (kernel == nullptr || json == nullptr) return Missing("kernel or json", error);
  const StatusOr<phobos::Description> description = kernel->plans->Describe();
  if (!description.ok()) return Fail(description.status(), error);
  *json = CopyText(phobos::json::Description(**description));
  return PHOBOS_OK;
}

void phobos_plan_free(phobos_plan* plan) { delete plan; }

phobos_code phobos_plan_launch(phobos_plan* plan, const uint64_t* values, const int64_t grid[3],
                               void* stream, phobos_error** error) {
  Clear(error);
  if (plan == nullptr || values == nullptr || grid == nullptr) {
    return Missing("plan, values or grid", error);
  }
  const StatusOr<phobos::Plan::Outcome> outcome =
      plan->plan->Launch(values, {grid[0], grid[1], grid[2]}, stream);
  if (!outcome.ok()) return Fail(outcome.status(), error);
  return *outcome == phobos::Plan::Outcome::kLaunched ? PHOBOS_OK : PHOBOS_LOOK_AGAIN;
}

phobos_code phobos_plan_json(const phobos_plan* plan, char** json, phobos_error** error) {
  Clear(error);
  Clear(json);
  if (plan == nullptr || json == nullptr) return Missing("plan or json", error);
  *json = CopyText(phobos::json::PlanText(*plan->plan));
  return PHOBOS_OK;
}

void phobos_result_free(phobos_result* result) { delete result; }

phobos_code phobos_result_json(const phobos_result* result, char** json, phobos_error** error) {
  Clear(error);
  Clear(json);
  if (result == nullptr || json == nullptr) return Missing("result or json", error);
  *json = CopyText(phobos::json::ResultText(result->result, result->cached));
  return PHOBOS_OK;
}

phobos_code phobos_result_bytes(const phobos_result* result, const uint8_t** bytes, size_t* size,
                                phobos_error** error) {
  Clear(error);
  Clear(bytes);
  if (result == nullptr || bytes == nullptr || size == nullptr) {
    return Missing("result, bytes or size", error);
  }
  *bytes = reinterpret_cast<const uint8_t*>(result->bytes.data());
  *size = result->bytes.size();
  return PHOBOS_OK;
}

void phobos_sink_say(phobos_sink* sink, const char* message) {
  if (sink != nullptr) sink->message = TextOf(message);
}

phobos_code phobos_expected_set(phobos_expected* expected, const char* parameter, const void* bytes,
                                size_t size) {
  if (expected == nullptr || parameter == nullptr || (bytes == nullptr && size > 0)) {
    return PHOBOS_INVALID_ARGUMENT;
  }
  return static_cast<phobos_code>(expected->call->Set(parameter, bytes, size).code());
}

phobos_code phobos_kernel_tune(phobos_kernel* kernel, const phobos_tune_request* request,
                               phobos_result** result, phobos_plan** plan, phobos_error** error) {
  Clear(error);
  Clear(result);
  Clear(plan);
  const phobos_tune_request theirs = ReadStruct(request);
  if (kernel == nullptr || theirs.grid == nullptr || theirs.reference == nullptr) {
    return Missing("kernel, grid or reference", error);
  }
  const StatusOr<phobos::TuneRequest> ours = RequestOf(theirs);
  if (!ours.ok()) return Fail(ours.status(), error);
  StatusOr<phobos::Tuned> tuned = kernel->plans->Tune(*ours);
  if (!tuned.ok()) return Fail(tuned.status(), error);
  if (plan != nullptr) *plan = NewPlan(tuned->plan);
  if (result != nullptr) *result = NewResult(std::move(tuned->result), tuned->cached);
  return PHOBOS_OK;
}

phobos_code phobos_kernel_warm(phobos_kernel* kernel, const phobos_tune_request* request,
                               phobos_error** error) {
  Clear(error);
  const phobos_tune_request theirs = ReadStruct(request);
  if (kernel == nullptr || theirs.grid == nullptr || theirs.reference == nullptr) {
    return Missing("kernel, grid or reference", error);
  }
  const StatusOr<phobos::TuneRequest> ours = RequestOf(theirs);
  if (!ours.ok()) return Fail(ours.status(), error);
  if (Status status = kernel->plans->Warm(*ours); !status.ok()) return Fail(status, error);
  return PHOBOS_OK;
}

phobos_code phobos_kernel_prepare(phobos_kernel* kernel, const int64_t* extents,
                                  int32_t extent_count, const char* policy,
                                  const phobos_tune_request* reference, phobos_plan** plan,
                                  phobos_result** result, phobos_error** error) {
  Clear(error);
  Clear(plan);
  Clear(result);
  if (kernel == nullptr || plan == nullptr) return Missing("kernel or plan", error);
  const phobos_tune_request theirs = ReadStruct(reference);
  const StatusOr<std::vector<int64_t>> sides = Extents(extents, extent_count);
  if (!sides.ok()) return Fail(sides.status(), error);
  std::optional<phobos::TuneRequest> request;
  if (theirs.reference != nullptr) {
    if (theirs.grid == nullptr) return Missing("grid", error);
    StatusOr<phobos::TuneRequest> ours = RequestOf(theirs);
    if (!ours.ok()) return Fail(ours.status(), error);
    request = *std::move(ours);
  }
  StatusOr<phobos::Prepared> prepared = kernel->plans->Prepare(
      *sides, TextOf(policy), request.has_value() ? &*request : nullptr, theirs.stream);
  if (!prepared.ok()) return Fail(prepared.status(), error);
  *plan = NewPlan(std::move(prepared->plan));
  if (result != nullptr && prepared->tuned.has_value()) {
    *result = NewResult(std::move(prepared->tuned->result), prepared->tuned->cached);
  }
  return PHOBOS_OK;
}

phobos_code phobos_kernel_find(phobos_kernel* kernel, const int64_t* extents, int32_t extent_count,
                               phobos_plan** plan, phobos_error** error) {
  Clear(error);
  Clear(plan);
  if (kernel == nullptr || plan == nullptr) return Missing("kernel or plan", error);
  const StatusOr<std::vector<int64_t>> sides = Extents(extents, extent_count);
  if (!sides.ok()) return Fail(sides.status(), error);
  return Give(kernel->plans->Find(*sides), plan, error);
}

phobos_code phobos_kernel_variant(phobos_kernel* kernel, const int64_t* extents,
                                  int32_t extent_count, int32_t variant, phobos_plan** plan,
                                  phobos_error** error) {
  Clear(error);
  Clear(plan);
  if (kernel == nullptr || plan == nullptr) return Missing("kernel or plan", error);
  const StatusOr<std::vector<int64_t>> sides = Extents(extents, extent_count);
  if (!sides.ok()) return Fail(sides.status(), error);
  return Give(kernel->plans->Variant(*sides, variant), plan, error);
}

phobos_code phobos_kernel_result(phobos_kernel* kernel, const int64_t* extents,
                                 int32_t extent_count, phobos_result** result,
                                 phobos_error** error) {
  Clear(error);
  Clear(result);
  if (kernel == nullptr || result == nullptr) return Missing("kernel or result", error);
  const StatusOr<std::vector<int64_t>> sides = Extents(extents, extent_count);
  if (!sides.ok()) return Fail(sides.status(), error);
  StatusOr<std::optional<phobos::Result>> found = kernel->plans->CurrentResult(*sides);
  if (!found.ok()) return Fail(found.status(), error);
  if (!found->has_value()) return PHOBOS_MISS;
  *result = NewResult(**std::move(found), /*cached=*/true);
  return PHOBOS_OK;
}

phobos_code phobos_kernel_adopt(phobos_kernel* kernel, const uint8_t* bytes, size_t size,
                                phobos_error** error) {
  Clear(error);
  if (kernel == nullptr || bytes == nullptr) return Missing("kernel or bytes", error);
  if (size > kLongestResult) {
    return Fail(Status(Code::kInvalidArgument,
                       "a Result has no " + std::to_string(size) + " bytes; 32 MiB at most"),
                error);
  }
  const StatusOr<phobos::Result> result =
      phobos::stub::Decode<phobos::Result>({reinterpret_cast<const char*>(bytes), size});
  if (!result.ok()) {
    return Fail(
        Status(Code::kInvalidArgument, "these bytes are no Result: " + result.status().message()),
        error);
  }
  if (Status status = kernel->plans->Adopt(*result); !status.ok()) return Fail(status, error);
  return PHOBOS_OK;
}

}  // extern "C"
