/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for libphobos.so: it talks to no daemon and runs no kernel. It writes down what it is
 * asked, calls the callbacks as the real library does, and answers what the test has set through
 * the fake_ functions. One thread at a time, but for launches.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/phobos.h"

#define EXPORT __attribute__((visibility("default")))
enum { kSlots = 16, kText = 65536 };

struct phobos_sink {
  char said[kText];
};
struct phobos_expected {
  int32_t code;
};

static char description[kText], plan_text[kText], result_text[kText], expected_names[kText];
static char grid_errors[kText], reference_error[kText], failing[64];
static phobos_error failure;
static phobos_client_options client_options;
static uint64_t values[kSlots];
static int64_t grid[3], counts[4]; /* launches, prepares, tunes, interrupts asked */
static int32_t look_again, ticks, reference_runs, is_tuning = 1, value_count, scalars;
static phobos_tune_request last;
static int64_t last_extents[kSlots];
static double last_tolerance[2];
static uint8_t expected_bytes[4096];
static void *last_stream, *tune_stream;
static char opened_device[128];
static uint64_t card_starts[2], card_ends[2]; /* addresses of two cards' memory */

EXPORT void fake_reset(void) {
  memset(counts, 0, sizeof counts);
  look_again = ticks = 0;
  reference_runs = is_tuning = 1;
  failing[0] = expected_names[0] = grid_errors[0] = reference_error[0] = 0;
}
EXPORT void fake_set(const char* name, const char* text) {
  char* to = !strcmp(name, "description") ? description
             : !strcmp(name, "plan")      ? plan_text
                                          : result_text;
  strncpy(to, text, kText - 1);
}
EXPORT void fake_set_number(const char* name, int32_t number) {
  if (!strcmp(name, "look_again")) look_again = number;
  if (!strcmp(name, "ticks")) ticks = number;
  if (!strcmp(name, "reference_runs")) reference_runs = number;
  if (!strcmp(name, "is_tuning")) is_tuning = number;
  if (!strcmp(name, "value_count")) value_count = number;
  if (!strcmp(name, "scalars")) scalars = number; /* bit i: parameter i is one */
}
/* The next calls of `function` fail so; the texts must stay. */
EXPORT void fake_fail(const char* function, int32_t code, const char* reason, const char* message,
                      const char* remedy, const char* variants_json) {
  strncpy(failing, function, sizeof failing - 1);
  failure = (phobos_error){code,  strdup(reason), strdup(message),      "add",
                           "N=7", strdup(remedy), strdup(variants_json)};
}
EXPORT const uint64_t* fake_values(void) { return values; }
EXPORT const int64_t* fake_grid(void) { return grid; }
EXPORT const int64_t* fake_counts(void) { return counts; }
EXPORT const char* fake_expected_names(void) { return expected_names; }
EXPORT const uint8_t* fake_expected_bytes(void) { return expected_bytes; }
EXPORT const char* fake_grid_errors(void) { return grid_errors; }
EXPORT const char* fake_reference_error(void) { return reference_error; }
EXPORT const phobos_tune_request* fake_request(void) { return &last; }
EXPORT uint64_t fake_stream(void) { return (uint64_t)(uintptr_t)last_stream; }
EXPORT uint64_t fake_tune_stream(void) { return (uint64_t)(uintptr_t)tune_stream; }
EXPORT const char* fake_opened_device(void) { return opened_device; }
EXPORT void fake_set_card(int32_t ordinal, uint64_t begin, uint64_t end) {
  card_starts[ordinal] = begin;
  card_ends[ordinal] = end;
}
EXPORT void fake_warn(const char* text) { client_options.warn(client_options.user, text); }

static phobos_code Answer(const char* function, phobos_error** error) {
  if (error) *error = NULL;
  if (strcmp(function, failing)) return PHOBOS_OK;
  if (error) {
    *error = malloc(sizeof **error);
    **error = failure;
  }
  return failure.code;
}

static phobos_code Refused(phobos_code code, const char* reason, const char* message,
                           phobos_error** error) {
  fake_fail("this call", code, reason, message, "", "[]");
  strcpy(failing, "this call");
  code = Answer("this call", error);
  failing[0] = 0;
  return code;
}

static phobos_code Text(const char* function, const char* text, char** out, phobos_error** error) {
  *out = strdup(text);
  return Answer(function, error);
}

EXPORT const char* phobos_version(void) { return "0.0.0"; }
EXPORT void phobos_error_free(phobos_error* error) { free(error); }
EXPORT void phobos_text_free(char* text) { free(text); }
EXPORT void phobos_kernel_free(phobos_kernel* kernel) { (void)kernel; }
EXPORT void phobos_plan_free(phobos_plan* plan) { free(plan); }
EXPORT void phobos_result_free(phobos_result* result) { free(result); }
EXPORT void phobos_sink_say(phobos_sink* sink, const char* message) {
  strncpy(sink->said, message, kText - 1);
}

EXPORT phobos_code phobos_client_open(const phobos_client_options* options, phobos_client** client,
                                      phobos_error** error) {
  client_options = *options;
  *client = (phobos_client*)&client_options;
  return Answer("client_open", error);
}
EXPORT phobos_code phobos_client_hello_json(phobos_client* client, char** json,
                                            phobos_error** error) {
  (void)client;
  return Text("hello", "{}", json, error);
}
EXPORT phobos_code phobos_card_of(phobos_client* client, uint64_t address, int32_t* ordinal,
                                  phobos_error** error) {
  (void)client;
  *ordinal = -1;
  for (int32_t i = 0; i < 2; ++i) {
    if (address >= card_starts[i] && address < card_ends[i]) *ordinal = i;
  }
  return Answer("card_of", error);
}
EXPORT phobos_code phobos_card_uuid(phobos_client* client, int32_t ordinal, char** uuid,
                                    phobos_error** error) {
  (void)client;
  return Text("card_uuid", ordinal ? "GPU-1" : "GPU-0", uuid, error);
}
EXPORT phobos_code phobos_kernel_open(phobos_client* client, const char* source,
                                      size_t source_bytes, const char* file_name,
                                      const char* kernel_name, const char* device_uuid,
                                      phobos_kernel** kernel, phobos_error** error) {
  (void)client, (void)source, (void)source_bytes, (void)file_name, (void)kernel_name;
  strncpy(opened_device, device_uuid ? device_uuid : "", sizeof opened_device - 1);
  *kernel = (phobos_kernel*)description;
  return Answer("kernel_open", error);
}
EXPORT phobos_code phobos_kernel_describe_json(phobos_kernel* kernel, char** json,
                                               phobos_error** error) {
  return Text("describe", (const char*)kernel, json, error);
}

EXPORT phobos_code phobos_plan_launch(phobos_plan* plan, const uint64_t* slots,
                                      const int64_t sides[3], void* stream, phobos_error** error) {
  (void)plan;
  last_stream = stream;
  if (error) *error = NULL;
  if (look_again > 0) {
    --look_again;
    return PHOBOS_LOOK_AGAIN;
  }
  if (sides[0] < 0) return Refused(PHOBOS_INVALID_ARGUMENT, "bad_argument", "grid", error);
  ++counts[0];
  memcpy(values, slots, sizeof(uint64_t) * (size_t)value_count);
  memcpy(grid, sides, sizeof grid);
  return Answer("launch", error);
}
EXPORT phobos_code phobos_plan_json(const phobos_plan* plan, char** json, phobos_error** error) {
  (void)plan;
  return Text("plan", plan_text, json, error);
}
EXPORT phobos_code phobos_result_json(const phobos_result* result, char** json,
                                      phobos_error** error) {
  (void)result;
  return Text("result_json", result_text, json, error);
}
EXPORT phobos_code phobos_result_bytes(const phobos_result* result, const uint8_t** bytes,
                                       size_t* size, phobos_error** error) {
  *bytes = (const uint8_t*)result;
  *size = 4;
  return Answer("result_bytes", error);
}

EXPORT phobos_code phobos_expected_set(phobos_expected* expected, const char* parameter,
                                       const void* bytes, size_t size) {
  strcat(strcat(expected_names, parameter), " ");
  memcpy(expected_bytes, bytes, size < sizeof expected_bytes ? size : sizeof expected_bytes);
  return expected->code;
}

static void Remember(const phobos_tune_request* request) {
  last = *request;
  last.extents =
      memcpy(last_extents, request->extents, sizeof(int64_t) * (size_t)request->extent_count);
  if (last.rtol) last.rtol = memcpy(&last_tolerance[0], last.rtol, sizeof(double));
  if (last.atol) last.atol = memcpy(&last_tolerance[1], last.atol, sizeof(double));
}

/* Calls the callbacks of a request: the grid for two variants, the reference, progress. */
static phobos_code Run(const phobos_tune_request* request, phobos_error** error) {
  phobos_sink sink = {{0}};
  int64_t sides[3];
  for (int32_t variant = 0; variant < 2; ++variant) {
    if (request->grid(request->user, variant, "{}", sides, &sink))
      strcat(strcat(grid_errors, sink.said), "\n");
  }
  void* arguments[kSlots];
  for (int i = 0; i < request->value_count; ++i) {
    arguments[i] =
        scalars >> i & 1 ? (void*)&request->values[i] : (void*)(uintptr_t)request->values[i];
  }
  for (int i = 0; i < reference_runs; ++i) {
    phobos_expected expected = {PHOBOS_OK};
    if (request->reference(request->user, arguments, &expected, &sink)) {
      strcpy(reference_error, sink.said);
      phobos_progress ended = {sizeof ended, "reference", 0, 0, 0, 0, 0, 0, 0, 1, ""};
      if (request->progress(request->user, &ended))
        return Refused(PHOBOS_CANCELLED, "cancelled", "cancelled", error);
      return Refused(PHOBOS_FAILED_PRECONDITION, "reference_failed", sink.said, error);
    }
  }
  for (int32_t i = 0; i < ticks; ++i) {
    phobos_progress said = {sizeof said, "timing", i,      ticks, 8100000,  1,
                            0,           2500,     10 * i, 1,     "held up"};
    if (request->progress(request->user, &said))
      return Refused(PHOBOS_CANCELLED, "cancelled", "cancelled", error);
  }
  return PHOBOS_OK;
}

EXPORT phobos_code phobos_kernel_prepare(phobos_kernel* kernel, const int64_t* extents,
                                         int32_t extent_count, const char* policy,
                                         const phobos_tune_request* request, phobos_plan** plan,
                                         phobos_result** result, phobos_error** error) {
  (void)kernel, (void)extents, (void)extent_count, (void)policy;
  ++counts[1];
  *plan = NULL;
  *result = NULL;
  phobos_code code = Answer("prepare", error);
  tune_stream = request ? request->stream : NULL;
  const int may_tune = request && request->reference;
  if (code == PHOBOS_OK && may_tune) Remember(request);
  if (code == PHOBOS_OK && may_tune && is_tuning) {
    code = Run(request, error);
    *result = code == PHOBOS_OK ? calloc(1, 8) : NULL;
  }
  if (code == PHOBOS_OK) *plan = calloc(1, 8);
  return code;
}
EXPORT phobos_code phobos_kernel_tune(phobos_kernel* kernel, const phobos_tune_request* request,
                                      phobos_result** result, phobos_plan** plan,
                                      phobos_error** error) {
  (void)kernel, (void)plan;
  ++counts[2];
  tune_stream = request->stream;
  Remember(request);
  phobos_code code = Answer("tune", error);
  if (code == PHOBOS_OK) code = Run(request, error);
  *result = code == PHOBOS_OK ? calloc(1, 8) : NULL;
  return code;
}
EXPORT phobos_code phobos_kernel_warm(phobos_kernel* kernel, const phobos_tune_request* request,
                                      phobos_error** error) {
  (void)kernel;
  phobos_code code = Answer("warm", error);
  return code == PHOBOS_OK ? Run(request, error) : code;
}
EXPORT phobos_code phobos_kernel_result(phobos_kernel* kernel, const int64_t* extents,
                                        int32_t extent_count, phobos_result** result,
                                        phobos_error** error) {
  (void)kernel, (void)extent_count;
  *result = NULL;
  if (error) *error = NULL;
  if (extents[0] != 7) return PHOBOS_MISS;
  *result = calloc(1, 8);
  return Answer("result", error);
}
EXPORT phobos_code phobos_kernel_adopt(phobos_kernel* kernel, const uint8_t* bytes, size_t size,
                                       phobos_error** error) {
  (void)kernel, (void)bytes, (void)size;
  return Answer("adopt", error);
}
