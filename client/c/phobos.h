// SPDX-License-Identifier: Apache-2.0
//
// The C face of phobos-tuner (libphobos.so): find, tune and launch kernels. Bindings of other
// languages stand on this. It is not the daemon's wire (proto/phobos/tuner/v1) and starts no thread
// but those that run blocks of a kernel.
//
// Conventions
// 1. A call that can fail returns a phobos_code: PHOBOS_OK, or why not. It then fills *error with
//    an error that the caller frees by phobos_error_free; with error == NULL it does not. *error is
//    NULL after PHOBOS_OK, PHOBOS_MISS and PHOBOS_LOOK_AGAIN, which are answers, not errors.
//    Out-values are set on PHOBOS_OK, else NULL.
// 2. Handles are opaque. What a call gives out is the caller's, to be freed by the function named
//    after its type; each of those takes NULL. Handles may be freed in any order: each keeps alive
//    what it needs of the others.
// 3. Texts are UTF-8. A char* that is given out is freed by phobos_text_free; a const char* belongs
//    to the object it came from. Texts passed in are copied; what an error repeats of one that is
//    no UTF-8 is escaped, "\xff".
// 4. Every call may be made from any thread, at the same time, also on the same handle; a handle is
//    freed when no other thread uses it. Callbacks run on the calling thread, inside the call, and
//    must not throw or longjmp.
// 5. fork(): a child may go on using what its parent opened; it connects by itself. But CUDA works
//    in no child of a process that used it: there a launch on a GPU fails and says so.
// 6. Structs that are passed in start with struct_bytes = sizeof(the struct), so that fields can be
//    added at their end. Zero in a field means its default, but where the field has none.
// 7. JSON is compact, in the field names of the messages in proto/: numbers are numbers (int64
//    too), enum values are lower-case words without their prefix ("timed", "race_free", "f32"), an
//    empty text or list is left out. Constants, extents and keys are one object in order,
//    {"BLOCK": 256, "PRECISION": "tf32"}; a float has a point or an exponent, or is one of the
//    texts "nan", "inf", "-inf".
#ifndef PHOBOS_CLIENT_C_PHOBOS_H_
#define PHOBOS_CLIENT_C_PHOBOS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Counts of extents and of values are 0 to this, else PHOBOS_INVALID_ARGUMENT; the arrays hold as
// many.
#define PHOBOS_MOST_PARAMETERS 4096

// The release, "1.0.0". Static.
const char* phobos_version(void);

// The numbers below 100 are gRPC's canonical codes.
typedef int32_t phobos_code;
enum {
  PHOBOS_OK = 0,
  PHOBOS_CANCELLED = 1,
  PHOBOS_UNKNOWN = 2,
  PHOBOS_INVALID_ARGUMENT = 3,
  PHOBOS_DEADLINE_EXCEEDED = 4,
  PHOBOS_NOT_FOUND = 5,
  PHOBOS_ALREADY_EXISTS = 6,
  PHOBOS_PERMISSION_DENIED = 7,
  PHOBOS_RESOURCE_EXHAUSTED = 8,
  PHOBOS_FAILED_PRECONDITION = 9,
  PHOBOS_ABORTED = 10,
  PHOBOS_OUT_OF_RANGE = 11,
  PHOBOS_UNIMPLEMENTED = 12,
  PHOBOS_INTERNAL = 13,
  PHOBOS_UNAVAILABLE = 14,
  PHOBOS_DATA_LOSS = 15,
  PHOBOS_MISS = 100,        // there is no Result for this key
  PHOBOS_LOOK_AGAIN = 101,  // nothing was launched: the plan is out of date, prepare another
};

// Why a call failed. Texts are never NULL; those that do not apply are "".
typedef struct phobos_error {
  phobos_code code;
  const char* reason;         // ErrorReason of the wire as a word: "no_winner", "race"
  const char* message;        // what was wrong, for a person; may have several lines
  const char* kernel;         // the kernel's name
  const char* key;            // "N=1024"
  const char* remedy;         // one sentence: what to do
  const char* variants_json;  // for "no_winner" the list of all variants, as in a Result; else "[]"
} phobos_error;

void phobos_error_free(phobos_error* error);
void phobos_text_free(char* text);

// The connection to the daemon of this machine, and the threads that run blocks on the host chip.
typedef struct phobos_client phobos_client;

typedef struct phobos_client_options {
  size_t struct_bytes;
  // NULL: $PHOBOS_SOCKET, else the system daemon's, else the user's own.
  const char* socket;
  // phobosd, to be started when no daemon answers. NULL: $PHOBOS_DAEMON, else next to this library
  // (../bin, or the same folder), else in $PATH.
  const char* daemon;
  // Who calls, "python 1.0.0". NULL: "c" and the version.
  const char* client_name;
  // 1: never start a daemon (as PHOBOS_AUTOSTART=0 does).
  int32_t no_autostart;
  // Threads of the pool; 1024 at most are started. 0: $PHOBOS_THREADS, else as many as tunes use.
  int32_t threads;
  // Called at least every 200 ms while a call waits for the daemon. Not 0: that call gives
  // PHOBOS_CANCELLED.
  int (*interrupted)(void* user);
  // Called once for each thing the user should know that is no error ("add: not proved free of
  // races"). The text lives for the call. NULL: a line on stderr.
  void (*warn)(void* user, const char* text);
  void* user;
} phobos_client_options;

// Does not connect: the first call that needs the daemon does. options may be NULL.
phobos_code phobos_client_open(const phobos_client_options* options, phobos_client** client,
                               phobos_error** error);
void phobos_client_free(phobos_client* client);

// What the daemon said of itself, HelloResponse and "socket", the path. Connects.
phobos_code phobos_client_hello_json(phobos_client* client, char** json, phobos_error** error);

// The card whose memory an address is: its ordinal, as CUDA numbers the cards that this process
// sees; -1: the address is the host's.
phobos_code phobos_card_of(phobos_client* client, uint64_t address, int32_t* ordinal,
                           phobos_error** error);

// The uuid of a card, as phobos_kernel_open takes it. PHOBOS_FAILED_PRECONDITION: the card cannot
// be read, and why.
phobos_code phobos_card_uuid(phobos_client* client, int32_t ordinal, char** uuid,
                             phobos_error** error);

// One kernel of a source text, on one device.
typedef struct phobos_kernel phobos_kernel;

// source: the whole file's text, 1 MiB at most. device_uuid: a GPU, "GPU-..." as nvidia-smi shows
// it; NULL: the host chip. Asks nobody: an error in the text shows at the first call below.
phobos_code phobos_kernel_open(phobos_client* client, const char* source, size_t source_bytes,
                               const char* file_name, const char* kernel_name,
                               const char* device_uuid, phobos_kernel** kernel,
                               phobos_error** error);
void phobos_kernel_free(phobos_kernel* kernel);

// KernelDescription of proto/phobos/compiler/v1/manifest.proto. Asked of the daemon once.
phobos_code phobos_kernel_describe_json(phobos_kernel* kernel, char** json, phobos_error** error);

// One variant, loaded, for one set of extents.
typedef struct phobos_plan phobos_plan;
void phobos_plan_free(phobos_plan* plan);

// Runs the plan's kernel; never talks to the daemon. On the host chip it is done on return, and
// stream is NULL. On a GPU it is queued on stream, a CUstream (NULL: the default one), in the
// thread's current context, or the card's primary one where none of this card is current; the first
// launch in a context loads it there. values: one a parameter in the order of declaration, a
// tensor's address or a scalar's bits (zero-extended). A tensor must be as large as the plan's
// extents say. grid: x, y, z; with a zero among them nothing is launched, which succeeds.
// PHOBOS_INVALID_ARGUMENT, naming the promise, the parameter and the value: an impossible grid, an
// address that breaks @ph.aligned or the alignment of an element, is not the card's, a written
// tensor that overlaps another parameter, a ph.assume that does not hold; nothing was launched
// then. PHOBOS_FAILED_PRECONDITION: stream is being captured, and nothing is loaded in the context.
// While stream is being captured the answer is never PHOBOS_LOOK_AGAIN.
phobos_code phobos_plan_launch(phobos_plan* plan, const uint64_t* values, const int64_t grid[3],
                               void* stream, phobos_error** error);

// {"variant": 2, "settings": {..}, "origin": "winner" | "first_choices" | "variant", "generation":
// 3, "chip": .., "threads": .., "artifact_path": .., "substitution": why this is not the winner}.
phobos_code phobos_plan_json(const phobos_plan* plan, char** json, phobos_error** error);

// The outcome of a tune.
typedef struct phobos_result phobos_result;
void phobos_result_free(phobos_result* result);

// Result of proto/phobos/tuner/v1/types.proto, whole, samples included, and "cached": true where a
// stored one answered.
phobos_code phobos_result_json(const phobos_result* result, char** json, phobos_error** error);

// The same as a protobuf message, to be stored or sent elsewhere for phobos_kernel_adopt. *bytes
// belongs to the result.
phobos_code phobos_result_bytes(const phobos_result* result, const uint8_t** bytes, size_t* size,
                                phobos_error** error);

// Takes the words of a callback that fails.
typedef struct phobos_sink phobos_sink;
void phobos_sink_say(phobos_sink* sink, const char* message);

// Fills grid with the number of blocks for one variant and returns 0; or says why there is none and
// returns 1: that variant is "grid_error" then, the others go on. settings_json has the variant's
// constants and lives for the call.
typedef int (*phobos_grid_function)(void* user, int32_t variant, const char* settings_json,
                                    int64_t grid[3], phobos_sink* sink);

// Takes one tensor of a reference's answer; copies the bytes. PHOBOS_INVALID_ARGUMENT, which also
// fails the tune: no tensor of that name that the kernel writes, or not its size.
typedef struct phobos_expected phobos_expected;
phobos_code phobos_expected_set(phobos_expected* expected, const char* parameter, const void* bytes,
                                size_t size);

// Computes what the kernel should. arguments: one a parameter; for a tensor the address of a copy
// that the reference may change, valid during the call; for a scalar the address of its value.
// Calls phobos_expected_set for every tensor that the kernel writes and returns 0; or says why not
// and returns 1. May be called twice in a tune.
typedef int (*phobos_reference_function)(void* user, void* const* arguments,
                                         phobos_expected* expected, phobos_sink* sink);

typedef struct phobos_progress {
  size_t struct_bytes;
  const char* phase;  // "queued", "compile", "upload", "reference", "check", "warm_up", "timing",
                      // "store"; "" at first
  int32_t done;       // of total: variants, rounds, or milliseconds of the warm-up
  int32_t total;
  int64_t best_ns;  // fastest sample so far; 0: none
  int32_t best_variant;
  int32_t queue_position;  // 0: running
  int64_t estimate_ms;     // until the Result; 0: not known
  int64_t elapsed_ms;      // since the call began
  int32_t leads;     // 1: this caller's arguments are tuned on; 0: it waits for another's tune
  const char* note;  // what holds it up, where that is out of the ordinary; "": nothing does
} phobos_progress;

// Called at least every 200 ms of a tune (but not while the reference runs), also when nothing is
// new. Not 0 cancels: the call gives PHOBOS_CANCELLED. The struct lives for the call.
typedef int (*phobos_progress_function)(void* user, const phobos_progress* progress);

// Where the reference's copy of a tensor shall be, by the parameter's index: private anonymous
// memory, as mmap gives it, of `bytes` and what is left of the last page; where it does not begin
// on a page, the call that tunes gives PHOBOS_INVALID_ARGUMENT. It is its owner's, who may unmap it
// when the reference returned or that call ended. Other pages may be laid over it, copy on write,
// which are only good until that call ends: who keeps the memory longer, or forks a child that
// does, writes to each page while the reference runs. Asked for what is large or on a card, and
// anew for each call of the reference. NULL: the library's own memory, which ends with the
// reference's call.
typedef void* (*phobos_memory_function)(void* user, int32_t parameter, size_t bytes);

typedef struct phobos_tune_request {
  size_t struct_bytes;
  const int64_t* extents;  // values of the description's extents, in its order
  int32_t extent_count;
  int32_t value_count;
  const uint64_t* values;               // as in phobos_plan_launch; the arrays are only read
  phobos_grid_function grid;            // no default
  phobos_reference_function reference;  // no default
  phobos_progress_function progress;    // NULL: none
  void* user;
  const double* rtol;  // NULL: the type's own. May only widen
  const double* atol;
  int32_t no_flush_l2;       // 1: times with warm caches
  int32_t tie_break;         // 0: the daemon's choice; 1: fastest; 2: first within noise
  int32_t force;             // 1: only a Result newer than the last seen here, or the stored one
  int64_t queue_timeout_ms;  // 0: the daemon's default, here and below
  int64_t run_timeout_ms;
  int64_t upload_timeout_ms;
  int64_t reference_timeout_ms;
  // Of a GPU: the CUstream on which the arguments were written, which is waited for. NULL: the
  // default one.
  void* stream;
  phobos_memory_function memory;  // NULL: none
} phobos_tune_request;

// Tunes; or takes the current Result where it was made with the same options; or joins the tune of
// that key that is under way. From then on this process launches the winner at this key: older
// plans of the key give PHOBOS_LOOK_AGAIN. result and plan may be NULL. Fails with reason
// "no_winner" where no variant passed.
phobos_code phobos_kernel_tune(phobos_kernel* kernel, const phobos_tune_request* request,
                               phobos_result** result, phobos_plan** plan, phobos_error** error);

// As phobos_kernel_tune, at low priority, and returns as soon as the daemon owns all that it needs.
phobos_code phobos_kernel_warm(phobos_kernel* kernel, const phobos_tune_request* request,
                               phobos_error** error);

// The plan of a launch, by the rules of `policy`, "auto", "frozen" or "off" (NULL: $PHOBOS_TUNE,
// else "auto"):
//   there is a Result           the winner, whatever the policy
//   none, auto, a reference     tunes, then the winner
//   none, auto, no reference    first choices: each constant's first value
//   none, frozen                PHOBOS_FAILED_PRECONDITION, naming the key
//   none, off                   first choices
// reference: NULL where there is none; else as for a tune (its own extents are not looked at); with
// a NULL function only its stream counts. While that stream is being captured nothing is looked up,
// tuned or loaded: what the process has is taken, else PHOBOS_FAILED_PRECONDITION. A
// winner stays this process's at its key until a tune or phobos_kernel_adopt replaces it. A plan of
// first choices gives PHOBOS_LOOK_AGAIN at its first launch more than a second after it was looked
// up. No word to the daemon where this process has the plan. *result is what a tune made by this
// call gave, else NULL; result may be NULL.
phobos_code phobos_kernel_prepare(phobos_kernel* kernel, const int64_t* extents,
                                  int32_t extent_count, const char* policy,
                                  const phobos_tune_request* reference, phobos_plan** plan,
                                  phobos_result** result, phobos_error** error);

// The winner, or PHOBOS_MISS. Never tunes, never takes first choices.
phobos_code phobos_kernel_find(phobos_kernel* kernel, const int64_t* extents, int32_t extent_count,
                               phobos_plan** plan, phobos_error** error);

// The variant of that index (0: first choices), compiled and race-checked, but neither checked nor
// timed.
phobos_code phobos_kernel_variant(phobos_kernel* kernel, const int64_t* extents,
                                  int32_t extent_count, int32_t variant, phobos_plan** plan,
                                  phobos_error** error);

// The current Result at these extents, or PHOBOS_MISS. An extent outside the key may be -1: any.
phobos_code phobos_kernel_result(phobos_kernel* kernel, const int64_t* extents,
                                 int32_t extent_count, phobos_result** result,
                                 phobos_error** error);

// Gives the daemon a Result made elsewhere (phobos_result_bytes), for example by rank 0, and uses
// it from now on.
phobos_code phobos_kernel_adopt(phobos_kernel* kernel, const uint8_t* bytes, size_t size,
                                phobos_error** error);

#ifdef __cplusplus
}
#endif

#endif  // PHOBOS_CLIENT_C_PHOBOS_H_
