/* Custom call targets in every native convention, for test_native.py. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hilo_custom_call.h"
#include "xla_ffi.h"

static int64_t size_of(const struct hilo_buffer *b) {
    int64_t n = 1;
    for (int32_t i = 0; i < b->rank; i++) n *= b->dims[i];
    return n;
}

/* results[0] = 2 * operands[0], of f32. */
int32_t twice(const struct hilo_call *call) {
    if (call->size < (int64_t)sizeof *call || call->num_operands != 1 || call->num_results != 1) return 100;
    if (call->operands[0].type != HILO_F32 || call->results[0].rank != call->operands[0].rank) return 101;
    const float *x = call->operands[0].data;
    float *y = call->results[0].data;
    for (int64_t i = 0; i < size_of(call->operands); i++) y[i] = 2 * x[i];
    return 0;
}

/* i64[3] or so: the dims of all operands, then of the results; then an array of 8 chars: the configuration. */
int32_t describe(const struct hilo_call *call) {
    int64_t *out = call->results[0].data;
    for (int64_t i = 0; i < call->num_operands; i++)
        for (int32_t d = 0; d < call->operands[i].rank; d++) *out++ = call->operands[i].dims[d];
    memset(call->results[1].data, 0, (size_t)size_of(&call->results[1]));
    if (call->config[call->config_size]) return 1;
    memcpy(call->results[1].data, call->config, (size_t)call->config_size);
    return 0;
}

/* The bytes of the operand as they lie in memory. */
int32_t bytes(const struct hilo_call *call) {
    memcpy(call->results[0].data, call->operands[0].data, (size_t)size_of(call->operands) * 4);
    return 0;
}

int32_t fail_plain(const struct hilo_call *call) {
    if (call->config_size) snprintf(call->message, (size_t)call->message_size, "no luck with %s", call->config);
    return -7;
}

/* Adds to the counter that `config` cannot change: effects, in order. */
int32_t log_count;
float logged[64];
int32_t note(const struct hilo_call *call) {
    logged[log_count++ & 63] = *(const float *)call->operands[0].data;
    return 0;
}

int32_t in_place(const struct hilo_call *call) {
    if (call->operands[0].data != call->results[0].data) return 1;
    float *x = call->results[0].data;
    for (int64_t i = 0; i < size_of(call->results); i++) x[i] += 1;
    return 0;
}

/* XLA's older conventions, on f32[3]. */
void XlaCustomCallStatusSetFailure(void *status, const char *message, size_t length);

void xla_one(float *out, const float **in) {
    for (int i = 0; i < 3; i++) out[i] = in[0][i] + in[1][i];
}

void xla_two_results(float **out, const float **in) {
    for (int i = 0; i < 3; i++) out[0][i] = in[0][i] + in[1][i], out[1][i] = in[0][i] - in[1][i];
}

void xla_status(float *out, const float **in, void *status) {
    if (in[0][0] < 0) XlaCustomCallStatusSetFailure(status, "negative!!", 8);
    xla_one(out, in);
}

void xla_unified(float *out, const float **in, const char *config, size_t size, void *status) {
    if (size == 0) XlaCustomCallStatusSetFailure(status, "empty", 5);
    xla_one(out, in);
    for (size_t i = 0; i < size; i++) out[0] += config[i];
}

/* XLA's FFI. */
static struct ffi_error *ffi_failure(const struct ffi_frame *frame, const char *message) {
    struct ffi_error_create a = {sizeof a, NULL, message, FFI_INVALID_ARGUMENT};
    return frame->api->error_create(&a);
}

static int is_metadata(struct ffi_frame *frame, int minor) {
    if (!frame->extensions || frame->extensions->type != FFI_METADATA) return 0;
    struct ffi_metadata *m = ((struct ffi_metadata_extension *)frame->extensions)->metadata;
    m->version.major = FFI_MAJOR, m->version.minor = minor;
    return 1;
}

static void *attribute(struct ffi_frame *frame, const char *name, int32_t type) {
    struct ffi_attributes *a = &frame->attributes;
    for (int64_t i = 0; i < a->count; i++)
        if (a->names[i]->length == strlen(name) && !memcmp(a->names[i]->data, name, a->names[i]->length))
            return a->types[i] == type ? a->values[i] : NULL;
    return NULL;
}

struct scalar {
    int32_t type;
    void *value;
};

/* result = operand * (factor : f32) + the sum of (add : array<i64>), for f32 of any shape. */
struct ffi_error *ffi_scale(struct ffi_frame *frame) {
    if (is_metadata(frame, 1)) return NULL;
    if (frame->size != offsetof(struct ffi_frame, future)) return ffi_failure(frame, "the frame has another size");
    if (frame->stage != FFI_EXECUTE) return ffi_failure(frame, "another stage");
    struct scalar *factor = attribute(frame, "factor", 3);
    if (!factor || factor->type != 11) return ffi_failure(frame, "factor is missing");
    struct {
        int32_t type;
        size_t size;
        int64_t *data;
    } *add = attribute(frame, "add", 1);
    struct ffi_buffer *in = frame->arguments.values[0], *out = frame->results.values[0];
    if (in->type != 11 || out->type != 11 || in->size != sizeof *in) return ffi_failure(frame, "f32 is wanted");
    int64_t n = 1;
    for (int64_t d = 0; d < in->rank; d++) n *= in->dims[d];
    float more = 0;
    for (size_t i = 0; add && i < add->size; i++) more += (float)add->data[i];
    for (int64_t i = 0; i < n; i++) ((float *)out->data)[i] = ((float *)in->data)[i] * *(float *)factor->value + more;
    return NULL;
}

struct ffi_error *ffi_fail(struct ffi_frame *frame) {
    return is_metadata(frame, 1) ? NULL : ffi_failure(frame, "refused by the handler");
}

struct ffi_error *ffi_old(struct ffi_frame *frame) {
    if (frame->extensions) ((struct ffi_metadata_extension *)frame->extensions)->metadata->version.major = 9;
    return NULL;
}

/* A state made once, which counts executions; a scratch allocation; a task; a future. */
int64_t alive, counter_type;
static void destroy(void *state) { alive--, free(state); }

struct ffi_error *ffi_make_counter(struct ffi_frame *frame) {
    if (is_metadata(frame, 3)) return NULL;
    if (frame->arguments.count) return ffi_failure(frame, "there are arguments at the first stage");
    struct ffi_type_info info = {sizeof info, NULL, destroy};
    struct ffi_type_register type = {sizeof type, NULL, {"counter", 7}, &counter_type, &info};
    struct ffi_error *error = frame->api->type_register(&type);
    if (error) return error;
    struct ffi_state state = {sizeof state, NULL, frame->context, FFI_INSTANTIATE, &counter_type, calloc(1, 8)};
    alive++;
    return frame->api->state_set(&state);
}

static void add_one(void *data) { ++*(int64_t *)data; }

static const struct ffi_api *api;

static void *finish(void *data) {
    struct ffi_future_set a = {sizeof a, NULL, data, NULL};
    api->future_set(&a);
    return NULL;
}

/* result (i64): how often it was executed. */
struct ffi_error *ffi_count(struct ffi_frame *frame) {
    if (is_metadata(frame, 3)) return NULL;
    api = frame->api;
    struct ffi_state state = {sizeof state, NULL, frame->context, FFI_INSTANTIATE, &counter_type, NULL};
    struct ffi_error *error = api->state_get(&state);
    if (error) return error;
    struct ffi_schedule task = {sizeof task, NULL, frame->context, add_one, state.state};
    if ((error = api->schedule(&task))) return error;
    struct ffi_memory scratch = {sizeof scratch, NULL, frame->context, 1000, 128, NULL};
    if ((error = api->memory_allocate(&scratch))) return error;
    memset(scratch.data, 1, 1000);
    if ((uintptr_t)scratch.data & 127) return ffi_failure(frame, "the alignment is wrong");
    struct ffi_memory_free give = {sizeof give, NULL, frame->context, 1000, scratch.data};
    if ((error = api->memory_free(&give))) return error;
    struct ffi_buffer *out = frame->results.values[0];
    *(int64_t *)out->data = *(int64_t *)state.state;
    struct ffi_future_create future = {sizeof future, NULL, NULL};
    if ((error = api->future_create(&future))) return error;
    frame->future = future.future;
    pthread_t thread;
    pthread_create(&thread, NULL, finish, future.future);
    pthread_detach(thread);
    return NULL;
}
