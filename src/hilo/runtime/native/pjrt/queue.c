/* Work that runs later: one thread per client takes it, in order. The thread starts with the first piece of work.
 *
 * Work is queued when all that it needs is there, so that it never waits for work behind it. Only a Python function that a
 * program calls may wait, for anything: then the thread goes on with what is queued meanwhile (pjrt_queue_help).
 *
 * A forked child has no thread: it starts with empty queues, and what was queued or running in the parent never happens.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>

#include "pjrt.h"

#define MOST_QUEUED 32 /* pieces of work; whoever adds more waits */

struct work {
    struct work *next;
    void (*run)(void *argument);
    void *argument;
};

struct pjrt_queue {
    struct pjrt_queue *next; /* among all */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* work was added, or the queue closed */
    pthread_cond_t shorter; /* work was taken */
    struct work *first, **end;
    int length, sleeping, crowding; /* crowding: threads that wait for it to get shorter */
    bool started, closing;
    pthread_t thread;
};

static struct pjrt_queue *queues;
static pthread_mutex_t queues_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t forking = PTHREAD_ONCE_INIT;
static _Thread_local struct pjrt_queue *mine; /* which the calling thread works on */

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
    pthread_cond_init(&q->shorter, NULL);
    q->first = NULL;
    q->end = &q->first;
    q->length = q->sleeping = q->crowding = 0;
    q->started = false;
}

static void in_child(void) {
    for (struct pjrt_queue *q = queues; q; q = q->next) empty(q); /* what was queued is lost, with its memory */
    mine = NULL;
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
    q->length--;
    if (q->crowding) pthread_cond_broadcast(&q->shorter);
    return work;
}

static void perform(struct work *work) {
    work->run(work->argument);
    free(work);
}

static void *work_on(void *argument) {
    struct pjrt_queue *q = mine = argument;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        struct work *work = take(q);
        if (work) {
            pthread_mutex_unlock(&q->lock);
            perform(work);
            pthread_mutex_lock(&q->lock);
        } else if (q->closing) {
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

/* Signals are for the host's own threads. Needs the lock. */
static int start(struct pjrt_queue *q) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    q->started = pthread_create(&q->thread, NULL, work_on, q) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!q->started) return -1;
    pthread_setname_np(q->thread, "hilo-queue");
    return 0;
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
    *work = (struct work){NULL, run, argument};
    pthread_mutex_lock(&q->lock);
    if (!q->started && start(q) < 0) {
        pthread_mutex_unlock(&q->lock);
        free(work);
        return -1;
    }
    *q->end = work;
    q->end = &work->next;
    q->length++;
    if (q->sleeping) pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return 0;
}

void pjrt_queue_throttle(struct pjrt_client *client) {
    struct pjrt_queue *q = client->queue;
    if (!q || mine) return;
    pthread_mutex_lock(&q->lock);
    while (q->length >= MOST_QUEUED) {
        q->crowding++;
        pthread_cond_wait(&q->shorter, &q->lock);
        q->crowding--;
    }
    pthread_mutex_unlock(&q->lock);
}

bool pjrt_queue_inside(void) { return mine != NULL; }

bool pjrt_queue_help(void) {
    struct pjrt_queue *q = mine;
    if (!q) return false;
    pthread_mutex_lock(&q->lock);
    struct work *work = take(q);
    pthread_mutex_unlock(&q->lock);
    if (work) perform(work);
    return work != NULL;
}

void pjrt_queue_close(struct pjrt_client *client) {
    struct pjrt_queue *q = client->queue;
    if (!q) return;
    pthread_mutex_lock(&q->lock);
    q->closing = true;
    pthread_cond_broadcast(&q->changed);
    bool started = q->started;
    pthread_mutex_unlock(&q->lock);
    if (started && mine == q) { /* closed by work of its own: it ends after that, and its queue stays */
        pthread_detach(q->thread);
        return;
    }
    if (started) pthread_join(q->thread, NULL);
    pthread_mutex_lock(&queues_lock);
    struct pjrt_queue **place = &queues;
    while (*place != q) place = &(*place)->next;
    *place = q->next;
    pthread_mutex_unlock(&queues_lock);
    pthread_cond_destroy(&q->changed);
    pthread_cond_destroy(&q->shorter);
    pthread_mutex_destroy(&q->lock);
    free(q);
    client->queue = NULL;
}
