/* Handlers of XLA's FFI that ask for user data. */
#include "xla_ffi.h"

int64_t number_type; /* the number of the type "number" */

/* result (i64): operand (i64) plus the number among the user data of the execution. */
struct ffi_error *add_number(struct ffi_frame *frame) {
    if (frame->extensions && frame->extensions->type == FFI_METADATA) {
        struct ffi_metadata *m = ((struct ffi_metadata_extension *)frame->extensions)->metadata;
        m->version.major = FFI_MAJOR, m->version.minor = 1;
        return NULL;
    }
    struct ffi_context_get get = {sizeof get, NULL, frame->context, &number_type, NULL};
    struct ffi_error *error = frame->api->context_get(&get);
    if (error) return error;
    struct ffi_buffer *in = frame->arguments.values[0], *out = frame->results.values[0];
    *(int64_t *)out->data = *(int64_t *)in->data + *(int64_t *)get.data;
    return NULL;
}
