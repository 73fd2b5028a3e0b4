/* Executables: their life, loading, and what they are asked. Getters give no errors (clients abort on one): what cannot
 * be answered is empty or 0. Answers from Python are fetched once, when first asked for, and live as long as the
 * executable; two threads may ask at once, and then the second one's answer is dropped. */
#include "python.h"

#include <stdlib.h>
#include <string.h>

/* The bytes of pjrt_executable_get_compiled_memory_stats_args, by name. */
#define MEMORY_STATS(F) \
    F(generated_code_size_in_bytes) F(argument_size_in_bytes) F(output_size_in_bytes) F(alias_size_in_bytes) \
    F(temp_size_in_bytes) F(host_generated_code_size_in_bytes) F(host_argument_size_in_bytes) \
    F(host_output_size_in_bytes) F(host_alias_size_in_bytes) F(host_temp_size_in_bytes) F(peak_memory_in_bytes) \
    F(total_size_in_bytes) F(total_allocation_bytes) F(indefinite_allocations) F(peak_unpadded_heap_bytes)

struct optimized {
    struct pjrt_bytes format, code;
};

struct properties {
    struct pjrt_named_value *values;
    size_t count;
};

struct kinds {
    const char **texts;
    size_t *sizes;
};

struct pjrt_answers {
    struct kinds arguments, results; /* kinds of memory */
    uint32_t *types;                 /* of results */
    int64_t *dims;
    size_t *ranks;
    _Atomic(struct optimized *) optimized;
    _Atomic(struct properties *) costs, memory;
    atomic_llong code_size; /* -1: not asked yet */
};

/* Life. */

struct pjrt_executable *pjrt_executable_new(struct pjrt_client *client) {
    struct pjrt_executable *e = calloc(1, sizeof *e);
    struct pjrt_answers *a = e ? calloc(1, sizeof *a) : NULL;
    if (!a) {
        free(e);
        return NULL;
    }
    atomic_init(&e->references, 1);
    atomic_init(&a->code_size, -1);
    e->client = client;
    e->answers = a;
    return e;
}

static bool complete_kinds(struct kinds *kinds, const struct pjrt_memory_description **descriptions, size_t count) {
    kinds->texts = calloc(count + 1, sizeof *kinds->texts);
    kinds->sizes = calloc(count + 1, sizeof *kinds->sizes);
    if (!kinds->texts || !kinds->sizes) return false;
    for (size_t i = 0; i < count; i++) {
        kinds->texts[i] = descriptions[i]->kind;
        kinds->sizes[i] = strlen(descriptions[i]->kind);
    }
    return true;
}

bool pjrt_executable_complete(struct pjrt_executable *e) {
    struct pjrt_answers *a = e->answers;
    size_t num_dims = 0;
    for (size_t i = 0; i < e->num_results; i++) num_dims += (size_t)e->results[i]->rank;
    a->types = calloc(e->num_results + 1, sizeof *a->types);
    a->ranks = calloc(e->num_results + 1, sizeof *a->ranks);
    a->dims = calloc(num_dims + 1, sizeof *a->dims);
    if (!a->types || !a->ranks || !a->dims) return false;
    int64_t *dims = a->dims;
    for (size_t i = 0; i < e->num_results; i++) {
        const struct pjrt_shape *shape = e->results[i];
        a->types[i] = shape->type;
        a->ranks[i] = (size_t)shape->rank;
        for (int d = 0; d < shape->rank; d++) *dims++ = shape->dims[d];
    }
    return complete_kinds(&a->arguments, e->argument_kinds, e->num_arguments) &&
           complete_kinds(&a->results, e->result_kinds, e->num_results);
}

struct pjrt_executable *pjrt_executable_keep(struct pjrt_executable *e) {
    atomic_fetch_add_explicit(&e->references, 1, memory_order_relaxed);
    return e;
}

static void free_optimized(struct optimized *o) {
    if (!o) return;
    free(o->format.data);
    free(o->code.data);
    free(o);
}

static void free_properties(struct properties *p) {
    if (p) free(p->values);
    free(p);
}

static void free_shapes(struct pjrt_shape **shapes, size_t count) {
    for (size_t i = 0; shapes && i < count; i++)
        if (shapes[i]) pjrt_shape_release(shapes[i]);
    free(shapes);
}

void pjrt_executable_release(struct pjrt_executable *e) {
    if (atomic_fetch_sub_explicit(&e->references, 1, memory_order_acq_rel) > 1) return;
    if (e->forms) pjrt_forms_drop(e);
    struct pjrt_answers *a = e->answers;
    free_optimized(a->optimized);
    free_properties(a->costs);
    free_properties(a->memory);
    free(a->arguments.texts);
    free(a->arguments.sizes);
    free(a->results.texts);
    free(a->results.sizes);
    free(a->types);
    free(a->dims);
    free(a->ranks);
    free(a);
    free_shapes(e->arguments, e->num_arguments);
    free_shapes(e->results, e->num_results);
    free(e->argument_kinds);
    free(e->result_kinds);
    free(e->donated);
    free(e->name);
    free(e->fingerprint);
    pjrt_python_release((PyObject *)e->program);
    pjrt_python_release(e->loaded);
    free(e);
}

void pjrt_loaded_release(struct pjrt_loaded *loaded) {
    if (atomic_fetch_sub_explicit(&loaded->references, 1, memory_order_acq_rel) > 1) return;
    pjrt_executable_release(loaded->executable);
    free(loaded);
}

struct pjrt_error *pjrt_loaded_new(struct pjrt_client *client, struct pjrt_executable *e, struct pjrt_loaded **loaded) {
    struct pjrt_loaded *l = calloc(1, sizeof *l);
    if (!l) {
        pjrt_executable_release(e);
        return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for an executable");
    }
    l->executable = e;
    l->client = client;
    atomic_init(&l->references, 1);
    *loaded = l;
    return NULL;
}

struct pjrt_error *pjrt_client_load(struct pjrt_client_load_args *args) {
    return pjrt_loaded_new(args->client, pjrt_executable_keep(args->executable), &args->loaded_executable);
}

struct pjrt_error *pjrt_executable_deserialize_and_load(struct pjrt_executable_deserialize_and_load_args *args) {
    const char *options = NULL;
    size_t options_size = 0;
    if (PJRT_KNOWS(args, overridden_serialized_compile_options_size)) {
        options = args->overridden_serialized_compile_options;
        options_size = options ? args->overridden_serialized_compile_options_size : 0;
    }
    struct pjrt_executable *e;
    struct pjrt_error *error = pjrt_python_load(args->client, args->serialized_executable, args->serialized_executable_size,
                                                options, options_size, &e);
    return error ? error : pjrt_loaded_new(args->client, e, &args->loaded_executable);
}

struct pjrt_error *pjrt_executable_destroy(struct pjrt_executable_destroy_args *args) {
    if (args->executable) pjrt_executable_release(args->executable);
    return NULL;
}

struct pjrt_error *pjrt_loaded_executable_destroy(struct pjrt_loaded_executable_destroy_args *args) {
    if (args->executable) pjrt_loaded_release(args->executable);
    return NULL;
}

/* What is known without Python. */

struct pjrt_error *pjrt_executable_name(struct pjrt_executable_name_args *args) {
    args->executable_name = args->executable->name;
    args->executable_name_size = strlen(args->executable->name);
    return NULL;
}

struct pjrt_error *pjrt_executable_num_replicas(struct pjrt_executable_num_replicas_args *args) {
    args->num_replicas = args->executable->num_replicas;
    return NULL;
}

struct pjrt_error *pjrt_executable_num_partitions(struct pjrt_executable_num_partitions_args *args) {
    args->num_partitions = args->executable->num_partitions;
    return NULL;
}

struct pjrt_error *pjrt_executable_num_outputs(struct pjrt_executable_num_outputs_args *args) {
    args->num_outputs = args->executable->num_results;
    return NULL;
}

struct pjrt_error *pjrt_executable_output_memory_kinds(struct pjrt_executable_output_memory_kinds_args *args) {
    args->num_outputs = args->executable->num_results;
    args->memory_kinds = args->executable->answers->results.texts;
    args->memory_kind_sizes = args->executable->answers->results.sizes;
    return NULL;
}

struct pjrt_error *pjrt_executable_parameter_memory_kinds(struct pjrt_executable_parameter_memory_kinds_args *args) {
    args->num_parameters = args->executable->num_arguments;
    args->memory_kinds = args->executable->answers->arguments.texts;
    args->memory_kind_sizes = args->executable->answers->arguments.sizes;
    return NULL;
}

struct pjrt_error *pjrt_executable_output_element_types(struct pjrt_executable_output_element_types_args *args) {
    args->output_types = args->executable->answers->types;
    args->num_output_types = args->executable->num_results;
    return NULL;
}

struct pjrt_error *pjrt_executable_output_dimensions(struct pjrt_executable_output_dimensions_args *args) {
    args->num_outputs = args->executable->num_results;
    args->dims = args->executable->answers->dims;
    args->dim_sizes = args->executable->answers->ranks;
    return NULL;
}

struct pjrt_error *pjrt_executable_fingerprint(struct pjrt_executable_fingerprint_args *args) {
    args->executable_fingerprint = args->executable->fingerprint;
    args->executable_fingerprint_size = args->executable->fingerprint_size;
    return NULL;
}

struct pjrt_error *pjrt_loaded_executable_fingerprint(struct pjrt_loaded_executable_fingerprint_args *args) {
    args->executable_fingerprint = args->executable->executable->fingerprint;
    args->executable_fingerprint_size = args->executable->executable->fingerprint_size;
    return NULL;
}

/* What Python tells. */

static const struct properties *properties_of(struct pjrt_executable *e, _Atomic(struct properties *) *place, const char *method) {
    struct properties *known = atomic_load(place);
    if (known) return known;
    struct properties *asked = calloc(1, sizeof *asked);
    if (!asked) return NULL;
    pjrt_error_free(pjrt_python_items(e, method, &asked->values, &asked->count));
    if (atomic_compare_exchange_strong(place, &known, asked)) return asked;
    free_properties(asked);
    return known;
}

struct pjrt_error *pjrt_executable_get_cost_analysis(struct pjrt_executable_get_cost_analysis_args *args) {
    const struct properties *p = properties_of(args->executable, &args->executable->answers->costs, "cost_analysis");
    args->num_properties = p ? p->count : 0;
    args->properties = p ? p->values : NULL;
    return NULL;
}

struct pjrt_error *pjrt_executable_get_compiled_memory_stats(struct pjrt_executable_get_compiled_memory_stats_args *args) {
    const struct properties *p = properties_of(args->executable, &args->executable->answers->memory, "memory_stats");
#define CLEAR(field) \
    if (PJRT_KNOWS(args, field)) args->field = 0;
#define SET(field) \
    if (!strncmp(v->name, #field, v->name_size) && !#field[v->name_size] && PJRT_KNOWS(args, field)) \
        args->field = v->value.integer;
    MEMORY_STATS(CLEAR)
    for (size_t i = 0; p && i < p->count; i++) {
        const struct pjrt_named_value *v = &p->values[i];
        if (v->type != PJRT_INTEGER) continue;
        MEMORY_STATS(SET)
    }
    return NULL;
}

struct pjrt_error *pjrt_executable_size_of_generated_code_in_bytes(
    struct pjrt_executable_size_of_generated_code_in_bytes_args *args) {
    struct pjrt_answers *a = args->executable->answers;
    int64_t size = atomic_load(&a->code_size);
    if (size < 0) {
        struct pjrt_error *error = pjrt_python_number(args->executable, "code_size", &size);
        if (error || size < 0) size = 0;
        pjrt_error_free(error);
        atomic_store(&a->code_size, size);
    }
    args->size_in_bytes = size;
    return NULL;
}

/* Called twice: without memory for the code, to learn its size, and with it. */
struct pjrt_error *pjrt_executable_optimized_program(struct pjrt_executable_optimized_program_args *args) {
    _Atomic(struct optimized *) *place = &args->executable->answers->optimized;
    struct optimized *o = atomic_load(place);
    if (!o) {
        struct optimized *asked = calloc(1, sizeof *asked);
        if (!asked) return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for the optimized program");
        struct pjrt_bytes pair[2] = {{NULL, 0}, {NULL, 0}};
        pjrt_error_free(pjrt_python_pair(args->executable, "optimized_program", pair));
        *asked = (struct optimized){pair[0], pair[1]};
        if (atomic_compare_exchange_strong(place, &o, asked))
            o = asked;
        else
            free_optimized(asked);
    }
    struct pjrt_program *program = args->program;
    if (program->code && program->code_size < o->code.size)
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "the optimized program has %zu bytes, there is room for %zu", o->code.size,
                         program->code_size);
    if (program->code && o->code.size) memcpy((char *)program->code, o->code.data, o->code.size);
    program->code_size = o->code.size;
    program->format = o->format.data ? o->format.data : "mlir";
    program->format_size = o->format.data ? o->format.size : 4;
    return NULL;
}

struct pjrt_error *pjrt_executable_serialize(struct pjrt_executable_serialize_args *args) {
    struct pjrt_bytes bytes;
    struct pjrt_error *error = pjrt_python_bytes(args->executable, "serialize", &bytes);
    if (error) return error;
    args->serialized_bytes = bytes.data;
    args->serialized_bytes_size = bytes.size;
    args->serialized_executable = bytes.data;
    args->serialized_executable_deleter = free;
    return NULL;
}

struct pjrt_error *pjrt_executable_get_compile_options(struct pjrt_executable_get_compile_options_args *args) {
    struct pjrt_bytes bytes;
    struct pjrt_error *error = pjrt_python_attribute(args->executable, "options", &bytes);
    if (error) return error;
    args->serialized_bytes = bytes.data;
    args->serialized_bytes_size = bytes.size;
    args->serialized_compile_options = bytes.data;
    args->serialized_compile_options_deleter = free;
    return NULL;
}

/* Loaded executables. There is one device. */

struct pjrt_error *pjrt_loaded_executable_get_executable(struct pjrt_loaded_executable_get_executable_args *args) {
    args->executable = pjrt_executable_keep(args->loaded_executable->executable);
    return NULL;
}

struct pjrt_error *pjrt_loaded_executable_addressable_devices(struct pjrt_loaded_executable_addressable_devices_args *args) {
    args->addressable_devices = args->executable->client->devices;
    args->num_addressable_devices = 1;
    return NULL;
}

struct pjrt_error *pjrt_loaded_executable_addressable_device_logical_ids(
    struct pjrt_loaded_executable_addressable_device_logical_ids_args *args) {
    static const struct pjrt_logical_ids first = {0, 0};
    args->addressable_device_logical_ids = &first;
    args->num_addressable_device_logical_ids = 1;
    return NULL;
}

static void keep_static(void *holder) { (void)holder; }

/* A serialized DeviceAssignmentProto: one replica, one computation, on device 0. */
struct pjrt_error *pjrt_loaded_executable_get_device_assignment(
    struct pjrt_loaded_executable_get_device_assignment_args *args) {
    static char assignment[] = {0x08, 1, 0x10, 1, 0x1a, 3, 0x0a, 1, 0};
    args->serialized_bytes = assignment;
    args->serialized_bytes_size = sizeof assignment;
    args->serialized_device_assignment = assignment;
    args->serialized_device_assignment_deleter = keep_static;
    return NULL;
}

/* Runs that are in progress end well. */
struct pjrt_error *pjrt_loaded_executable_delete(struct pjrt_loaded_executable_delete_args *args) {
    atomic_store(&args->executable->deleted, true);
    return NULL;
}

struct pjrt_error *pjrt_loaded_executable_is_deleted(struct pjrt_loaded_executable_is_deleted_args *args) {
    args->is_deleted = atomic_load(&args->executable->deleted);
    return NULL;
}
