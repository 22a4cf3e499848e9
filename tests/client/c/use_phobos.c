// SPDX-License-Identifier: Apache-2.0
//
// The C ABI used from C. The other side is a fake tuner that phobos_test.cc starts.
#include "tests/client/c/use_phobos.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/phobos.h"

#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                             \
    }                                                                         \
  } while (0)

enum { kN = 1000 };

static int failures = 0;

static float x[kN], y[kN], out[kN];

typedef struct Calls {
  int grids, references, progress, warnings, interrupted;
  int reference_fails, progress_cancels;
  char last_settings[64];
} Calls;

static int AddGrid(void* user, int32_t variant, const char* settings, int64_t grid[3],
                   phobos_sink* sink) {
  Calls* calls = user;
  ++calls->grids;
  snprintf(calls->last_settings, sizeof(calls->last_settings), "%s", settings);
  if (variant > 1) {
    phobos_sink_say(sink, "there are two variants");
    return 1;
  }
  const int block = variant == 0 ? 256 : 512;
  grid[0] = (kN + block - 1) / block;
  grid[1] = grid[2] = 1;
  return 0;
}

static int AddReference(void* user, void* const* arguments, phobos_expected* expected,
                        phobos_sink* sink) {
  Calls* calls = user;
  ++calls->references;
  if (calls->reference_fails) {
    phobos_sink_say(sink, "out of ideas");
    return 1;
  }
  const float* a = arguments[0];
  const float* b = arguments[1];
  float* sum = malloc(kN * sizeof(float));
  for (int i = 0; i < kN; ++i) sum[i] = a[i] + b[i];
  EXPECT(phobos_expected_set(expected, "out", sum, kN * sizeof(float)) == PHOBOS_OK);
  free(sum);
  return 0;
}

static int OnProgress(void* user, const phobos_progress* progress) {
  Calls* calls = user;
  ++calls->progress;
  EXPECT(progress->struct_bytes == sizeof(*progress));
  EXPECT(progress->phase != NULL);
  return calls->progress_cancels;
}

static void OnWarning(void* user, const char* text) {
  Calls* calls = user;
  ++calls->warnings;
  EXPECT(strstr(text, "add") != NULL);
}

static int NotInterrupted(void* user) {
  Calls* calls = user;
  ++calls->interrupted;
  return 0;
}

static int IsSum(void) {
  for (int i = 0; i < kN; ++i) {
    if (out[i] != x[i] + y[i]) return 0;
  }
  return 1;
}

static void Fill(void) {
  for (int i = 0; i < kN; ++i) {
    x[i] = (float)i;
    y[i] = 0.25f;
    out[i] = -1;
  }
}

static phobos_tune_request RequestFor(Calls* calls, const int64_t* extents,
                                      const uint64_t* values) {
  phobos_tune_request request;
  memset(&request, 0, sizeof(request));
  request.struct_bytes = sizeof(request);
  request.extents = extents;
  request.extent_count = 1;
  request.values = values;
  request.value_count = 3;
  request.grid = AddGrid;
  request.reference = AddReference;
  request.progress = OnProgress;
  request.user = calls;
  return request;
}

static void ExpectText(char* text, const char* part) {
  EXPECT(text != NULL);
  if (text == NULL) return;
  if (strstr(text, part) == NULL) {
    fprintf(stderr, "%s\nlacks %s\n", text, part);
    ++failures;
  }
  phobos_text_free(text);
}

static void FirstChoices(phobos_kernel* kernel, const int64_t* extents, const uint64_t* values) {
  phobos_error* error = NULL;
  phobos_plan* plan = NULL;
  EXPECT(phobos_kernel_find(kernel, extents, 1, &plan, &error) == PHOBOS_MISS);
  EXPECT(plan == NULL && error == NULL);
  phobos_result* result = NULL;
  EXPECT(phobos_kernel_result(kernel, extents, 1, &result, &error) == PHOBOS_MISS);
  EXPECT(result == NULL && error == NULL);

  EXPECT(phobos_kernel_prepare(kernel, extents, 1, "frozen", NULL, &plan, NULL, &error) ==
         PHOBOS_FAILED_PRECONDITION);
  EXPECT(plan == NULL && error != NULL);
  EXPECT(strcmp(error->key, "N=1000") == 0 && strcmp(error->kernel, "add") == 0);
  EXPECT(strcmp(error->variants_json, "[]") == 0);
  EXPECT(strstr(error->message, "frozen") != NULL);
  phobos_error_free(error);
  EXPECT(phobos_kernel_prepare(kernel, extents, 1, "frozen", NULL, &plan, NULL, NULL) ==
         PHOBOS_FAILED_PRECONDITION);

  EXPECT(phobos_kernel_prepare(kernel, extents, 1, NULL, NULL, &plan, &result, &error) ==
         PHOBOS_OK);
  EXPECT(result == NULL);
  char* json = NULL;
  EXPECT(phobos_plan_json(plan, &json, &error) == PHOBOS_OK);
  ExpectText(json, "\"settings\":{\"BLOCK\":256},\"origin\":\"first_choices\"");
  const int64_t grid[3] = {4, 1, 1};
  Fill();
  EXPECT(phobos_plan_launch(plan, values, grid, NULL, &error) == PHOBOS_OK);
  EXPECT(IsSum());
  phobos_plan_free(plan);
}

static void TuneAndLaunch(phobos_kernel* kernel, const int64_t* extents, const uint64_t* values) {
  Calls calls;
  memset(&calls, 0, sizeof(calls));
  phobos_tune_request request = RequestFor(&calls, extents, values);
  phobos_error* error = NULL;
  phobos_result* result = NULL;
  phobos_plan* plan = NULL;
  Fill();
  EXPECT(phobos_kernel_tune(kernel, &request, &result, &plan, &error) == PHOBOS_OK);
  EXPECT(error == NULL);
  EXPECT(calls.grids == 2 && calls.references == 1);
  EXPECT(strcmp(calls.last_settings, "{\"BLOCK\":512}") == 0);
  char* json = NULL;
  EXPECT(phobos_result_json(result, &json, &error) == PHOBOS_OK);
  EXPECT(strstr(json, "\"winner_settings\":{\"BLOCK\":512}") != NULL);
  EXPECT(strstr(json, "\"key\":{\"N\":1000}") != NULL);
  EXPECT(strstr(json, "\"status\":\"wrong_result\"") != NULL);
  EXPECT(strstr(json, "\"samples_ns\":[1000]") != NULL);
  ExpectText(json, "\"cached\":false");
  EXPECT(phobos_plan_json(plan, &json, &error) == PHOBOS_OK);
  ExpectText(json, "\"origin\":\"winner\",\"generation\":1");

  const int64_t grid[3] = {2, 1, 1};
  Fill();
  EXPECT(phobos_plan_launch(plan, values, grid, NULL, &error) == PHOBOS_OK);
  EXPECT(IsSum());
  const int64_t nothing[3] = {0, 1, 1};
  Fill();
  EXPECT(phobos_plan_launch(plan, values, nothing, NULL, &error) == PHOBOS_OK);
  EXPECT(out[0] == -1);
  const int64_t too_wide[3] = {2, 2, 1};
  EXPECT(phobos_plan_launch(plan, values, too_wide, NULL, &error) == PHOBOS_INVALID_ARGUMENT);
  EXPECT(strstr(error->message, "ph.ctx.block.y") != NULL);
  EXPECT(strcmp(error->reason, "bad_argument") == 0);
  phobos_error_free(error);
  const uint64_t overlapping[3] = {values[0], values[1], values[1]};
  EXPECT(phobos_plan_launch(plan, overlapping, grid, NULL, NULL) == PHOBOS_INVALID_ARGUMENT);

  // A newer Result makes this plan one of the past.
  phobos_plan* newer = NULL;
  request.force = 1;
  for (int i = 0; i < kN; ++i) out[i] = x[i] + y[i];  // the answer is there already: one more call
  EXPECT(phobos_kernel_tune(kernel, &request, NULL, &newer, &error) == PHOBOS_OK);
  EXPECT(calls.references == 3);
  EXPECT(phobos_plan_launch(plan, values, grid, NULL, &error) == PHOBOS_LOOK_AGAIN);
  EXPECT(error == NULL);
  EXPECT(phobos_plan_launch(newer, values, grid, NULL, &error) == PHOBOS_OK);
  phobos_plan_free(newer);
  phobos_plan_free(plan);

  // The Result goes elsewhere as bytes and comes back.
  const uint8_t* bytes = NULL;
  size_t size = 0;
  EXPECT(phobos_result_bytes(result, &bytes, &size, &error) == PHOBOS_OK);
  EXPECT(size > 0);
  EXPECT(phobos_kernel_adopt(kernel, bytes, size, &error) == PHOBOS_OK);
  EXPECT(phobos_kernel_adopt(kernel, (const uint8_t*)"\x0a\x7f", 2, &error) ==
         PHOBOS_INVALID_ARGUMENT);
  phobos_error_free(error);
  phobos_result_free(result);
  EXPECT(phobos_kernel_result(kernel, extents, 1, &result, &error) == PHOBOS_OK);
  phobos_result_free(result);
}

static void CallbacksThatFail(phobos_kernel* kernel, const int64_t* extents,
                              const uint64_t* values) {
  Calls calls;
  memset(&calls, 0, sizeof(calls));
  const int64_t other[1] = {kN - 1};
  (void)extents;
  phobos_tune_request request = RequestFor(&calls, other, values);
  phobos_error* error = NULL;
  calls.reference_fails = 1;
  EXPECT(phobos_kernel_tune(kernel, &request, NULL, NULL, &error) == PHOBOS_UNKNOWN);
  EXPECT(strcmp(error->message, "the reference failed: out of ideas") == 0);
  EXPECT(strcmp(error->reason, "reference_failed") == 0);
  phobos_error_free(error);
  calls.reference_fails = 0;
  calls.progress_cancels = 1;
  EXPECT(phobos_kernel_tune(kernel, &request, NULL, NULL, &error) == PHOBOS_CANCELLED);
  phobos_error_free(error);
  request.reference = NULL;
  EXPECT(phobos_kernel_tune(kernel, &request, NULL, NULL, NULL) == PHOBOS_INVALID_ARGUMENT);
}

static void NullsAreErrors(phobos_client* client, phobos_kernel* kernel) {
  phobos_error* error = NULL;
  phobos_plan* plan = NULL;
  char* json = NULL;
  EXPECT(phobos_client_open(NULL, NULL, &error) == PHOBOS_INVALID_ARGUMENT);
  phobos_error_free(error);
  EXPECT(phobos_client_hello_json(NULL, &json, NULL) == PHOBOS_INVALID_ARGUMENT);
  EXPECT(phobos_kernel_open(client, NULL, 0, NULL, NULL, NULL, NULL, NULL) ==
         PHOBOS_INVALID_ARGUMENT);
  EXPECT(phobos_kernel_find(NULL, NULL, 0, &plan, NULL) == PHOBOS_INVALID_ARGUMENT);
  EXPECT(phobos_kernel_find(kernel, NULL, 0, &plan, NULL) == PHOBOS_INVALID_ARGUMENT);
  EXPECT(phobos_plan_launch(NULL, NULL, NULL, NULL, NULL) == PHOBOS_INVALID_ARGUMENT);
  phobos_error_free(NULL);
  phobos_text_free(NULL);
  phobos_client_free(NULL);
  phobos_kernel_free(NULL);
  phobos_plan_free(NULL);
  phobos_result_free(NULL);
}

static void ExpectRefused(phobos_code code, phobos_error* error, const char* part) {
  EXPECT(code == PHOBOS_INVALID_ARGUMENT && error != NULL);
  if (error == NULL) return;
  EXPECT(strstr(error->message, part) != NULL);
  phobos_error_free(error);
}

// Nothing is read of what a size or a count that cannot be says is there.
static void ImpossibleSizesAreErrors(phobos_client* client, phobos_kernel* kernel) {
  static const size_t kSizes[] = {((size_t)1 << 20) + 1, (size_t)1 << 63, SIZE_MAX};
  static const int32_t kCounts[] = {-1, INT32_MIN, PHOBOS_MOST_PARAMETERS + 1, INT32_MAX};
  phobos_error* error = NULL;
  for (size_t i = 0; i < sizeof(kSizes) / sizeof(kSizes[0]); ++i) {
    phobos_kernel* opened = NULL;
    const phobos_code code =
        phobos_kernel_open(client, "", kSizes[i], "a.py", "a", NULL, &opened, &error);
    EXPECT(opened == NULL);
    ExpectRefused(code, error, "1 MiB");
  }
  ExpectRefused(phobos_kernel_adopt(kernel, (const uint8_t*)"", SIZE_MAX, &error), error, "32 MiB");
  const int64_t extents[1] = {kN};
  const uint64_t values[3] = {0};
  Calls calls;
  for (size_t i = 0; i < sizeof(kCounts) / sizeof(kCounts[0]); ++i) {
    const int32_t count = kCounts[i];
    phobos_plan* plan = NULL;
    phobos_result* result = NULL;
    const char* const what = "extent_count";
    ExpectRefused(phobos_kernel_find(kernel, extents, count, &plan, &error), error, what);
    ExpectRefused(phobos_kernel_variant(kernel, extents, count, 0, &plan, &error), error, what);
    ExpectRefused(phobos_kernel_result(kernel, extents, count, &result, &error), error, what);
    ExpectRefused(phobos_kernel_prepare(kernel, extents, count, NULL, NULL, &plan, &result, &error),
                  error, what);
    phobos_tune_request request = RequestFor(&calls, extents, values);
    request.extent_count = count;
    ExpectRefused(phobos_kernel_tune(kernel, &request, &result, &plan, &error), error, what);
    request = RequestFor(&calls, extents, values);
    request.value_count = count;
    ExpectRefused(phobos_kernel_warm(kernel, &request, &error), error, "value_count");
    if (count > 0) continue;
    request = RequestFor(&calls, extents, values);
    request.tie_break = count;
    ExpectRefused(phobos_kernel_warm(kernel, &request, &error), error, "tie_break");
    phobos_client_options options;
    memset(&options, 0, sizeof(options));
    options.struct_bytes = sizeof(options);
    options.threads = count;
    phobos_client* none = client;
    ExpectRefused(phobos_client_open(&options, &none, &error), error, "threads");
    EXPECT(none == NULL);
  }
}

// What an error repeats of a text that is no UTF-8 is escaped.
static void ErrorsAreUtf8(phobos_client* client, phobos_kernel* kernel) {
  phobos_error* error = NULL;
  phobos_kernel* opened = NULL;
  phobos_plan* plan = NULL;
  const int64_t extents[1] = {kN};
  phobos_code code = phobos_kernel_open(client, "", 0, "a\xff.py", "a", NULL, &opened, &error);
  ExpectRefused(code, error, "a\\xff.py");
  code = phobos_kernel_open(client, "", 0, NULL, "a", "GPU-\xfe", &opened, &error);
  ExpectRefused(code, error, "GPU-\\xfe");
  code = phobos_kernel_prepare(kernel, extents, 1, "o\xc3", NULL, &plan, NULL, &error);
  ExpectRefused(code, error, "o\\xc3");
}

int UsePhobos(const char* socket, const char* source) {
  EXPECT(strlen(phobos_version()) > 0);
  Calls calls;
  memset(&calls, 0, sizeof(calls));
  phobos_client_options options;
  memset(&options, 0, sizeof(options));
  options.struct_bytes = sizeof(options);
  options.socket = socket;
  options.no_autostart = 1;
  options.interrupted = NotInterrupted;
  options.warn = OnWarning;
  options.user = &calls;
  phobos_error* error = NULL;
  phobos_client* client = NULL;
  EXPECT(phobos_client_open(&options, &client, &error) == PHOBOS_OK);
  char* json = NULL;
  EXPECT(phobos_client_hello_json(client, &json, &error) == PHOBOS_OK);
  ExpectText(json, "\"devices\":[{\"uuid\":\"host\"");

  phobos_kernel* kernel = NULL;
  EXPECT(phobos_kernel_open(client, source, strlen(source), "add.py", "add", NULL, &kernel,
                            &error) == PHOBOS_OK);
  EXPECT(phobos_kernel_describe_json(kernel, &json, &error) == PHOBOS_OK);
  ExpectText(json,
             "{\"name\":\"x\",\"dtype\":\"f32\",\"is_tensor\":true,\"dims\":[{\"extent\":\"N\"");
  NullsAreErrors(client, kernel);
  ImpossibleSizesAreErrors(client, kernel);
  ErrorsAreUtf8(client, kernel);
  phobos_client_free(client);  // the kernel keeps what it needs

  const int64_t extents[1] = {kN};
  const uint64_t values[3] = {(uint64_t)(uintptr_t)x, (uint64_t)(uintptr_t)y,
                              (uint64_t)(uintptr_t)out};
  FirstChoices(kernel, extents, values);
  TuneAndLaunch(kernel, extents, values);
  CallbacksThatFail(kernel, extents, values);

  phobos_plan* variant = NULL;
  EXPECT(phobos_kernel_variant(kernel, extents, 1, 1, &variant, &error) == PHOBOS_OK);
  EXPECT(phobos_plan_json(variant, &json, &error) == PHOBOS_OK);
  ExpectText(json, "\"origin\":\"variant\"");
  phobos_kernel_free(kernel);
  const int64_t grid[3] = {2, 1, 1};
  Fill();
  EXPECT(phobos_plan_launch(variant, values, grid, NULL, &error) == PHOBOS_OK);
  EXPECT(IsSum());
  phobos_plan_free(variant);
  return failures;
}
