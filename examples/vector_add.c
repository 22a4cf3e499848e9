// SPDX-License-Identifier: Apache-2.0
//
// Vector add from C, through libphobos.so. The first run tunes; another launches the stored winner.
//
//   vector_add_c KERNEL.py [N]      KERNEL.py: the file that has the kernel, such as vector_add.py
//   here
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/phobos.h"

// What the callbacks need to know.
typedef struct Sizes {
  int64_t n;
} Sizes;

// The value of "NAME":123 in a variant's settings; 0: it is not there.
static long long Setting(const char* settings_json, const char* name) {
  char quoted[64];
  snprintf(quoted, sizeof(quoted), "\"%s\":", name);
  const char* found = strstr(settings_json, quoted);
  return found == NULL ? 0 : atoll(found + strlen(quoted));
}

static int Blocks(void* user, int32_t variant, const char* settings_json, int64_t grid[3],
                  phobos_sink* sink) {
  (void)variant;
  const Sizes* sizes = user;
  const long long block = Setting(settings_json, "BLOCK");
  if (block <= 0) {
    if (sink != NULL) phobos_sink_say(sink, "the kernel has no BLOCK");
    return 1;
  }
  grid[0] = (sizes->n + block - 1) / block;
  grid[1] = grid[2] = 1;
  return 0;
}

// What the kernel should compute; the tuner rejects variants that compute anything else.
static int Reference(void* user, void* const* arguments, phobos_expected* expected,
                     phobos_sink* sink) {
  const Sizes* sizes = user;
  const float* x = arguments[0];
  const float* y = arguments[1];
  const size_t bytes = (size_t)sizes->n * sizeof(float);
  float* sum = malloc(bytes);
  if (sum == NULL) {
    phobos_sink_say(sink, "out of memory");
    return 1;
  }
  for (int64_t i = 0; i < sizes->n; ++i) sum[i] = x[i] + y[i];
  const phobos_code code = phobos_expected_set(expected, "out", sum, bytes);
  free(sum);
  return code == PHOBOS_OK ? 0 : 1;
}

static int Fail(phobos_error* error) {
  if (error == NULL) return 1;  // told already
  fprintf(stderr, "vector_add_c: %s\n", error->message);
  if (error->remedy[0] != '\0') fprintf(stderr, "%s\n", error->remedy);
  phobos_error_free(error);
  return 1;
}

static char* ReadFile(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char* text = malloc(1 << 20);
  *size = text == NULL ? 0 : fread(text, 1, 1 << 20, file);
  fclose(file);
  return text;
}

// Prepares and launches; a plan that went out of date in between is prepared again.
static phobos_code Launch(phobos_kernel* kernel, const phobos_tune_request* request,
                          const Sizes* sizes, phobos_error** error) {
  phobos_code code = PHOBOS_LOOK_AGAIN;
  while (code == PHOBOS_LOOK_AGAIN) {
    phobos_plan* plan = NULL;
    code = phobos_kernel_prepare(kernel, &sizes->n, 1, NULL, request, &plan, NULL, error);
    if (code != PHOBOS_OK) return code;
    char* json = NULL;
    code = phobos_plan_json(plan, &json, error);
    int64_t grid[3];
    if (code == PHOBOS_OK && Blocks((void*)sizes, 0, json, grid, NULL) != 0) {
      fprintf(stderr, "vector_add_c: the kernel has no BLOCK\n");
      code = PHOBOS_INTERNAL;
    }
    if (code == PHOBOS_OK) code = phobos_plan_launch(plan, request->values, grid, NULL, error);
    if (code == PHOBOS_OK) printf("launched %s\n", json);
    phobos_text_free(json);
    phobos_plan_free(plan);
  }
  return code;
}

static int Run(phobos_kernel* kernel, const Sizes* sizes) {
  const size_t count = (size_t)sizes->n;
  float* x = malloc(3 * count * sizeof(float));
  if (x == NULL) return 1;
  float* y = x + count;
  float* out = y + count;
  for (size_t i = 0; i < count; ++i) {
    x[i] = (float)(i % 1000);
    y[i] = 0.5f;
    out[i] = 0;
  }
  const uint64_t values[3] = {(uint64_t)(uintptr_t)x, (uint64_t)(uintptr_t)y,
                              (uint64_t)(uintptr_t)out};
  phobos_tune_request request;
  memset(&request, 0, sizeof(request));
  request.struct_bytes = sizeof(request);
  request.values = values;
  request.value_count = 3;
  request.grid = Blocks;
  request.reference = Reference;
  request.user = (void*)sizes;
  phobos_error* error = NULL;
  int result = 0;
  if (Launch(kernel, &request, sizes, &error) != PHOBOS_OK) result = Fail(error);
  for (size_t i = 0; i < count && result == 0; ++i) {
    if (out[i] == x[i] + y[i]) continue;
    fprintf(stderr, "vector_add_c: the sum is wrong at %zu\n", i);
    result = 1;
  }
  free(x);
  return result;
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: vector_add_c KERNEL.py [N]\n");
    return 2;
  }
  const Sizes sizes = {argc == 3 ? atoll(argv[2]) : 1 << 20};
  size_t size = 0;
  char* source = ReadFile(argv[1], &size);
  if (source == NULL || sizes.n < 1) {
    fprintf(stderr, "vector_add_c: cannot read %s, or N is not at least 1\n", argv[1]);
    return 2;
  }
  phobos_error* error = NULL;
  phobos_client* client = NULL;
  phobos_kernel* kernel = NULL;
  int result = 0;
  if (phobos_client_open(NULL, &client, &error) != PHOBOS_OK ||
      phobos_kernel_open(client, source, size, argv[1], "add", NULL, &kernel, &error) !=
          PHOBOS_OK) {
    result = Fail(error);
  } else {
    result = Run(kernel, &sizes);
  }
  phobos_kernel_free(kernel);
  phobos_client_free(client);
  free(source);
  return result;
}
