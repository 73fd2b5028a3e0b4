/* Executables as seen from Python, and runs of programs. Include first: brings Python.h. */
#ifndef HILO_PJRT_PYTHON_H
#define HILO_PJRT_PYTHON_H

#include "../program.h" /* first: Python.h */

#include "pjrt.h"

/* Whether Python can be called; false while the process ends. */
bool pjrt_python_alive(void);

/* Gives the GIL up, if the calling thread holds it, around something that waits for other threads. */
void *pjrt_python_pause(void);
void pjrt_python_resume(void *paused);

/* The exception that is set, which is cleared, as an error: `hilo.errors.Error` as `code`, others by their kind. */
struct pjrt_error *pjrt_python_error(uint32_t code);

/* A new executable from what `hilo.pjrt.compiler.compile` or `.load` gives. */
struct pjrt_error *pjrt_python_compile(struct pjrt_client *client, const struct pjrt_program *program, const char *options,
                                       size_t options_size, struct pjrt_executable **executable);
struct pjrt_error *pjrt_python_load(struct pjrt_client *client, const char *data, size_t size, const char *options,
                                    size_t options_size, struct pjrt_executable **executable);

/* Gives up the Python object of an executable; in a process that ends, nothing. */
void pjrt_python_release(PyObject *object);

/* What methods and attributes of the executable's Python object say. Bytes and texts are copies, for free(). */

struct pjrt_bytes {
    char *data;
    size_t size;
};

struct pjrt_error *pjrt_python_bytes(struct pjrt_executable *e, const char *method, struct pjrt_bytes *bytes);
struct pjrt_error *pjrt_python_pair(struct pjrt_executable *e, const char *method, struct pjrt_bytes pair[2]);
struct pjrt_error *pjrt_python_attribute(struct pjrt_executable *e, const char *name, struct pjrt_bytes *bytes);
struct pjrt_error *pjrt_python_number(struct pjrt_executable *e, const char *method, int64_t *number);
/* The items of a dict of texts to numbers and texts, as named values in one block. */
struct pjrt_error *pjrt_python_items(struct pjrt_executable *e, const char *method, struct pjrt_named_value **items,
                                     size_t *count);

/* Runs the program on the calling thread (run.c), whether or not it holds the GIL. `held`: the blocks behind arguments and
 * results, which live until it returns; a Python function that the program calls may keep them for longer. */
struct pjrt_error *pjrt_run(struct pjrt_executable *e, struct pjrt_context *context, void **arguments, void **results,
                            struct pjrt_block **held, size_t num_held);

#endif
