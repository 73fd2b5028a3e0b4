/* Shapes: an element type, sizes, and the order of dimensions in memory. */
#include <stdlib.h>
#include <string.h>

#include "pjrt.h"

static const struct {
    const char *name;
    int size;
} types[PJRT_TYPES] = {
    [0] = {"invalid", -1},
    [PJRT_PRED] = {"pred", 1},
    [PJRT_S1] = {"s1", 1}, [PJRT_S2] = {"s2", 1}, [PJRT_S4] = {"s4", 1}, [PJRT_S8] = {"s8", 1},
    [PJRT_S16] = {"s16", 2}, [PJRT_S32] = {"s32", 4}, [PJRT_S64] = {"s64", 8},
    [PJRT_U1] = {"u1", 1}, [PJRT_U2] = {"u2", 1}, [PJRT_U4] = {"u4", 1}, [PJRT_U8] = {"u8", 1},
    [PJRT_U16] = {"u16", 2}, [PJRT_U32] = {"u32", 4}, [PJRT_U64] = {"u64", 8},
    [PJRT_F16] = {"f16", 2}, [PJRT_BF16] = {"bf16", 2}, [PJRT_F32] = {"f32", 4}, [PJRT_F64] = {"f64", 8},
    [PJRT_C64] = {"c64", 8}, [PJRT_C128] = {"c128", 16},
    [PJRT_F4E2M1FN] = {"f4e2m1fn", 1}, [PJRT_F6E2M3FN] = {"f6e2m3fn", 1}, [PJRT_F6E3M2FN] = {"f6e3m2fn", 1},
    [PJRT_F8E3M4] = {"f8e3m4", 1}, [PJRT_F8E4M3] = {"f8e4m3", 1}, [PJRT_F8E4M3FN] = {"f8e4m3fn", 1},
    [PJRT_F8E4M3B11FNUZ] = {"f8e4m3b11fnuz", 1}, [PJRT_F8E4M3FNUZ] = {"f8e4m3fnuz", 1},
    [PJRT_F8E5M2] = {"f8e5m2", 1}, [PJRT_F8E5M2FNUZ] = {"f8e5m2fnuz", 1}, [PJRT_F8E8M0FNU] = {"f8e8m0fnu", 1},
    [PJRT_TOKEN] = {"token", 0},
};

int pjrt_type_size(uint32_t type) { return type < PJRT_TYPES ? types[type].size : -1; }

const char *pjrt_type_name(uint32_t type) { return types[type < PJRT_TYPES ? type : 0].name; }

bool pjrt_is_aligned(const void *data, uint32_t type) {
    int size = pjrt_type_size(type);
    if (type == PJRT_C64 || type == PJRT_C128) size /= 2;
    return size <= 1 || (uintptr_t)data % (uintptr_t)size == 0;
}

/* Elements of an array, or -1 if their bytes cannot be counted. */
static int64_t count_elements(const int64_t *dims, size_t rank, int size) {
    int64_t count = 1;
    bool empty = false, overflow = false;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] == 0)
            empty = true;
        else
            overflow |= __builtin_mul_overflow(count, dims[i], &count);
    }
    int64_t bytes;
    if (empty) return 0;
    return overflow || __builtin_mul_overflow(count, (int64_t)size, &bytes) ? -1 : count;
}

/* Whether it names each dimension once. */
static bool is_order(const int64_t *minor_to_major, size_t rank) {
    uint64_t seen = 0;
    for (size_t i = 0; i < rank; i++) {
        int64_t dim = minor_to_major[i];
        if (dim < 0 || dim >= (int64_t)rank || seen >> dim & 1) return false;
        seen |= (uint64_t)1 << dim;
    }
    return true;
}

/* Whether elements lie as in a row-major array: dimensions of one element may stand anywhere. */
static bool is_row_major(const struct pjrt_shape *shape) {
    int64_t last = shape->rank;
    for (int i = 0; i < shape->rank; i++) {
        int64_t dim = shape->minor_to_major[i];
        if (shape->dims[dim] == 1) continue;
        if (dim > last) return shape->count == 0;
        last = dim;
    }
    return true;
}

struct pjrt_shape *pjrt_shape_new(uint32_t type, const int64_t *dims, size_t rank, const int64_t *minor_to_major,
                                  struct pjrt_error **error) {
    int size = pjrt_type_size(type);
    if (size < 0) {
        *error = pjrt_fail(PJRT_INVALID_ARGUMENT, "there is no element type %u", type);
        return NULL;
    }
    if (rank > PJRT_MAX_RANK) {
        *error = pjrt_fail(PJRT_INVALID_ARGUMENT, "a rank of %zu: at most %d is supported", rank, PJRT_MAX_RANK);
        return NULL;
    }
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] >= 0) continue;
        *error = pjrt_fail(PJRT_INVALID_ARGUMENT, "dimension %zu has the size %lld", i, (long long)dims[i]);
        return NULL;
    }
    if (minor_to_major && !is_order(minor_to_major, rank)) {
        *error = pjrt_fail(PJRT_INVALID_ARGUMENT, "a layout must name each of %zu dimensions once", rank);
        return NULL;
    }
    int64_t count = count_elements(dims, rank, size);
    if (count < 0) {
        *error = pjrt_fail(PJRT_INVALID_ARGUMENT, "an array of %s has more bytes than can be counted",
                           pjrt_type_name(type));
        return NULL;
    }
    struct pjrt_shape *shape = malloc(sizeof *shape + 2 * rank * sizeof(int64_t));
    if (!shape) {
        *error = pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a shape");
        return NULL;
    }
    *shape = (struct pjrt_shape){.references = 1, .type = type, .rank = (int)rank, .count = (size_t)count,
                                 .nbytes = (size_t)count * (size_t)size, .dims = (int64_t *)(shape + 1)};
    shape->minor_to_major = shape->dims + rank;
    for (size_t i = 0; i < rank; i++) {
        shape->dims[i] = dims[i];
        shape->minor_to_major[i] = minor_to_major ? minor_to_major[i] : (int64_t)(rank - 1 - i);
    }
    shape->row_major = is_row_major(shape);
    return shape;
}

/* Whether the strides are those of a dense array of this order; those of dimensions of one element say nothing. */
static bool are_dense(const int64_t *strides, const int64_t *dims, const int64_t *minor_to_major, size_t rank, int size) {
    int64_t expected = size;
    for (size_t i = 0; i < rank; i++) {
        int64_t dim = minor_to_major[i];
        if (dims[dim] == 1) continue;
        if (strides[dim] != expected) return false;
        expected *= dims[dim];
    }
    return true;
}

/* The order of dimensions that dense strides mean. */
static void order_of(const int64_t *strides, size_t rank, int64_t *minor_to_major) {
    for (size_t i = 0; i < rank; i++) { /* sorted by insertion; where strides are equal, the last is the most minor */
        int64_t dim = (int64_t)(rank - 1 - i);
        size_t at = i;
        for (; at > 0 && strides[minor_to_major[at - 1]] > strides[dim]; at--) minor_to_major[at] = minor_to_major[at - 1];
        minor_to_major[at] = dim;
    }
}

static struct pjrt_shape *with_strides(uint32_t type, const int64_t *dims, size_t rank,
                                       const struct pjrt_strides *strides, struct pjrt_error **error) {
    struct pjrt_shape *shape = pjrt_shape_new(type, dims, rank, NULL, error);
    if (!shape) return NULL;
    int size = pjrt_type_size(type);
    if (shape->count == 0 || are_dense(strides->byte_strides, dims, shape->minor_to_major, rank, size)) return shape;
    pjrt_shape_release(shape);
    int64_t order[PJRT_MAX_RANK];
    order_of(strides->byte_strides, rank, order);
    if (are_dense(strides->byte_strides, dims, order, rank, size)) return pjrt_shape_new(type, dims, rank, order, error);
    *error = pjrt_fail(PJRT_UNIMPLEMENTED, "strides that are not those of a dense array are not supported as a layout");
    return NULL;
}

struct pjrt_shape *pjrt_shape_with_layout(uint32_t type, const int64_t *dims, size_t rank,
                                          const struct pjrt_memory_layout *layout, struct pjrt_error **error) {
    if (!layout) return pjrt_shape_new(type, dims, rank, NULL, error);
    bool tiled = layout->type == PJRT_TILED;
    if (!tiled && layout->type != PJRT_STRIDES) {
        *error = pjrt_fail(PJRT_INVALID_ARGUMENT, "there is no memory layout of type %u", layout->type);
        return NULL;
    }
    size_t given = tiled ? layout->tiled.minor_to_major_size : layout->strides.num_byte_strides;
    if (given != rank) {
        *error = pjrt_fail(PJRT_INVALID_ARGUMENT, "a layout of %zu dimensions for an array of rank %zu", given, rank);
        return NULL;
    }
    if (!tiled) return with_strides(type, dims, rank, &layout->strides, error);
    if (layout->tiled.num_tiles) {
        *error = pjrt_fail(PJRT_UNIMPLEMENTED, "layouts with tiles are not supported");
        return NULL;
    }
    return pjrt_shape_new(type, dims, rank, layout->tiled.minor_to_major, error);
}

bool pjrt_shape_same_array(const struct pjrt_shape *a, const struct pjrt_shape *b) {
    return a->type == b->type && a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

struct pjrt_shape *pjrt_shape_keep(struct pjrt_shape *shape) {
    atomic_fetch_add_explicit(&shape->references, 1, memory_order_relaxed);
    return shape;
}

void pjrt_shape_release(struct pjrt_shape *shape) {
    if (shape && atomic_fetch_sub_explicit(&shape->references, 1, memory_order_acq_rel) == 1) free(shape);
}

void pjrt_shape_strides(const struct pjrt_shape *shape, int64_t *strides) {
    int64_t stride = pjrt_type_size(shape->type);
    for (int i = 0; i < shape->rank; i++) {
        int64_t dim = shape->minor_to_major[i];
        strides[dim] = shape->count ? stride : 0; /* of an empty array the sizes need not fit */
        if (shape->count) stride *= shape->dims[dim];
    }
}
