/* The functions that a handler of XLA's FFI may call, for the host (xla_ffi.h). No Python here. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "xla_ffi.h"

/* Errors. XLA's own code takes errors apart as its own struct, which is a status, and frees them: ours start with what is
 * such a status as well (of this code, without a message), so that nothing worse than the loss of the message happens. */

struct ffi_error {
    uintptr_t status;
    char message[];
};

static uintptr_t status_of(int32_t code) { return (uintptr_t)(uint32_t)code << 2 | 1; }

static struct ffi_error *fail(int32_t code, const char *message) {
    size_t n = strlen(message) + 1;
    struct ffi_error *e = malloc(sizeof *e + n);
    if (!e) abort(); /* the interface has no way to say that there is no memory for an error */
    e->status = status_of(code);
    memcpy(e->message, message, n);
    return e;
}

static struct ffi_error *error_create(void *arguments) {
    struct ffi_error_create *a = arguments;
    return fail(a->code, a->message ? a->message : "");
}

static void error_message(void *arguments) {
    struct ffi_error_message *a = arguments;
    a->message = a->error->message;
}

static void error_destroy(void *arguments) { free(((struct ffi_error_destroy *)arguments)->error); }

/* Types of states. Numbers are never given back: libraries keep them in static variables, and may have got them from
 * XLA before. Ours begin where XLA's do not come. */

#define MAX_TYPES 1024
#define FIRST_TYPE ((int64_t)1 << 40)

static struct {
    char *name;
    int64_t number;
    void (*destroy)(void *object);
} types[MAX_TYPES];
static int num_types;
static pthread_mutex_t types_lock = PTHREAD_MUTEX_INITIALIZER;

const char *hilo_ffi_register_type(const char *name, size_t length, int64_t *type, const struct ffi_type_info *info) {
    const char *problem = NULL;
    pthread_mutex_lock(&types_lock);
    int k = 0;
    while (k < num_types && (strlen(types[k].name) != length || memcmp(types[k].name, name, length))) k++;
    if (k < num_types && *type && *type != types[k].number) {
        problem = "there is another type of this name";
    } else if (k == MAX_TYPES || (k == num_types && !(types[k].name = strndup(name, length)))) {
        problem = "there are too many types";
    } else {
        if (k == num_types) types[num_types++].number = *type ? *type : FIRST_TYPE + k;
        types[k].destroy = info ? info->destroy : NULL;
        *type = types[k].number;
    }
    pthread_mutex_unlock(&types_lock);
    return problem;
}

static struct ffi_error *type_register(void *arguments) {
    struct ffi_type_register *a = arguments;
    const struct ffi_type_info *info = a->size >= sizeof *a ? a->info : NULL;
    const char *problem = hilo_ffi_register_type(a->name.data, a->name.length, a->type, info);
    return problem ? fail(FFI_INVALID_ARGUMENT, problem) : NULL;
}

/* States of one call. */

static struct ffi_state_of *state_of(struct ffi_state *a) {
    return a->context && a->context->states && a->stage >= 0 && a->stage < FFI_EXECUTE ? &a->context->states[a->stage] : NULL;
}

static struct ffi_error *state_set(void *arguments) {
    struct ffi_state *a = arguments;
    if (a->size < sizeof *a) return fail(FFI_UNIMPLEMENTED, "states need version 0.3 of the interface");
    struct ffi_state_of *s = state_of(a);
    if (!s) return fail(FFI_INVALID_ARGUMENT, "this stage has no state");
    if (s->object) return fail(FFI_INVALID_ARGUMENT, "the state is set already");
    *s = (struct ffi_state_of){a->state, *a->type};
    return NULL;
}

static struct ffi_error *state_get(void *arguments) {
    struct ffi_state *a = arguments;
    if (a->size < sizeof *a) return fail(FFI_UNIMPLEMENTED, "states need version 0.3 of the interface");
    struct ffi_state_of *s = state_of(a);
    if (!s || !s->object) return fail(FFI_NOT_FOUND, "there is no state");
    if (s->type != *a->type) return fail(FFI_INVALID_ARGUMENT, "the state is of another type");
    a->state = s->object;
    return NULL;
}

void hilo_ffi_state_clear(struct ffi_state_of *state) {
    void (*destroy)(void *) = NULL;
    pthread_mutex_lock(&types_lock);
    for (int k = 0; state->object && k < num_types; k++)
        if (types[k].number == state->type) destroy = types[k].destroy;
    pthread_mutex_unlock(&types_lock);
    if (destroy) destroy(state->object);
    *state = (struct ffi_state_of){NULL, 0};
}

/* Memory and threads. Work that a handler schedules is done at once, by the thread that schedules it. */

static struct ffi_error *memory_allocate(void *arguments) {
    struct ffi_memory *a = arguments;
    size_t alignment = a->alignment < 64 ? 64 : a->alignment;
    if (alignment & (alignment - 1)) return fail(FFI_INVALID_ARGUMENT, "an alignment is a power of two");
    if (posix_memalign(&a->data, alignment, a->nbytes ? a->nbytes : 1)) return fail(FFI_EXHAUSTED, "there is no memory");
    return NULL;
}

static struct ffi_error *memory_free(void *arguments) {
    free(((struct ffi_memory_free *)arguments)->data);
    return NULL;
}

static struct ffi_error *schedule(void *arguments) {
    struct ffi_schedule *a = arguments;
    a->task(a->data);
    return NULL;
}

static struct ffi_error *threads(void *arguments) {
    *((struct ffi_threads *)arguments)->threads = 1;
    return NULL;
}

/* Futures. */

struct ffi_future {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int done;
    struct ffi_error *error;
};

static struct ffi_error *future_create(void *arguments) {
    struct ffi_future *f = malloc(sizeof *f);
    if (!f) return fail(FFI_EXHAUSTED, "there is no memory");
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->done = 0;
    f->error = NULL;
    ((struct ffi_future_create *)arguments)->future = f;
    return NULL;
}

static struct ffi_error *finish(struct ffi_future *f, struct ffi_error *error) {
    pthread_mutex_lock(&f->lock);
    f->done = 1;
    f->error = error;
    pthread_cond_signal(&f->changed); /* under the lock: the waiter frees it */
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static struct ffi_error *future_set(void *arguments) { return finish(((struct ffi_future_set *)arguments)->future, NULL); }

static struct ffi_error *future_fail(void *arguments) {
    struct ffi_future_set *a = arguments;
    return finish(a->future, a->error);
}

static struct ffi_error *wait_for(struct ffi_future *f) {
    pthread_mutex_lock(&f->lock);
    while (!f->done) pthread_cond_wait(&f->changed, &f->lock);
    struct ffi_error *error = f->error;
    pthread_mutex_unlock(&f->lock);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return error;
}

/* The rest. */

static struct ffi_error *handler_register(void *arguments) {
    (void)arguments;
    return fail(FFI_UNIMPLEMENTED, "register the handler with hilo.register_custom_call");
}

static struct ffi_error *stream_get(void *arguments) {
    (void)arguments;
    return fail(FFI_UNIMPLEMENTED, "the host has no streams");
}

_Thread_local struct ffi_user_data hilo_ffi_user_data;

static struct ffi_error *context_get(void *arguments) {
    struct ffi_context_get *a = arguments;
    a->data = a->context ? a->context->user_data : NULL;
    if (!a->data && hilo_ffi_user_data.get) a->data = hilo_ffi_user_data.get(hilo_ffi_user_data.owner, *a->type);
    return a->data ? NULL : fail(FFI_NOT_FOUND, "the execution has no such user data");
}

static struct ffi_error *run_id(void *arguments) {
    static _Atomic int64_t last;
    ((struct ffi_run_id *)arguments)->id = atomic_fetch_add(&last, 1) + 1;
    return NULL;
}

static struct ffi_error *device(void *arguments) {
    ((struct ffi_device *)arguments)->ordinal = 0;
    return NULL;
}

const struct ffi_api hilo_ffi_api = {
    .size = sizeof(struct ffi_api),
    .version = {sizeof(struct ffi_version), NULL, FFI_MAJOR, FFI_MINOR},
    .error_create = error_create,
    .error_message = error_message,
    .error_destroy = error_destroy,
    .handler_register = handler_register,
    .stream_get = stream_get,
    .type_register = type_register,
    .context_get = context_get,
    .state_set = state_set,
    .state_get = state_get,
    .memory_allocate = memory_allocate,
    .memory_free = memory_free,
    .schedule = schedule,
    .threads = threads,
    .future_create = future_create,
    .future_set = future_set,
    .future_fail = future_fail,
    .run_id = run_id,
    .device = device,
};

char *hilo_ffi_call(ffi_handler handler, struct ffi_frame *frame) {
    frame->size = offsetof(struct ffi_frame, future);
    frame->api = &hilo_ffi_api;
    frame->future = NULL;
    struct ffi_error *error = handler(frame);
    if (!error && frame->future) error = wait_for(frame->future);
    if (!error) return NULL;
    memmove(error, error->message, strlen(error->message) + 1);
    return (char *)error;
}
