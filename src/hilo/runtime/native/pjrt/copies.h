/* Copies that run at once or when their source is ready. */
#ifndef HILO_PJRT_COPIES_H
#define HILO_PJRT_COPIES_H

#include "pjrt.h"

/* One copy; owns its references. */
struct pjrt_copy {
    struct pjrt_block *from, *to; /* what is read and written; `to` NULL: memory of the caller */
    const char *source;
    char *target;
    size_t nbytes;            /* of a copy as it is (no shape) */
    struct pjrt_shape *shape; /* the source's, for a copy into the `strides`; or NULL */
    int64_t strides[PJRT_MAX_RANK];
};

/* Copies at once if the event is ready, else on the thread that makes it ready; then makes `done` ready, with the error of
 * `ready` if it has one. */
void pjrt_copy_then(struct pjrt_event *ready, struct pjrt_copy copy, struct pjrt_event *done);
/* The same with an event of its own, of which `done` gets a reference. An error (no memory) leaves nothing behind. */
struct pjrt_error *pjrt_copy_after(struct pjrt_event *ready, struct pjrt_copy copy, struct pjrt_event **done);

#endif
