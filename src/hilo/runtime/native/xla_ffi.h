/* XLA's foreign function interface as handlers see it: the layout of its call frame and of the table of functions that
 * a handler may call, versions 0.0 to 0.3. Facts of xla/ffi/api/c_api.h of openxla/xla; names are ours. */
#ifndef HILO_XLA_FFI_H
#define HILO_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

#define FFI_MAJOR 0
#define FFI_MINOR 3

enum { FFI_INSTANTIATE, FFI_PREPARE, FFI_INITIALIZE, FFI_EXECUTE, FFI_STAGES };
enum { FFI_UNKNOWN = 2, FFI_INVALID_ARGUMENT = 3, FFI_NOT_FOUND = 5, FFI_EXHAUSTED = 8, FFI_UNIMPLEMENTED = 12 };
enum { FFI_BUFFER = 1, FFI_TOKEN = 17, FFI_METADATA = 1 };

struct ffi_extension {
    size_t size;
    int32_t type;
    struct ffi_extension *next;
};

/* Every struct that crosses the interface starts with these two. */
#define FFI_HEAD \
    size_t size; \
    struct ffi_extension *extensions

struct ffi_api;
struct ffi_context; /* one execution, or instantiation */
struct ffi_error;
struct ffi_future;

struct ffi_span {
    const char *data;
    size_t length;
};

struct ffi_version {
    FFI_HEAD;
    int32_t major, minor;
};

struct ffi_buffer {
    FFI_HEAD;
    int32_t type;
    void *data;
    int64_t rank;
    const int64_t *dims;
};

/* Arguments or results. */
struct ffi_values {
    FFI_HEAD;
    int64_t count;
    const int32_t *types;
    void **values;
};

struct ffi_attributes {
    FFI_HEAD;
    int64_t count;
    const int32_t *types;
    struct ffi_span **names;
    void **values;
};

struct ffi_frame {
    FFI_HEAD;
    const struct ffi_api *api;
    struct ffi_context *context;
    int32_t stage;
    struct ffi_values arguments, results;
    struct ffi_attributes attributes;
    struct ffi_future *future; /* a handler may answer with one; not counted in `size` */
};

typedef struct ffi_error *(*ffi_handler)(struct ffi_frame *frame);

struct ffi_metadata {
    size_t size;
    struct ffi_version version;
    uint32_t traits;
    int64_t state_type;
};

struct ffi_metadata_extension {
    struct ffi_extension base;
    struct ffi_metadata *metadata;
};

struct ffi_type_info {
    FFI_HEAD;
    void (*destroy)(void *object);
};

/* Arguments of the functions of the table. */
struct ffi_error_create {
    FFI_HEAD;
    const char *message;
    int32_t code;
};
struct ffi_error_message {
    FFI_HEAD;
    struct ffi_error *error;
    const char *message; /* out */
};
struct ffi_error_destroy {
    FFI_HEAD;
    struct ffi_error *error;
};
struct ffi_type_register {
    FFI_HEAD;
    struct ffi_span name;
    int64_t *type; /* 0: give it a number */
    const struct ffi_type_info *info;
};
struct ffi_context_get {
    FFI_HEAD;
    struct ffi_context *context;
    int64_t *type;
    void *data; /* out */
};
struct ffi_state {
    FFI_HEAD;
    struct ffi_context *context;
    int32_t stage;
    int64_t *type;
    void *state; /* in, or out */
};
struct ffi_memory {
    FFI_HEAD;
    struct ffi_context *context;
    size_t nbytes;
    size_t alignment;
    void *data; /* out */
};
struct ffi_memory_free {
    FFI_HEAD;
    struct ffi_context *context;
    size_t nbytes;
    void *data;
};
struct ffi_schedule {
    FFI_HEAD;
    struct ffi_context *context;
    void (*task)(void *data);
    void *data;
};
struct ffi_threads {
    FFI_HEAD;
    struct ffi_context *context;
    int64_t *threads; /* out */
};
struct ffi_future_create {
    FFI_HEAD;
    struct ffi_future *future; /* out */
};
struct ffi_future_set {
    FFI_HEAD;
    struct ffi_future *future;
    struct ffi_error *error; /* of a failure only; ours from then on */
};
struct ffi_run_id {
    FFI_HEAD;
    struct ffi_context *context;
    int64_t id; /* out */
};
struct ffi_device {
    FFI_HEAD;
    struct ffi_context *context;
    int32_t ordinal; /* out */
};

typedef struct ffi_error *(*ffi_function)(void *arguments);

struct ffi_api {
    FFI_HEAD;
    struct ffi_version version;
    const void *internal;
    ffi_function error_create;
    void (*error_message)(void *arguments);
    void (*error_destroy)(void *arguments);
    ffi_function handler_register, stream_get, type_register, context_get, state_set, state_get, memory_allocate, memory_free,
        schedule, threads, future_create, future_set, future_fail, run_id, device;
};

/* What is behind the opaque names. */
struct ffi_state_of {
    void *object;
    int64_t type;
};

struct ffi_context {
    struct ffi_state_of *states; /* of each stage before execution */
    void *user_data;             /* of the call: for whatever type a handler asks; or NULL */
};

/* User data of the execution that a thread is in, by type; whoever runs a program sets it around the run. */
struct ffi_user_data {
    void *(*get)(void *owner, int64_t type); /* NULL: there is none */
    void *owner;
};
extern _Thread_local struct ffi_user_data hilo_ffi_user_data;

extern const struct ffi_api hilo_ffi_api;

/* Calls a handler for one stage. NULL, or the reason why it failed, for free(). Waits for a future. */
char *hilo_ffi_call(ffi_handler handler, struct ffi_frame *frame);

/* Gives a type of states its number, if it has none, and notes how to destroy it; NULL, or the problem. */
const char *hilo_ffi_register_type(const char *name, size_t length, int64_t *type, const struct ffi_type_info *info);

/* Destroys an object that a handler gave as its state. */
void hilo_ffi_state_clear(struct ffi_state_of *state);

#endif
