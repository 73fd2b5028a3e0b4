/* Errors: a code, a message, and the table of functions by which other parts of the process read them. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt.h"

static const struct pjrt_error_table table;

/* For when there is no memory for an error; never freed. */
static struct pjrt_error exhausted = {&table, PJRT_RESOURCE_EXHAUSTED, 24, "hilo: there is no memory"};

struct pjrt_error *pjrt_fail_text(uint32_t code, const char *message, size_t size) {
    struct pjrt_error *error = malloc(sizeof *error + size + 1);
    if (!error) return &exhausted;
    *error = (struct pjrt_error){&table, code, size, (char *)(error + 1)};
    memcpy(error->message, message, size);
    error->message[size] = 0;
    return error;
}

struct pjrt_error *pjrt_fail(uint32_t code, const char *format, ...) {
    char *text = NULL;
    va_list values;
    va_start(values, format);
    int size = vasprintf(&text, format, values);
    va_end(values);
    if (size < 0) return &exhausted;
    struct pjrt_error *error = pjrt_fail_text(code, text, (size_t)size);
    free(text);
    return error;
}

struct pjrt_error *pjrt_error_copy(const struct pjrt_error *error) {
    return error ? pjrt_fail_text(error->code, error->message, error->size) : NULL;
}

void pjrt_error_free(struct pjrt_error *error) {
    if (error != &exhausted) free(error);
}

/* The table. */

static void get_message(const struct pjrt_error *error, const char **message, size_t *size) {
    *message = error->message;
    *size = error->size;
}

static uint32_t get_code(const struct pjrt_error *error) { return error->code; }

static void for_each_payload(const struct pjrt_error *error,
                             void (*visitor)(const char *, size_t, const char *, size_t, void *), void *user_arg) {
    (void)error, (void)visitor, (void)user_arg; /* our errors carry nothing else */
}

static const struct pjrt_error_table table = {
    .struct_size = sizeof table,
    .instance_size = sizeof(struct pjrt_error_table *),
    .destroy = pjrt_error_free,
    .message = get_message,
    .code = get_code,
    .for_each_payload = for_each_payload,
};

void pjrt_error_destroy(struct pjrt_error_destroy_args *args) { pjrt_error_free(args->error); }

void pjrt_error_message(struct pjrt_error_message_args *args) {
    get_message(args->error, &args->message, &args->message_size);
}

struct pjrt_error *pjrt_error_get_code(struct pjrt_error_get_code_args *args) {
    args->code = args->error->code;
    return NULL;
}

struct pjrt_error *pjrt_error_for_each_payload(struct pjrt_error_for_each_payload_args *args) {
    (void)args;
    return NULL;
}
