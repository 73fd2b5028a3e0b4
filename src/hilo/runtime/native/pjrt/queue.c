/* Work that runs later: one thread per client takes it, in order. The thread starts with the first piece of work. A
 * queue lives as long as its client's struct: for ever.
 *
 * Work is queued when all that it needs is there, so that it never waits for work behind it. Only a Python function that a
 * program calls may wait, for anything and in ways that we do not see: such work gets a thread of its own.
 *
 * A forked child has no thread: it starts with empty queues, and what was queued or running in the parent never happens.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>

#include "python.h"

#define MOST_IN_FLIGHT 32

struct work {
    struct work *next;
    struct pjrt_queue *queue;
    void (*run)(void *argument);
    void *argument;
};

struct pjrt_queue {
    struct pjrt_queue *next; /* among all */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* work was added, or the queue closed */
    pthread_cond_t advanced; /* work was done */
    struct work *first, **end;
    struct pjrt_flight *flights;
    int num_flights;
    int running, sleeping, crowding; /* pieces of work; threads that wait for work, and for less of it */
    bool started, closing;
    pthread_t thread;
    unsigned long done, awaited; /* pieces of work that were done; and how many must be before Python ends */
};

static struct pjrt_queue *queues;
static pthread_mutex_t queues_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t forking = PTHREAD_ONCE_INIT;
static _Thread_local struct pjrt_queue *mine;   /* which the calling thread works on */
static _Thread_local struct pjrt_queue *beside; /* or for which it does one piece of work */

/* Forks. */

static void before_fork(void) {
    pthread_mutex_lock(&queues_lock);
    for (struct pjrt_queue *q = queues; q; q = q->next) pthread_mutex_lock(&q->lock);
}

static void after_fork(void) {
    for (struct pjrt_queue *q = queues; q; q = q->next) pthread_mutex_unlock(&q->lock);
    pthread_mutex_unlock(&queues_lock);
}

static void empty(struct pjrt_queue *q) {
    pthread_cond_init(&q->changed, NULL);
    pthread_cond_init(&q->advanced, NULL);
    q->first = NULL;
    q->end = &q->first;
    q->flights = NULL;
    q->num_flights = q->running = q->sleeping = q->crowding = 0;
    q->started = false;
}

static void in_child(void) {
    for (struct pjrt_queue *q = queues; q; q = q->next) {
        for (struct pjrt_flight *f = q->flights; f; f = f->next) pjrt_event_lose(f->event);
        empty(q); /* what was queued is lost, with its memory */
    }
    mine = beside = NULL;
    after_fork();
}

static void register_fork(void) {
    pjrt_event_release(pjrt_event_new()); /* events register first, and are usable again first */
    pthread_atfork(before_fork, after_fork, in_child);
}

/* The thread. */

/* Takes the first piece of work. Needs the lock. */
static struct work *take(struct pjrt_queue *q) {
    struct work *work = q->first;
    if (!work) return NULL;
    q->first = work->next;
    if (!q->first) q->end = &q->first;
    q->running++;
    return work;
}

/* Does a piece of work that was taken. Needs the lock, which it gives up meanwhile. */
static void perform(struct pjrt_queue *q, struct work *work) {
    pthread_mutex_unlock(&q->lock);
    work->run(work->argument);
    free(work);
    pthread_mutex_lock(&q->lock);
    q->running--;
    q->done++;
    if (q->crowding) pthread_cond_broadcast(&q->advanced);
}

static void *work_on(void *argument) {
    struct pjrt_queue *q = mine = argument;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        struct work *work = take(q);
        if (work) {
            perform(q, work);
        } else if (q->closing) {
            q->closing = q->started = false;
            break;
        } else {
            q->sleeping++;
            pthread_cond_wait(&q->changed, &q->lock);
            q->sleeping--;
        }
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static void *work_aside(void *argument) {
    struct work *work = argument;
    struct pjrt_queue *q = beside = work->queue;
    pthread_mutex_lock(&q->lock);
    perform(q, work);
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

int pjrt_thread_start(pthread_t *thread, void *(*run)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) pthread_setname_np(*thread, "hilo-queue");
    return failed ? -1 : 0;
}

static struct pjrt_queue *queue_of(struct pjrt_client *client) {
    pthread_once(&forking, register_fork);
    pthread_mutex_lock(&client->lock);
    struct pjrt_queue *q = client->queue;
    if (!q && (q = calloc(1, sizeof *q))) {
        pthread_mutex_init(&q->lock, NULL);
        empty(q);
        pthread_mutex_lock(&queues_lock);
        q->next = queues;
        queues = q;
        pthread_mutex_unlock(&queues_lock);
        client->queue = q;
    }
    pthread_mutex_unlock(&client->lock);
    return q;
}

int pjrt_queue_add(struct pjrt_client *client, void (*run)(void *argument), void *argument) {
    struct pjrt_queue *q = queue_of(client);
    struct work *work = q ? malloc(sizeof *work) : NULL;
    if (!work) return -1;
    *work = (struct work){NULL, q, run, argument};
    pthread_mutex_lock(&q->lock);
    if (!q->started) q->started = pjrt_thread_start(&q->thread, work_on, q) == 0;
    if (!q->started) {
        pthread_mutex_unlock(&q->lock);
        free(work);
        return -1;
    }
    *q->end = work;
    q->end = &work->next;
    if (q->sleeping) pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return 0;
}

int pjrt_queue_aside(struct pjrt_client *client, void (*run)(void *argument), void *argument) {
    struct pjrt_queue *q = queue_of(client);
    struct work *work = q ? malloc(sizeof *work) : NULL;
    if (!work) return -1;
    *work = (struct work){NULL, q, run, argument};
    pthread_t thread;
    pthread_mutex_lock(&q->lock);
    int failed = pjrt_thread_start(&thread, work_aside, work);
    if (!failed) q->running++;
    pthread_mutex_unlock(&q->lock);
    if (failed)
        free(work);
    else
        pthread_detach(thread);
    return failed;
}

/* Whether very much is in flight, and the thread gets on with it: what everything waits for may have to come from the
 * calling thread. Needs the lock. */
static bool is_crowded(const struct pjrt_queue *q) {
    return !mine && q->num_flights >= MOST_IN_FLIGHT && (q->first || q->running);
}

void pjrt_queue_begin(struct pjrt_client *client, struct pjrt_flight *flight) {
    struct pjrt_queue *q = flight->queue = queue_of(client);
    if (!q) return; /* without memory for a queue, everything is done at once */
    void *python = NULL;
    pthread_mutex_lock(&q->lock);
    if (is_crowded(q)) {
        pthread_mutex_unlock(&q->lock);
        python = pjrt_python_pause(); /* work may need the GIL */
        pthread_mutex_lock(&q->lock);
        q->crowding++;
        while (is_crowded(q)) pthread_cond_wait(&q->advanced, &q->lock);
        q->crowding--;
    }
    flight->next = q->flights;
    flight->place = &q->flights;
    if (q->flights) q->flights->place = &flight->next;
    q->flights = flight;
    q->num_flights++;
    pthread_mutex_unlock(&q->lock);
    pjrt_python_resume(python);
}

void pjrt_queue_end(struct pjrt_flight *flight) {
    struct pjrt_queue *q = flight->queue;
    if (!q) return;
    pthread_mutex_lock(&q->lock);
    *flight->place = flight->next;
    if (flight->next) flight->next->place = flight->place;
    q->num_flights--;
    pthread_mutex_unlock(&q->lock);
}

void pjrt_queues_mark(void) {
    pthread_mutex_lock(&queues_lock);
    for (struct pjrt_queue *q = queues; q; q = q->next) {
        pthread_mutex_lock(&q->lock);
        q->awaited = q->done + (unsigned long)q->running;
        for (struct work *w = q->first; w; w = w->next) q->awaited++;
        pthread_mutex_unlock(&q->lock);
    }
    pthread_mutex_unlock(&queues_lock);
}

bool pjrt_queues_are_idle(void) {
    bool idle = true;
    pthread_mutex_lock(&queues_lock);
    for (struct pjrt_queue *q = queues; q && idle; q = q->next) {
        pthread_mutex_lock(&q->lock);
        idle = (!q->first && !q->running) || (long)(q->done - q->awaited) >= 0;
        pthread_mutex_unlock(&q->lock);
    }
    pthread_mutex_unlock(&queues_lock);
    return idle;
}

bool pjrt_queue_inside(void) { return mine != NULL; }

bool pjrt_queue_help(void) {
    struct pjrt_queue *q = mine;
    if (!q) return false;
    pthread_mutex_lock(&q->lock);
    struct work *work = take(q);
    if (work) perform(q, work);
    pthread_mutex_unlock(&q->lock);
    return work != NULL;
}

void pjrt_queue_close(struct pjrt_client *client) {
    struct pjrt_queue *q = client->queue;
    if (!q) return;
    pthread_mutex_lock(&q->lock);
    bool started = q->closing = q->started;
    pthread_t thread = q->thread;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    if (mine == q || beside == q) { /* closed by work of its own: it ends after that */
        if (started) pthread_detach(thread);
        return;
    }
    void *python = pjrt_python_pause(); /* work may need the GIL */
    if (started) pthread_join(thread, NULL);
    pthread_mutex_lock(&q->lock);
    q->crowding++;
    while (q->running) pthread_cond_wait(&q->advanced, &q->lock);
    q->crowding--;
    pthread_mutex_unlock(&q->lock);
    pjrt_python_resume(python);
}
