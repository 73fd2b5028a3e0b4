/* Putting one thread to sleep and waking it: a futex on Linux, a condition variable elsewhere.
 *
 * The sleeper: hilo_park_prepare, look once more whether there is work, then hilo_park (or hilo_park_cancel).
 * The waker: publish the work, then hilo_unpark. All sequentially consistent, so no wake-up is lost.
 */
#ifndef HILO_PARK_H
#define HILO_PARK_H

#include <stdatomic.h>
#include <stdint.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

struct hilo_parker {
    _Atomic uint32_t asleep;
};
#define HILO_PARKER_INIT {0}

static inline void hilo_park(struct hilo_parker *p) {
    while (atomic_load(&p->asleep)) syscall(SYS_futex, &p->asleep, FUTEX_WAIT_PRIVATE, 1, 0, 0, 0);
}

static inline void hilo_unpark(struct hilo_parker *p) {
    if (atomic_load(&p->asleep) && atomic_exchange(&p->asleep, 0))
        syscall(SYS_futex, &p->asleep, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}
#else
#include <pthread.h>

struct hilo_parker {
    _Atomic uint32_t asleep;
};
#define HILO_PARKER_INIT {0}
/* One lock for all sleepers: only platforms without futexes come here. */
extern pthread_mutex_t hilo_park_lock;
extern pthread_cond_t hilo_park_cond;

static inline void hilo_park(struct hilo_parker *p) {
    pthread_mutex_lock(&hilo_park_lock);
    while (atomic_load(&p->asleep)) pthread_cond_wait(&hilo_park_cond, &hilo_park_lock);
    pthread_mutex_unlock(&hilo_park_lock);
}

static inline void hilo_unpark(struct hilo_parker *p) {
    if (!atomic_load(&p->asleep)) return;
    pthread_mutex_lock(&hilo_park_lock);
    atomic_store(&p->asleep, 0);
    pthread_cond_broadcast(&hilo_park_cond);
    pthread_mutex_unlock(&hilo_park_lock);
}
#endif

static inline int hilo_asleep(struct hilo_parker *p) { return atomic_load_explicit(&p->asleep, memory_order_relaxed) != 0; }
static inline void hilo_park_prepare(struct hilo_parker *p) { atomic_store(&p->asleep, 1); }
static inline void hilo_park_cancel(struct hilo_parker *p) { atomic_store(&p->asleep, 0); }

#endif
