/* Copies between arrays of any strides (rows where both sides have them, blocked transposes, or any order), now or when
 * the source is ready. */
#include "copies.h"

#include <stdlib.h>
#include <string.h>

/* One dimension of a copy. */
struct axis {
    int64_t size, to, from; /* elements; bytes from one to the next */
};

static inline int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Drops what has one element, puts the axes in the order of the target's memory, joins neighbours that lie as one. Returns
 * the number of axes. */
static int simplify(struct axis *axes, int rank) {
    int count = 0;
    for (int i = 0; i < rank; i++) {
        if (axes[i].size == 1) continue;
        struct axis axis = axes[i];
        int at = count++;
        for (; at > 0 && distance(axes[at - 1].to) < distance(axis.to); at--) axes[at] = axes[at - 1];
        axes[at] = axis;
    }
    if (count == 0) return 0;
    struct axis *outer = axes;
    for (int i = 1; i < count; i++) {
        struct axis axis = axes[i];
        if (outer->to == axis.to * axis.size && outer->from == axis.from * axis.size)
            *outer = (struct axis){outer->size * axis.size, axis.to, axis.from};
        else
            *++outer = axis;
    }
    return (int)(outer - axes) + 1;
}

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* A plane that is dense along `outer` in the source and along `inner` in the target. Each line of either is touched once:
 * a tile lies between them, since lines at distances of powers of two would drive each other out of the cache. */
static inline __attribute__((always_inline)) void transpose(char *to, const char *from, struct axis outer,
                                                            struct axis inner, size_t size) {
    enum { BYTES = 128 };
    int64_t side = size == 1 ? BYTES / 2 : (int64_t)(BYTES / (size < 4 ? 4 : size));
    char tile[BYTES * BYTES / 4];
    for (int64_t i0 = 0; i0 < outer.size; i0 += side) {
        int64_t rows = least(side, outer.size - i0);
        for (int64_t j0 = 0; j0 < inner.size; j0 += side) {
            int64_t columns = least(side, inner.size - j0);
            const char *f = from + i0 * outer.from + j0 * inner.from;
            char *t = to + i0 * outer.to + j0 * inner.to;
            for (int64_t j = 0; j < columns; j++)
                memcpy(tile + j * side * (int64_t)size, f + j * inner.from, (size_t)rows * size);
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < columns; j++)
                    memcpy(t + i * outer.to + j * (int64_t)size, tile + (j * side + i) * (int64_t)size, size);
        }
    }
}

static inline __attribute__((always_inline)) void copy_plane(char *to, const char *from, struct axis outer,
                                                             struct axis inner, size_t size) {
    if (outer.from == (int64_t)size && inner.to == (int64_t)size && least(outer.size, inner.size) >= 8) {
        transpose(to, from, outer, inner, size);
        return;
    }
    for (int64_t i = 0; i < outer.size; i++)
        for (int64_t j = 0; j < inner.size; j++)
            memcpy(to + i * outer.to + j * inner.to, from + i * outer.from + j * inner.from, size);
}

static void copy_planes(char *to, const char *from, struct axis outer, struct axis inner, int size) {
    switch (size) { /* a size that the compiler knows is one load and one store */
    case 1: copy_plane(to, from, outer, inner, 1); break;
    case 2: copy_plane(to, from, outer, inner, 2); break;
    case 4: copy_plane(to, from, outer, inner, 4); break;
    case 8: copy_plane(to, from, outer, inner, 8); break;
    default: copy_plane(to, from, outer, inner, 16);
    }
}

static void copy_rows(char *to, const char *from, struct axis outer, size_t bytes) {
    for (int64_t i = 0; i < outer.size; i++) memcpy(to + i * outer.to, from + i * outer.from, bytes);
}

void pjrt_copy_strided(char *to, const int64_t *to_strides, const char *from, const int64_t *from_strides,
                       const int64_t *dims, int rank, int size) {
    struct axis axes[PJRT_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0) return;
        axes[i] = (struct axis){dims[i], to_strides[i], from_strides[i]};
    }
    if (size == 0) return;
    int count = simplify(axes, rank);
    struct axis one = {1, 0, 0}, inner = count ? axes[--count] : one;
    bool rows = inner.to == size && inner.from == size;
    struct axis outer = one;
    if (count) { /* beside the innermost axis: the next, or the one along which the source is densest */
        int chosen = count - 1;
        if (!rows)
            for (int i = 0; i < count; i++)
                if (distance(axes[i].from) < distance(axes[chosen].from)) chosen = i;
        outer = axes[chosen];
        memmove(axes + chosen, axes + chosen + 1, (size_t)(--count - chosen) * sizeof *axes);
    }
    int64_t index[PJRT_MAX_RANK] = {0};
    for (;;) {
        if (rows)
            copy_rows(to, from, outer, (size_t)inner.size * (size_t)size);
        else
            copy_planes(to, from, outer, inner, size);
        int at = count - 1;
        for (; at >= 0; at--) {
            to += axes[at].to;
            from += axes[at].from;
            if (++index[at] < axes[at].size) break;
            to -= axes[at].to * axes[at].size;
            from -= axes[at].from * axes[at].size;
            index[at] = 0;
        }
        if (at < 0) return;
    }
}

static void run(const struct pjrt_copy *copy) {
    if (!copy->shape) {
        if (copy->nbytes) memcpy(copy->target, copy->source, copy->nbytes);
        return;
    }
    int64_t strides[PJRT_MAX_RANK];
    pjrt_shape_strides(copy->shape, strides);
    pjrt_copy_strided(copy->target, copy->strides, copy->source, strides, copy->shape->dims, copy->shape->rank,
                      pjrt_type_size(copy->shape->type));
}

static void drop(struct pjrt_copy *copy) {
    pjrt_shape_release(copy->shape);
    pjrt_block_release(copy->from);
    pjrt_block_release(copy->to);
}

/* A copy that waits for its source. */
struct waiting_copy {
    struct pjrt_copy copy;
    struct pjrt_event *done;
};

static void run_waiting(struct pjrt_error *error, void *argument) {
    struct waiting_copy *waiting = argument;
    if (!error) run(&waiting->copy);
    drop(&waiting->copy);
    pjrt_event_finish(waiting->done, error);
    pjrt_event_release(waiting->done);
    free(waiting);
}

void pjrt_copy_then(struct pjrt_event *ready, struct pjrt_copy copy, struct pjrt_event *done) {
    struct waiting_copy *waiting = malloc(sizeof *waiting);
    struct pjrt_error *error = NULL;
    if (waiting) {
        *waiting = (struct waiting_copy){copy, pjrt_event_keep(done)};
        error = pjrt_event_then(ready, run_waiting, waiting);
        if (!error) return;
        pjrt_event_release(done); /* it was not registered */
        free(waiting);
    }
    drop(&copy);
    pjrt_event_finish(done, error ? error : pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a copy"));
}

struct pjrt_error *pjrt_copy_after(struct pjrt_event *ready, struct pjrt_copy copy, struct pjrt_event **done) {
    if (pjrt_event_is_over(ready)) {
        if (!ready->error) run(&copy);
        drop(&copy);
        *done = pjrt_event_keep(ready->error ? ready : pjrt_event_done());
        return NULL;
    }
    *done = pjrt_event_new();
    if (!*done) {
        drop(&copy);
        return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a copy");
    }
    pjrt_copy_then(ready, copy, *done);
    return NULL;
}
