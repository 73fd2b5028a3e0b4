/* The table of functions that hosts get. */
#include "pjrt.h"

#define ENTRY(name) .name = pjrt_##name,

const struct pjrt_api *hilo_pjrt_api(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct pjrt_api api = {
        .struct_size = sizeof api,
        .version = {sizeof(struct pjrt_version), NULL, PJRT_MAJOR, PJRT_MINOR},
        .error_destroy = pjrt_error_destroy,
        .error_message = pjrt_error_message,
        PJRT_FUNCTIONS(ENTRY)
    };
    pthread_mutex_lock(&lock);
    if (!api.extensions) api.extensions = pjrt_extensions();
    pthread_mutex_unlock(&lock);
    return &api;
}
