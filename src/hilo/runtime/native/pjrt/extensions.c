/* The chain of extensions, and those that are only a word: descriptions of memories, shardings. */
#include <string.h>

#include "pjrt.h"

/* Memories of devices that are only described. */

static struct pjrt_error *of_device(struct pjrt_device_description_memory_descriptions_args *args) {
    static const struct pjrt_memory_description *const memories[PJRT_MEMORIES] = {
        &pjrt_memory_kinds[PJRT_DEVICE_MEMORY],
        &pjrt_memory_kinds[PJRT_PINNED_MEMORY],
        &pjrt_memory_kinds[PJRT_UNPINNED_MEMORY],
    };
    args->memory_descriptions = memories;
    args->num_memory_descriptions = PJRT_MEMORIES;
    args->default_memory_index = PJRT_DEVICE_MEMORY;
    return NULL;
}

static struct pjrt_error *kind(struct pjrt_memory_description_kind_args *args) {
    args->kind = args->memory_description->kind;
    args->kind_size = strlen(args->kind);
    args->kind_id = args->memory_description->kind_id;
    return NULL;
}

static struct pjrt_memory_descriptions_extension memory_descriptions = {
    .base = {sizeof memory_descriptions, PJRT_EXTENSION_MEMORY_DESCRIPTIONS, NULL},
    .device_description_memory_descriptions = of_device,
    .memory_description_kind = kind,
};

/* Programs run on one device: there is nothing to say of how their values are spread, which is said by no list at all. */

static struct pjrt_error *of_parameters(struct pjrt_shardings_executable_parameter_shardings_args *args) {
    args->num_parameters = args->executable->num_arguments;
    args->shardings = NULL;
    args->sharding_sizes = NULL;
    return NULL;
}

static struct pjrt_error *of_outputs(struct pjrt_shardings_executable_output_shardings_args *args) {
    args->num_outputs = args->executable->num_results;
    args->shardings = NULL;
    args->sharding_sizes = NULL;
    return NULL;
}

static struct pjrt_shardings_extension shardings = {
    .base = {sizeof shardings, PJRT_EXTENSION_SHARDINGS, NULL},
    .shardings_executable_parameter_shardings = of_parameters,
    .shardings_executable_output_shardings = of_outputs,
};

struct pjrt_extension *pjrt_extensions(void) {
    struct pjrt_extension *const chain[] = {
        &pjrt_layouts_extension.base, &memory_descriptions.base,       &pjrt_ffi_extension.base,
        &shardings.base,              &pjrt_abi_version_extension.base,
    };
    for (size_t i = 1; i < sizeof chain / sizeof *chain; i++) chain[i - 1]->next = chain[i];
    return chain[0];
}
