/* Custom calls in C: what a function that is registered with convention="c" gets (docs/custom_calls.md).
 *
 *     int32_t scale(const struct hilo_call *call) {
 *         const float *x = call->operands[0].data;
 *         float *y = call->results[0].data;
 *         for (int64_t i = 0; i < call->operands[0].dims[0]; i++) y[i] = 2 * x[i];
 *         return 0;
 *     }
 *
 * Operands must not be written to, results must be written completely; both are dense, in the order of memory that the
 * call asks for (row-major, unless it has layouts). Nothing of this is valid after the function has returned. */
#ifndef HILO_CUSTOM_CALL_H
#define HILO_CUSTOM_CALL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor. `dims` has `rank` sizes. `type` is a hilo_type; i1 is a byte 0 or 1, and so is each element narrower than
 * a byte a byte of its own. */
struct hilo_buffer {
    void *data;
    const int64_t *dims;
    int32_t rank;
    int32_t type;
};

struct hilo_call {
    int64_t size; /* bytes of this struct: later versions have more at its end */
    int64_t num_operands, num_results;
    const struct hilo_buffer *operands, *results;
    const char *config; /* backend_config: its text, or a dictionary as JSON; ends with a zero */
    int64_t config_size;
    char *message; /* where a function that fails may write why, up to message_size bytes, ending with a zero */
    int64_t message_size; /* may be 0 */
};

/* 0: done. Anything else: the program ends with an error. */
typedef int32_t (*hilo_custom_call)(const struct hilo_call *call);

/* The numbers of XLA's element types. */
enum hilo_type {
    HILO_I1 = 1,
    HILO_I8 = 2,
    HILO_I16 = 3,
    HILO_I32 = 4,
    HILO_I64 = 5,
    HILO_U8 = 6,
    HILO_U16 = 7,
    HILO_U32 = 8,
    HILO_U64 = 9,
    HILO_F16 = 10,
    HILO_F32 = 11,
    HILO_F64 = 12,
    HILO_C64 = 15,
    HILO_BF16 = 16,
    HILO_C128 = 18,
    HILO_F8E5M2 = 19,
    HILO_F8E4M3FN = 20,
    HILO_I4 = 21,
    HILO_U4 = 22,
    HILO_F8E4M3B11FNUZ = 23,
    HILO_F8E5M2FNUZ = 24,
    HILO_F8E4M3FNUZ = 25,
    HILO_I2 = 26,
    HILO_U2 = 27,
    HILO_F8E4M3 = 28,
    HILO_F8E3M4 = 29,
    HILO_F4E2M1FN = 32,
    HILO_F8E8M0FNU = 33,
    HILO_F6E2M3FN = 1001, /* from here on, those without a number there */
    HILO_F6E3M2FN = 1002,
};

#ifdef __cplusplus
}
#endif

#endif
