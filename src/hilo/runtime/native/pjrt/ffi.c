/* Foreign functions by XLA's typed interface, registered through PJRT: they become targets of hilo's custom calls
 * (hilo.custom_calls), whoever registers them. What a host adds to the context of an execution is found by handlers. */
#include "python.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../xla_ffi.h"

static struct pjrt_error *register_type(struct pjrt_ffi_type_register_args *args) {
    struct ffi_type_info info = {.size = sizeof info, .destroy = args->type_info ? args->type_info->deleter : NULL};
    const char *wrong = hilo_ffi_register_type(args->type_name, args->type_name_size, &args->type_id, &info);
    return wrong ? pjrt_fail(PJRT_INVALID_ARGUMENT, "%s", wrong) : NULL;
}

static struct pjrt_error *add_user_data(struct pjrt_ffi_user_data_add_args *args) {
    if (!args->context) return pjrt_fail(PJRT_INVALID_ARGUMENT, "user data needs the context of an execution");
    const void *key = (const void *)(intptr_t)args->user_data.type_id;
    if (pjrt_user_data_set(&args->context->data, key, args->user_data.data, NULL) == 0) return NULL;
    return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for user data");
}

/* The context of executions, whose data handlers find on the thread that runs them. */

struct pjrt_error *pjrt_execute_context_create(struct pjrt_execute_context_create_args *args) {
    args->context = calloc(1, sizeof *args->context);
    return args->context ? NULL : pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a context");
}

struct pjrt_error *pjrt_execute_context_destroy(struct pjrt_execute_context_destroy_args *args) {
    if (!args->context) return NULL;
    pjrt_user_data_clear(&args->context->data);
    free(args->context);
    return NULL;
}

static void *data_of(void *context, int64_t type) {
    return pjrt_user_data_get(&((struct pjrt_context *)context)->data, (const void *)(intptr_t)type);
}

struct pjrt_context *pjrt_context_use(struct pjrt_context *context) {
    struct pjrt_context *before = hilo_ffi_user_data.get == data_of ? hilo_ffi_user_data.owner : NULL;
    hilo_ffi_user_data = (struct ffi_user_data){.owner = context, .get = context ? data_of : NULL};
    return before;
}

/* Handlers are for platforms; those of XLA's CPU run here as well. */
static bool is_ours(const char *platform, size_t size) {
    static const char *const names[] = {"hilo", "cpu", "host"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == size && strncasecmp(names[i], platform, size) == 0) return true;
    return size == 0;
}

static struct pjrt_error *register_handler(struct pjrt_ffi_register_handler_args *args) {
    if (!args->handler || !args->target_name_size)
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "a handler has an address and a name");
    if (!is_ours(args->platform_name, args->platform_name_size))
        return pjrt_fail(PJRT_NOT_FOUND, "hilo runs no handlers of platform \"%.*s\"; there are: hilo, cpu, host",
                         (int)args->platform_name_size, args->platform_name);
    if (!pjrt_python_alive()) return pjrt_fail(PJRT_FAILED_PRECONDITION, "the process is ending");
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *name = PyUnicode_DecodeUTF8(args->target_name, (Py_ssize_t)args->target_name_size, NULL);
    PyObject *address = name ? PyLong_FromVoidPtr(args->handler) : NULL;
    PyObject *module = address ? PyImport_ImportModule("hilo.runtime.foreign") : NULL;
    PyObject *done = module ? PyObject_CallMethod(module, "register", "OOs", name, address, "xla-ffi") : NULL;
    struct pjrt_error *error = done ? NULL : pjrt_python_error(PJRT_INVALID_ARGUMENT);
    Py_XDECREF(done);
    Py_XDECREF(module);
    Py_XDECREF(address);
    Py_XDECREF(name);
    PyGILState_Release(gil);
    return error;
}

struct pjrt_ffi_extension pjrt_ffi_extension = {
    .base = {sizeof pjrt_ffi_extension, PJRT_EXTENSION_FFI, NULL},
    .ffi_type_register = register_type,
    .ffi_user_data_add = add_user_data,
    .ffi_register_handler = register_handler,
};
