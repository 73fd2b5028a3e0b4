/* Execution. What is small and has all it needs runs at once, in the calling thread, since waking another one costs more;
 * everything else runs on the client's queue once its arguments are ready, and its results are ready after that. How long a
 * program with loops takes, its last run tells.
 *
 * A run holds the blocks of its arguments and results, so that buffers may be deleted meanwhile. An error of the run, or
 * of an argument that never got contents, is found where the results' events are waited for. Only what is wrong with the
 * call itself is the call's error; then nothing has happened to the arguments.
 */
#include "python.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INLINE_COST 3e5 /* estimated nanoseconds up to which a run is not worth another thread */
#define ON_STACK 48     /* arguments and results up to which a call in the calling thread needs no memory for itself */

/* An argument in another memory order than the program's. */
struct relaid {
    struct relaid *next;
    size_t index;
    struct pjrt_shape *from, *to;
    struct pjrt_block *block;
};

struct run {
    struct pjrt_loaded *loaded;
    struct pjrt_context *context;
    struct pjrt_flight flight; /* if it runs later; its event: the results' */
    atomic_int pending;      /* arguments that are not ready, and 1 until all are looked at */
    _Atomic(struct pjrt_error *) error;
    struct relaid *relaid;
    struct pjrt_block **held; /* of arguments, then results */
    void **pointers;          /* likewise */
};

static void free_relaid(struct run *run) {
    while (run->relaid) {
        struct relaid *r = run->relaid;
        run->relaid = r->next;
        pjrt_shape_release(r->from);
        pjrt_block_release(r->block);
        free(r);
    }
}

static struct pjrt_error *lay_out(struct run *run) {
    for (struct relaid *r = run->relaid; r; r = r->next) {
        int64_t from[PJRT_MAX_RANK], to[PJRT_MAX_RANK];
        r->block = pjrt_block_new(run->loaded->client, r->to->nbytes);
        if (!r->block) return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for argument %zu in another layout", r->index);
        pjrt_shape_strides(r->from, from);
        pjrt_shape_strides(r->to, to);
        pjrt_copy_strided(r->block->data, to, run->pointers[r->index], from, r->to->dims, r->to->rank,
                          pjrt_type_size(r->to->type));
        run->pointers[r->index] = r->block->data;
    }
    return NULL;
}

/* Whether a call is not worth another thread. */
static bool is_small(struct pjrt_executable *e) {
    if (!isnan(e->cost)) return e->cost < INLINE_COST;
    long long took = atomic_load_explicit(&e->took, memory_order_relaxed);
    return took && (double)took < INLINE_COST;
}

/* Runs it on the calling thread, its arguments being ready. */
static struct pjrt_error *perform(struct run *run) {
    struct pjrt_executable *e = run->loaded->executable;
    struct pjrt_error *error = run->relaid ? lay_out(run) : NULL;
    if (!error)
        error = pjrt_run(e, run->context, run->pointers, run->pointers + e->num_arguments, run->held,
                         e->num_arguments + e->num_results);
    if (run->relaid) free_relaid(run);
    return error;
}

/* Later. */

static void release_held(struct run *run, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) pjrt_block_release(run->held[i]);
}

static void perform_queued(void *argument) {
    struct run *run = argument;
    struct pjrt_executable *e = run->loaded->executable;
    struct pjrt_error *error = atomic_load(&run->error);
    if (!error) error = perform(run);
    free_relaid(run);
    release_held(run, 0, e->num_arguments + e->num_results); /* before anybody knows: then they can be donated again */
    struct pjrt_event *done = run->flight.event;
    pjrt_event_finish(done, error);
    pjrt_queue_end(&run->flight);
    pjrt_event_release(done);
    pjrt_loaded_release(run->loaded);
    free(run);
}

/* An argument is ready, or never will be; the last one lets the run begin. */
static void on_argument(struct pjrt_error *error, void *argument) {
    struct run *run = argument;
    struct pjrt_error *none = NULL;
    if (error && !atomic_compare_exchange_strong(&run->error, &none, error)) pjrt_error_free(error);
    if (atomic_fetch_sub_explicit(&run->pending, 1, memory_order_acq_rel) > 1) return;
    struct pjrt_client *client = run->loaded->client;
    int failed = run->loaded->executable->calls_python ? pjrt_queue_aside(client, perform_queued, run)
                                                       : pjrt_queue_add(client, perform_queued, run);
    if (failed) perform_queued(run);
}

static void queue(struct run *run, struct pjrt_buffer *const *arguments, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct pjrt_event *ready = arguments[i]->ready;
        if (pjrt_event_is_over(ready) && !ready->error) continue;
        atomic_fetch_add_explicit(&run->pending, 1, memory_order_relaxed);
        struct pjrt_error *error = pjrt_event_then(ready, on_argument, run);
        if (error) { /* no memory to be told: wait here */
            pjrt_error_free(error);
            on_argument(pjrt_error_copy(pjrt_event_wait(ready)), run);
        }
    }
    on_argument(NULL, run);
}

/* Checks. */

static void write_shape(const struct pjrt_shape *shape, char *text, size_t size) {
    int n = snprintf(text, size, "%s[", pjrt_type_name(shape->type));
    for (int d = 0; d < shape->rank && n > 0 && (size_t)n < size; d++)
        n += snprintf(text + n, size - (size_t)n, d ? ",%lld" : "%lld", (long long)shape->dims[d]);
    if (n > 0 && (size_t)n < size) snprintf(text + n, size - (size_t)n, "]");
}

static bool same_array(const struct pjrt_shape *a, const struct pjrt_shape *b) {
    return a->type == b->type && a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

static bool same_order(const struct pjrt_shape *a, const struct pjrt_shape *b) {
    if ((a->row_major && b->row_major) || a->count <= 1) return true;
    int64_t sa[PJRT_MAX_RANK], sb[PJRT_MAX_RANK];
    pjrt_shape_strides(a, sa);
    pjrt_shape_strides(b, sb);
    for (int d = 0; d < a->rank; d++)
        if (a->dims[d] > 1 && sa[d] != sb[d]) return false;
    return true;
}

static struct pjrt_error *check_shape(struct run *run, size_t i, struct pjrt_buffer *buffer) {
    struct pjrt_executable *e = run->loaded->executable;
    struct pjrt_shape *wanted = e->arguments[i], *given = buffer->shape;
    bool is_nothing = given->type == PJRT_TOKEN && !wanted->count; /* what programs take for tokens */
    if (!same_array(wanted, given) && !is_nothing) {
        char texts[2][256];
        write_shape(wanted, texts[0], sizeof texts[0]);
        write_shape(given, texts[1], sizeof texts[1]);
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "argument %zu of %s: expected %s, got %s", i, e->name, texts[0], texts[1]);
    }
    if (is_nothing || same_order(wanted, given)) return NULL;
    struct relaid *r = malloc(sizeof *r);
    if (!r) return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for argument %zu in another layout", i);
    *r = (struct relaid){run->relaid, i, pjrt_shape_keep(given), wanted, NULL};
    run->relaid = r;
    return NULL;
}

/* Whether the call uses the argument's buffer up. */
static bool is_donated(const struct pjrt_executable *e, const struct pjrt_execute_options *options, size_t i) {
    if (!e->donated[i]) return false;
    for (size_t k = 0; options && k < options->num_non_donatable_input_indices; k++)
        if (options->non_donatable_input_indices[k] == (int64_t)i) return false;
    return true;
}

static bool is_among(struct pjrt_buffer *buffer, struct pjrt_buffer *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (list[i] == buffer) return true;
    return false;
}

static struct pjrt_error *gone(const struct pjrt_executable *e, const struct pjrt_execute_options *options,
                               struct pjrt_buffer *const *arguments, size_t i) {
    bool now = is_among(arguments[i], arguments, i); /* the same buffer, earlier */
    if (now && is_donated(e, options, i))
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "Attempt to donate the same buffer twice in Execute() (argument %zu of %s)",
                         i, e->name);
    if (now)
        return pjrt_fail(PJRT_INVALID_ARGUMENT,
                         "Attempt to use a buffer that was previously donated in the same call to Execute() "
                         "(argument %zu of %s)", i, e->name);
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "argument %zu of %s: the buffer has been deleted or donated", i, e->name);
}

/* Gives a block that was donated back to its buffer. */
static void restore(struct pjrt_buffer *buffer, struct pjrt_block *block) {
    while (atomic_flag_test_and_set_explicit(&buffer->busy, memory_order_acquire)) {
    }
    buffer->block = block;
    atomic_flag_clear_explicit(&buffer->busy, memory_order_release);
}

/* Arguments and results. */

/* Holds argument `i`; `*own`: the call may write into its memory. */
static struct pjrt_error *take_argument(struct run *run, const struct pjrt_execute_options *options,
                                        struct pjrt_buffer *const *arguments, size_t i, bool *own) {
    struct pjrt_executable *e = run->loaded->executable;
    struct pjrt_buffer *buffer = arguments[i];
    struct pjrt_error *error = buffer->shape == e->arguments[i] ? NULL : check_shape(run, i, buffer);
    if (error) return error;
    if (is_donated(e, options, i)) {
        run->held[i] = pjrt_buffer_donate(buffer, own);
        if (run->held[i] && !*own && is_among(buffer, arguments, i)) {
            restore(buffer, run->held[i]);
            run->held[i] = NULL;
            return pjrt_fail(PJRT_INVALID_ARGUMENT,
                             "Attempt to donate a buffer which is also used by the same call to Execute() "
                             "(argument %zu of %s)", i, e->name);
        }
    } else {
        run->held[i] = pjrt_buffer_hold(buffer);
    }
    if (!run->held[i]) return gone(e, options, arguments, i);
    run->pointers[i] = run->held[i]->data;
    return NULL;
}

/* Gives the first `count` arguments back as they were, and what was meant for results up. */
static void give_back(struct run *run, const struct pjrt_execute_options *options, struct pjrt_buffer *const *arguments,
                      size_t count) {
    struct pjrt_executable *e = run->loaded->executable;
    for (size_t i = 0; i < count; i++) {
        if (is_donated(e, options, i))
            restore(arguments[i], run->held[i]);
        else
            pjrt_block_release(run->held[i]);
        run->held[i] = NULL;
    }
    release_held(run, e->num_arguments, e->num_arguments + e->num_results);
    free_relaid(run);
}

static struct pjrt_error *take_all(struct run *run, const struct pjrt_execute_options *options,
                                   struct pjrt_buffer *const *arguments) {
    struct pjrt_executable *e = run->loaded->executable;
    struct hilo_program *p = e->program;
    Py_ssize_t alias = 0;
    bool own;
    for (size_t i = 0; i < e->num_arguments; i++) {
        own = false;
        struct pjrt_error *error = take_argument(run, options, arguments, i, &own);
        if (error) {
            give_back(run, options, arguments, i);
            return error;
        }
        if (!own) continue;
        for (alias = 0; alias < p->num_aliases && p->aliases[alias].argument != (Py_ssize_t)i; alias++) {
        }
        struct pjrt_block *block = run->held[i];
        size_t result = alias < p->num_aliases ? (size_t)p->aliases[alias].result : 0;
        if (alias < p->num_aliases && block->ours && !block->foreign && block->size == e->results[result]->nbytes) {
            pjrt_form_forget(block);
            run->held[e->num_arguments + result] = pjrt_block_keep(block);
        }
    }
    return NULL;
}

/* Memory for results that do not take an argument's place. */
static bool make_results(struct run *run) {
    struct pjrt_executable *e = run->loaded->executable;
    for (size_t i = e->num_arguments; i < e->num_arguments + e->num_results; i++) {
        if (!run->held[i]) run->held[i] = pjrt_block_new(run->loaded->client, e->results[i - e->num_arguments]->nbytes);
        if (!run->held[i]) return false;
        run->pointers[i] = run->held[i]->data;
    }
    return true;
}

/* The buffers of results. `ready` stays the caller's. */
static bool make_buffers(struct run *run, struct pjrt_event *ready, struct pjrt_buffer **results) {
    struct pjrt_executable *e = run->loaded->executable;
    struct pjrt_client *client = run->loaded->client;
    for (size_t i = 0; i < e->num_results; i++) {
        struct pjrt_memory *memory = &client->memories[e->result_kinds[i] - pjrt_memory_kinds];
        struct pjrt_block *block = pjrt_block_keep(run->held[e->num_arguments + i]);
        results[i] = pjrt_buffer_new(client, memory, pjrt_shape_keep(e->results[i]), block, pjrt_event_keep(ready));
        if (results[i]) continue;
        while (i--) pjrt_buffer_free(results[i]);
        return false;
    }
    return true;
}

/* Calls. */

static struct pjrt_error *exhausted(const struct pjrt_executable *e) {
    return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "%s: no memory for the results of a call", e->name);
}

static struct pjrt_error *call_now(struct run *run, const struct pjrt_execute_options *options,
                                   struct pjrt_buffer *const *arguments, struct pjrt_buffer **results,
                                   struct pjrt_event **complete) {
    struct pjrt_executable *e = run->loaded->executable;
    struct pjrt_loaded *loaded = run->loaded;
    if (!make_results(run) || !make_buffers(run, pjrt_event_done(), results)) {
        give_back(run, options, arguments, e->num_arguments);
        return exhausted(e);
    }
    if (e->calls_python) atomic_fetch_add(&loaded->references, 1); /* a function may give the executable up */
    struct pjrt_event *ready = pjrt_event_failed(perform(run));
    if (ready->error)
        for (size_t i = 0; i < e->num_results; i++) results[i]->ready = pjrt_event_keep(ready);
    release_held(run, 0, e->num_arguments + e->num_results);
    if (e->calls_python) pjrt_loaded_release(loaded);
    if (complete)
        *complete = ready;
    else
        pjrt_event_release(ready);
    return NULL;
}

static struct pjrt_error *call_later(struct run *run, const struct pjrt_execute_options *options,
                                     struct pjrt_buffer *const *arguments, struct pjrt_buffer **results,
                                     struct pjrt_event **complete) {
    struct pjrt_executable *e = run->loaded->executable;
    struct pjrt_event *done = run->flight.event = pjrt_event_new();
    if (!done || !make_results(run) || !make_buffers(run, done, results)) {
        give_back(run, options, arguments, e->num_arguments);
        pjrt_event_release(done);
        free(run);
        return exhausted(e);
    }
    if (complete) *complete = pjrt_event_keep(done);
    atomic_fetch_add(&run->loaded->references, 1);
    pjrt_queue_begin(run->loaded->client, &run->flight);
    queue(run, arguments, e->num_arguments);
    return NULL;
}

static bool all_ready(struct pjrt_buffer *const *arguments, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!pjrt_event_is_over(arguments[i]->ready) || arguments[i]->ready->error) return false;
    return true;
}

static struct pjrt_error *check_call(const struct pjrt_loaded_executable_execute_args *args) {
    const struct pjrt_executable *e = args->executable->executable;
    const struct pjrt_execute_options *options = args->options;
    if (atomic_load_explicit(&args->executable->deleted, memory_order_relaxed))
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "%s: the executable has been deleted", e->name);
    if (args->num_devices != 1)
        return pjrt_fail(PJRT_UNIMPLEMENTED, "%s: hilo runs on one device, not on %zu", e->name, args->num_devices);
    if (args->num_args != e->num_arguments)
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "%s takes %zu arguments, got %zu", e->name, e->num_arguments, args->num_args);
    if (options && (options->num_send_ops || options->num_recv_ops))
        return pjrt_fail(PJRT_UNIMPLEMENTED, "%s: hilo has no callbacks for send and recv", e->name);
    if (e->program->shapes)
        return pjrt_fail(PJRT_UNIMPLEMENTED, "%s: programs whose sizes are not known do not run through PJRT", e->name);
    return NULL;
}

static void prepare(struct run *run, struct pjrt_loaded *loaded, const struct pjrt_execute_options *options, void **room,
                    size_t count) {
    memset(run, 0, sizeof *run);
    run->loaded = loaded;
    run->context = options && PJRT_KNOWS(options, context) ? options->context : NULL;
    atomic_init(&run->pending, 1);
    run->held = (struct pjrt_block **)room;
    run->pointers = room + count;
    memset(room, 0, count * sizeof *room);
}

struct pjrt_error *pjrt_loaded_executable_execute(struct pjrt_loaded_executable_execute_args *args) {
    struct pjrt_error *error = check_call(args);
    if (error) return error;
    struct pjrt_loaded *loaded = args->executable;
    struct pjrt_executable *e = loaded->executable;
    struct pjrt_buffer *const *arguments = e->num_arguments ? args->argument_lists[0] : NULL;
    struct pjrt_buffer **results = e->num_results ? args->output_lists[0] : NULL;
    struct pjrt_event **complete = args->device_complete_events;
    size_t count = e->num_arguments + e->num_results;
    bool now = (is_small(e) || e->calls_python) && all_ready(arguments, e->num_arguments);
    if (now && count <= ON_STACK) {
        struct run run;
        void *room[2 * ON_STACK];
        prepare(&run, loaded, args->options, room, count);
        error = take_all(&run, args->options, arguments);
        return error ? error : call_now(&run, args->options, arguments, results, complete);
    }
    struct run *run = malloc(sizeof *run + 2 * count * sizeof(void *));
    if (!run) return exhausted(e);
    prepare(run, loaded, args->options, (void **)(run + 1), count);
    error = take_all(run, args->options, arguments);
    if (error || now) {
        if (!error) error = call_now(run, args->options, arguments, results, complete);
        free(run);
        return error;
    }
    return call_later(run, args->options, arguments, results, complete);
}
