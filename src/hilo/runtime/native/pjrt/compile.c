/* Compilation. It needs Python's lock (the GIL), which the calling thread has or will get.
 *
 * Except where a host calls on a thread of its own while the one that has the lock waits for that: so does jaxlib when it
 * compiles for a topology by a client. Then nobody would ever go on, so that a compilation without a client to run on waits
 * for the lock for some time only, on a thread that can be left to wait.
 */
#define _GNU_SOURCE
#include "python.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static int patience = 30; /* seconds; a thread that works with the lock gives it to others every few milliseconds */

void pjrt_set_patience(int seconds) { patience = seconds; }

struct compilation {
    pthread_mutex_t lock;
    pthread_cond_t advanced;
    bool begun, over, given_up;
    struct pjrt_compile_args *args; /* the caller's: not after it gave up */
    struct pjrt_error *error;
};

static struct pjrt_error *compile(struct pjrt_compile_args *args) {
    return pjrt_python_compile(args->client, args->program, args->compile_options, args->compile_options_size,
                               &args->executable);
}

static void tell(struct compilation *c, bool *what) {
    pthread_mutex_lock(&c->lock);
    *what = true;
    pthread_cond_signal(&c->advanced);
    pthread_mutex_unlock(&c->lock);
}

static void destroy(struct compilation *c) {
    pthread_cond_destroy(&c->advanced);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void *compile_aside(void *argument) {
    struct compilation *c = argument;
    PyGILState_STATE state = PyGILState_Ensure();
    pthread_mutex_lock(&c->lock);
    bool late = c->given_up;
    c->begun = true;
    pthread_cond_signal(&c->advanced);
    pthread_mutex_unlock(&c->lock);
    if (!late) c->error = compile(c->args);
    PyGILState_Release(state);
    if (late)
        destroy(c);
    else
        tell(c, &c->over);
    return NULL;
}

/* Waits for the end, if it begins in time. */
static bool await(struct compilation *c) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += patience;
    pthread_mutex_lock(&c->lock);
    while (!c->begun && pthread_cond_timedwait(&c->advanced, &c->lock, &end) != ETIMEDOUT) {
    }
    c->given_up = !c->begun;
    while (c->begun && !c->over) pthread_cond_wait(&c->advanced, &c->lock);
    bool over = c->over;
    pthread_mutex_unlock(&c->lock);
    return over;
}

static struct pjrt_error *compile_with_patience(struct pjrt_compile_args *args) {
    struct compilation *c = calloc(1, sizeof *c);
    if (!c) return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a compilation");
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->advanced, NULL);
    c->args = args;
    pthread_t thread;
    if (pjrt_thread_start(&thread, compile_aside, c) < 0) {
        destroy(c);
        return compile(args);
    }
    if (!await(c)) { /* what is left belongs to the thread */
        pthread_detach(thread);
        return pjrt_fail(PJRT_DEADLINE_EXCEEDED, "hilo cannot compile: for %d seconds another thread has had Python's lock, "
                         "and seems to wait for this compilation", patience);
    }
    pthread_join(thread, NULL);
    struct pjrt_error *error = c->error;
    destroy(c);
    return error;
}

struct pjrt_error *pjrt_compile(struct pjrt_compile_args *args) {
    bool is_alone = !pjrt_python_alive() || PyGILState_Check();
    return is_alone ? compile(args) : compile_with_patience(args);
}

struct pjrt_error *pjrt_client_compile(struct pjrt_client_compile_args *args) {
    struct pjrt_executable *e;
    struct pjrt_error *error =
        pjrt_python_compile(args->client, args->program, args->compile_options, args->compile_options_size, &e);
    return error ? error : pjrt_loaded_new(args->client, e, &args->executable);
}
