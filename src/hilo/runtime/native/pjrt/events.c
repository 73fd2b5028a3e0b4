/* Events. One lock serves all of them: it is held for moments only, and never while callbacks run. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "pjrt.h"

struct pjrt_waiting {
    struct pjrt_waiting *next;
    pjrt_callback callback;
    void *user_arg;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_once_t forking = PTHREAD_ONCE_INIT;
static struct pjrt_event done = {.references = 1, .ready = 1};

static void acquire(void) { pthread_mutex_lock(&lock); }
static void release(void) { pthread_mutex_unlock(&lock); }
static void register_fork(void) { pthread_atfork(acquire, release, release); }

struct pjrt_event *pjrt_event_new(void) {
    pthread_once(&forking, register_fork);
    struct pjrt_event *event = calloc(1, sizeof *event);
    if (event) event->references = 1;
    return event;
}

struct pjrt_event *pjrt_event_done(void) { return &done; }

struct pjrt_event *pjrt_event_failed(struct pjrt_error *error) {
    struct pjrt_event *event = error ? pjrt_event_new() : NULL;
    if (!event) { /* without memory for an event the error is lost, but nobody waits for ever */
        pjrt_error_free(error);
        return &done;
    }
    event->error = error;
    event->ready = 1;
    return event;
}

struct pjrt_event *pjrt_event_keep(struct pjrt_event *event) {
    if (event != &done) atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
    return event;
}

void pjrt_event_release(struct pjrt_event *event) {
    if (!event || event == &done) return;
    if (atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) > 1) return;
    pjrt_error_free(event->error);
    while (event->waiting) { /* nobody will ever make it ready: whoever registered is told so */
        struct pjrt_waiting *w = event->waiting;
        event->waiting = w->next;
        w->callback(pjrt_fail(PJRT_CANCELLED, "the event was given up before it happened"), w->user_arg);
        free(w);
    }
    free(event);
}

void pjrt_event_finish(struct pjrt_event *event, struct pjrt_error *error) {
    acquire();
    struct pjrt_waiting *waiting = event->waiting;
    int first = !pjrt_event_is_over(event);
    if (first) {
        event->error = error;
        event->waiting = NULL;
        atomic_store_explicit(&event->ready, 1, memory_order_release);
        pthread_cond_broadcast(&changed);
    }
    release();
    if (!first) {
        pjrt_error_free(error);
        return;
    }
    struct pjrt_waiting *reversed = NULL; /* in the order in which they were registered */
    while (waiting) {
        struct pjrt_waiting *next = waiting->next;
        waiting->next = reversed;
        reversed = waiting;
        waiting = next;
    }
    while (reversed) {
        struct pjrt_waiting *next = reversed->next;
        reversed->callback(pjrt_error_copy(event->error), reversed->user_arg);
        free(reversed);
        reversed = next;
    }
}

void pjrt_event_lose(struct pjrt_event *event) {
    static struct pjrt_error *lost; /* one for all; there is one thread */
    if (!lost) lost = pjrt_fail(PJRT_CANCELLED, "the process forked while this was being computed");
    if (pjrt_event_is_over(event)) return;
    event->error = pjrt_error_copy(lost);
    event->waiting = NULL;
    event->ready = 1;
}

const struct pjrt_error *pjrt_event_wait(struct pjrt_event *event) {
    while (!pjrt_event_is_over(event)) {
        if (pjrt_queue_help()) continue;
        acquire();
        if (pjrt_queue_inside()) { /* what it waits for may be queued for this very thread, later */
            struct timespec soon;
            clock_gettime(CLOCK_REALTIME, &soon);
            soon.tv_nsec += 1000000;
            if (soon.tv_nsec >= 1000000000) soon.tv_sec += 1, soon.tv_nsec -= 1000000000;
            if (!pjrt_event_is_over(event)) pthread_cond_timedwait(&changed, &lock, &soon);
        } else {
            while (!pjrt_event_is_over(event)) pthread_cond_wait(&changed, &lock);
        }
        release();
    }
    return event->error;
}

struct pjrt_error *pjrt_event_then(struct pjrt_event *event, pjrt_callback callback, void *user_arg) {
    if (!pjrt_event_is_over(event)) {
        struct pjrt_waiting *w = malloc(sizeof *w);
        if (!w) return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a callback");
        acquire();
        if (!pjrt_event_is_over(event)) {
            *w = (struct pjrt_waiting){event->waiting, callback, user_arg};
            event->waiting = w;
            release();
            return NULL;
        }
        release();
        free(w);
    }
    callback(pjrt_error_copy(event->error), user_arg);
    return NULL;
}

/* The functions of the table. */

struct pjrt_error *pjrt_event_destroy(struct pjrt_event_destroy_args *args) {
    pjrt_event_release(args->event);
    return NULL;
}

struct pjrt_error *pjrt_event_is_ready(struct pjrt_event_is_ready_args *args) {
    args->is_ready = pjrt_event_is_over(args->event);
    return NULL;
}

struct pjrt_error *pjrt_event_error(struct pjrt_event_error_args *args) {
    if (!pjrt_event_is_over(args->event))
        return pjrt_fail(PJRT_FAILED_PRECONDITION, "the event is not ready: await it before asking for its error");
    return pjrt_error_copy(args->event->error);
}

struct pjrt_error *pjrt_event_await(struct pjrt_event_await_args *args) {
    return pjrt_error_copy(pjrt_event_wait(args->event));
}

struct pjrt_error *pjrt_event_on_ready(struct pjrt_event_on_ready_args *args) {
    return pjrt_event_then(args->event, args->callback, args->user_arg);
}

struct pjrt_error *pjrt_event_create(struct pjrt_event_create_args *args) {
    args->event = pjrt_event_new();
    return args->event ? NULL : pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for an event");
}

struct pjrt_error *pjrt_event_set(struct pjrt_event_set_args *args) {
    if (pjrt_event_is_over(args->event)) return pjrt_fail(PJRT_FAILED_PRECONDITION, "the event was set before");
    struct pjrt_error *error = NULL;
    if (args->error_code) error = pjrt_fail_text(args->error_code, args->error_message, args->error_message_size);
    pjrt_event_finish(args->event, error);
    return NULL;
}
