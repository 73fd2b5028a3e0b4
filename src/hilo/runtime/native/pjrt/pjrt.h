/* The objects behind the PJRT C API (api.h). No Python here, but in executables.c and python.c.
 *
 * One client, one device (the machine's cores), whose memory is the host's, under several names. Objects that several
 * owners share count references; every function may be called from any thread. Buffers are dense; their layout orders
 * the dimensions. What is not ready yet has an event, and whoever uses it waits for, or runs after, that event.
 */
#ifndef HILO_PJRT_H
#define HILO_PJRT_H

#include <pthread.h>
#include <stdatomic.h>

#include "extensions.h"

#define PJRT_MAX_RANK 64

/* Errors (errors.c). */

struct pjrt_error {
    const struct pjrt_error_table *table;
    uint32_t code;
    size_t size; /* of the message, without the terminating 0 */
    char *message;
};

/* A new error; never NULL. */
struct pjrt_error *pjrt_fail(uint32_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct pjrt_error *pjrt_fail_text(uint32_t code, const char *message, size_t size);
struct pjrt_error *pjrt_error_copy(const struct pjrt_error *error); /* NULL of NULL */
void pjrt_error_free(struct pjrt_error *error);

/* Events (events.c): something that will have happened, well or not. */

typedef void (*pjrt_callback)(struct pjrt_error *error, void *user_arg);

struct pjrt_event {
    atomic_int references; /* each handle that callers have is one */
    atomic_int ready;
    struct pjrt_error *error; /* once ready; NULL: well */
    struct pjrt_waiting *waiting;
};

/* A new event that is not ready, or NULL if there is no memory. */
struct pjrt_event *pjrt_event_new(void);
/* The event of everything that is done already (shared; needs no memory). */
struct pjrt_event *pjrt_event_done(void);
/* A new event that is ready with `error` (taken over; NULL: pjrt_event_done()). */
struct pjrt_event *pjrt_event_failed(struct pjrt_error *error);
struct pjrt_event *pjrt_event_keep(struct pjrt_event *event);
void pjrt_event_release(struct pjrt_event *event); /* NULL is allowed */
/* Makes it ready, wakes who waits, calls what was registered. `error` is taken over. The second time: nothing happens. */
void pjrt_event_finish(struct pjrt_event *event, struct pjrt_error *error);
/* Waits; on the dispatching thread works on what is queued meanwhile (queue.c). The error is the event's own. */
const struct pjrt_error *pjrt_event_wait(struct pjrt_event *event);
/* Makes an event failed in a forked child, where nobody will finish it and what was registered must not be called. */
void pjrt_event_lose(struct pjrt_event *event);
/* Calls `callback` with a copy of the error, at once if the event is ready, else on the thread that makes it ready. */
struct pjrt_error *pjrt_event_then(struct pjrt_event *event, pjrt_callback callback, void *user_arg);

static inline bool pjrt_event_is_over(struct pjrt_event *event) {
    return atomic_load_explicit(&event->ready, memory_order_acquire);
}

/* What others keep with an object, by key (user_data.c). */

struct pjrt_user_data {
    struct pjrt_user_data *next;
    const void *key;
    void *data;
    void (*destroy)(void *data);
};

void *pjrt_user_data_get(struct pjrt_user_data *const *list, const void *key); /* NULL: nothing */
/* Puts `data` in the place of what was kept under the key, which is destroyed. 0, or -1 if there is no memory. */
int pjrt_user_data_set(struct pjrt_user_data **list, const void *key, void *data, void (*destroy)(void *data));
void pjrt_user_data_clear(struct pjrt_user_data **list);

/* The machine (client.c, devices.c, topology.c). */

enum { PJRT_DEVICE_MEMORY, PJRT_PINNED_MEMORY, PJRT_UNPINNED_MEMORY, PJRT_MEMORIES };

struct pjrt_memory_description {
    const char *kind;
    int32_t kind_id;
};

struct pjrt_memory {
    const struct pjrt_memory_table *table;
    struct pjrt_client *client;
    int32_t id;
    const struct pjrt_memory_description *description;
    struct pjrt_user_data *user_data;
};

struct pjrt_description {
    int32_t id;
};

struct pjrt_device {
    struct pjrt_client *client;
    struct pjrt_description *description;
};

/* What a client counts; for memory_stats. */
struct pjrt_counts {
    atomic_llong bytes, peak_bytes, allocations, largest;
};

/* Never freed, as what outlives a client still points to it: see client.c. */
struct pjrt_client {
    struct pjrt_client *next; /* among those that were destroyed */
    const char *platform; /* "hilo" or "cpu" */
    struct pjrt_topology *topology;
    struct pjrt_device device;
    struct pjrt_memory memories[PJRT_MEMORIES];
    struct pjrt_device *devices[1];
    struct pjrt_memory *memory_list[PJRT_MEMORIES];
    struct pjrt_counts counts;
    struct pjrt_queue *queue; /* queue.c; made when first needed */
    pthread_mutex_t lock;
};

struct pjrt_topology {
    const char *platform;
    struct pjrt_description device;
    struct pjrt_description *descriptions[1];
};

extern const struct pjrt_memory_description pjrt_memory_kinds[PJRT_MEMORIES];
struct pjrt_topology *pjrt_topology_of(const char *platform); /* NULL: none of ours. Never freed */
extern const struct pjrt_memory_table pjrt_memory_table;
/* The memory of a client that a call names by memory or device (either may be NULL). */
struct pjrt_memory *pjrt_memory_of(struct pjrt_client *client, struct pjrt_device *device, struct pjrt_memory *memory);
const char *pjrt_platform_version(void); /* of clients */
const char *pjrt_default_platform(void); /* "hilo", or "cpu" if the environment says HILO_JAX_AS_CPU=1 */

/* Shapes (shapes.c): type, dims and the order of dims in memory; never change. */

struct pjrt_shape {
    atomic_int references;
    uint32_t type;
    int rank;
    bool row_major;
    size_t count, nbytes;             /* elements, bytes in memory */
    int64_t *dims, *minor_to_major;   /* behind the struct */
};

/* Bytes of an element in memory (types narrower than a byte take one; tokens none), or -1 for a type that there is not. */
int pjrt_type_size(uint32_t type);
const char *pjrt_type_name(uint32_t type);
/* Whether programs take an argument of the type at the address: aligned for an element, or a complex number's parts. */
bool pjrt_is_aligned(const void *data, uint32_t type);
/* A new shape; `minor_to_major` NULL: row-major. NULL and an error for a type, size or order that cannot be. */
struct pjrt_shape *pjrt_shape_new(uint32_t type, const int64_t *dims, size_t rank, const int64_t *minor_to_major,
                                  struct pjrt_error **error);
/* The same by a layout of the API (tiled without tiles, or strides of a dense array; NULL: row-major). */
struct pjrt_shape *pjrt_shape_with_layout(uint32_t type, const int64_t *dims, size_t rank,
                                          const struct pjrt_memory_layout *layout, struct pjrt_error **error);
struct pjrt_shape *pjrt_shape_keep(struct pjrt_shape *shape);
void pjrt_shape_release(struct pjrt_shape *shape);
/* Whether type and sizes are the same, in whatever order in memory. */
bool pjrt_shape_same_array(const struct pjrt_shape *a, const struct pjrt_shape *b);
/* Bytes from an element to the next along each dimension. */
void pjrt_shape_strides(const struct pjrt_shape *shape, int64_t *strides);
/* Copies elements of `size` bytes between arrays of any strides (in bytes). */
void pjrt_copy_strided(char *to, const int64_t *to_strides, const char *from, const int64_t *from_strides,
                       const int64_t *dims, int rank, int size);

/* Memory (blocks.c) and buffers (buffers.c). */

struct pjrt_block {
    atomic_int references;
    void *data;
    size_t size;
    bool ours;    /* from the pool, so that a donated argument's place may become a result's */
    bool promised; /* somebody else's, who does not change it as long as it is a block */
    atomic_bool foreign; /* somebody outside was given the address, and may look at it (zero-copy arrays) */
    struct pjrt_form *_Atomic form; /* see forms.c */
    int wishes;             /* likewise */
    struct pjrt_client *client;
    struct pjrt_event *done;                          /* made ready when the block is released; or NULL */
    void (*on_delete)(void *data, void *user_arg);    /* called then; or NULL */
    void *on_delete_arg;
};

/* Pooled memory with arbitrary contents, or NULL. */
struct pjrt_block *pjrt_block_new(struct pjrt_client *client, size_t nbytes);
/* Somebody else's memory. */
struct pjrt_block *pjrt_block_over(struct pjrt_client *client, void *data, size_t nbytes);
struct pjrt_block *pjrt_block_keep(struct pjrt_block *block);
void pjrt_block_release(struct pjrt_block *block); /* NULL is allowed */

struct pjrt_buffer {
    struct pjrt_client *client;
    struct pjrt_memory *memory;
    struct pjrt_shape *shape;
    struct pjrt_event *ready; /* when there are contents; its error: there will be none */
    atomic_flag busy;         /* guards what follows */
    struct pjrt_block *_Atomic block; /* NULL: deleted or donated. May be looked at without `busy` */
    struct pjrt_block *held;  /* what external references hold; see buffers.c */
    int external;             /* references of others */
};

/* A new buffer that takes over the references to shape, block and ready; NULL (and all released) if there is no memory. */
struct pjrt_buffer *pjrt_buffer_new(struct pjrt_client *client, struct pjrt_memory *memory, struct pjrt_shape *shape,
                                    struct pjrt_block *block, struct pjrt_event *ready);
/* A reference to the buffer's block, or NULL if it was deleted. */
struct pjrt_block *pjrt_buffer_hold(struct pjrt_buffer *buffer);
/* Takes the block away from the buffer (which is deleted then), if nobody else has or may have it: `*exclusive`. NULL if it
 * was deleted before. */
struct pjrt_block *pjrt_buffer_donate(struct pjrt_buffer *buffer, bool *exclusive);
void pjrt_buffer_free(struct pjrt_buffer *buffer);

/* Layouts as values (layouts.c): a struct pjrt_layout is a struct pjrt_shape under another name. */

/* Executables (executables.c). */

struct pjrt_executable {
    atomic_int references;
    struct pjrt_client *client;  /* NULL: compiled without one */
    void *loaded;                /* the Python object (hilo.pjrt.compiler.Loaded); needs the GIL */
    struct hilo_program *program; /* its native part, which lives as long */
    char *name;
    size_t num_arguments, num_results;
    struct pjrt_shape **arguments, **results;
    const struct pjrt_memory_description **argument_kinds, **result_kinds;
    bool *donated;          /* of each argument: a call uses its buffer up */
    bool calls_python;
    double cost;            /* estimated nanoseconds of a call; NaN: not known, as it has loops */
    atomic_llong took;      /* nanoseconds of the last run, where that is not known; 0: none yet */
    size_t num_replicas, num_partitions;
    char *fingerprint;
    size_t fingerprint_size;
    struct pjrt_form *forms; /* that it made (forms.c) */
    struct pjrt_answers *answers; /* what getters were asked and must keep (executables.c) */
};

struct pjrt_loaded {
    struct pjrt_executable *executable;
    struct pjrt_client *client;
    atomic_int references; /* the caller's, and one of each run in progress */
    atomic_bool deleted;
};

/* A new executable with nothing in it, which python.c fills; and what getters give from it then. */
struct pjrt_executable *pjrt_executable_new(struct pjrt_client *client);
bool pjrt_executable_complete(struct pjrt_executable *executable);
struct pjrt_executable *pjrt_executable_keep(struct pjrt_executable *executable);
void pjrt_executable_release(struct pjrt_executable *executable);
/* `executable`, whose reference is taken over (also if it fails), on the client's device. */
struct pjrt_error *pjrt_loaded_new(struct pjrt_client *client, struct pjrt_executable *executable,
                                   struct pjrt_loaded **loaded);
void pjrt_loaded_release(struct pjrt_loaded *loaded);

/* Forms of arguments that come again (forms.c). */

#define PJRT_FORMS_ON_STACK 24

struct pjrt_forms {
    size_t count;
    void **pointers; /* of each of the program's forms: its memory, or NULL */
    struct pjrt_form **held;
    void *room[2 * PJRT_FORMS_ON_STACK];
};

/* Finds or makes the forms of a call's arguments, whose contents are there; `held`: their blocks. */
void pjrt_forms_take(struct pjrt_forms *forms, struct pjrt_executable *e, struct pjrt_block **held, void **arguments);
void pjrt_forms_give_back(struct pjrt_forms *forms);
/* The block gets other contents, or goes. */
void pjrt_form_forget(struct pjrt_block *block);
/* The executable goes. */
void pjrt_forms_drop(struct pjrt_executable *e);

/* From now on threads of hosts give no Python objects up (python.c). Whether none is at it any more. */
bool pjrt_python_end(void);

/* Seconds that a compilation for a topology waits for Python's lock (compile.c). */
void pjrt_set_patience(int seconds);

/* One execution's user data for handlers of foreign functions (ffi.c); keys are the numbers of types. */
struct pjrt_context {
    struct pjrt_user_data *data;
};

/* From now on handlers that run on this thread find the data of `context` (NULL: none); gives what it was before. */
struct pjrt_context *pjrt_context_use(struct pjrt_context *context);

/* Work that runs later, in order (queue.c). */

/* Queues `run(argument)` behind everything queued before; 0, or -1 if no thread can be had (then run it yourself). */
int pjrt_queue_add(struct pjrt_client *client, void (*run)(void *argument), void *argument);
/* The same on a thread of its own, for work that may wait for other work. */
int pjrt_queue_aside(struct pjrt_client *client, void (*run)(void *argument), void *argument);
/* Something that is to happen, from the call that asked for it until its event. Many at a time let the next call wait, so
 * that memory does not run out; a forked child, in which they never happen, finds their events failed. */
struct pjrt_flight {
    struct pjrt_queue *queue;
    struct pjrt_flight *next, **place;
    struct pjrt_event *event; /* set by the caller */
};
void pjrt_queue_begin(struct pjrt_client *client, struct pjrt_flight *flight);
void pjrt_queue_end(struct pjrt_flight *flight);
/* Whether the calling thread is one that works on a queue, and works on one piece if there is any. */
bool pjrt_queue_help(void);
bool pjrt_queue_inside(void);
/* Whether no queue has work, or all is done that was there at the last mark. */
void pjrt_queues_mark(void);
bool pjrt_queues_are_idle(void);
/* Ends the thread, after all that is queued. What is queued after that starts another one. */
void pjrt_queue_close(struct pjrt_client *client);
/* Starts a thread that gets no signals, which are for the host's own. 0, or -1. */
int pjrt_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

/* Writes a number as messages of protocol buffers have it; gives the place behind it, at most ten bytes on. */
static inline char *pjrt_put_varint(char *at, uint64_t value) {
    for (; value > 0x7f; value >>= 7) *at++ = (char)(value | 0x80);
    *at++ = (char)value;
    return at;
}

/* All functions of the table. */
#define PJRT_PROTOTYPE(name) struct pjrt_error *pjrt_##name(struct pjrt_##name##_args *args);
void pjrt_error_destroy(struct pjrt_error_destroy_args *args);
void pjrt_error_message(struct pjrt_error_message_args *args);
PJRT_FUNCTIONS(PJRT_PROTOTYPE)

/* The extensions, each with its `next` (extensions.c). */
struct pjrt_extension *pjrt_extensions(void);

/* The table (table.c); what the library's GetPjrtApi returns. */
const struct pjrt_api *hilo_pjrt_api(void);

#endif
