/* A host of PJRT without Python: loads the plugin, compiles a text, runs it from several threads. Arguments: the plugin, and
 * what to do. Prints what came out; an error of the API ends it with status 1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

#define ARGS(function, ...) \
    struct pjrt_##function##_args args = {.struct_size = sizeof args, __VA_ARGS__}
#define CALL(function) check(api->function(&args), #function)

static const struct pjrt_api *(*get_api)(void);
static const struct pjrt_api *api;
static struct pjrt_client *client;
static struct pjrt_device *device;

static const char program[] =
    "func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = stablehlo.multiply %x, %x : tensor<4xf32>\n"
    "  %1 = stablehlo.add %0, %y : tensor<4xf32>\n"
    "  return %1 : tensor<4xf32>\n"
    "}\n";

static void check(struct pjrt_error *error, const char *what) {
    if (!error) return;
    struct pjrt_error_message_args message = {.struct_size = sizeof message, .error = error};
    api->error_message(&message);
    printf("%s: %.*s\n", what, (int)message.message_size, message.message);
    struct pjrt_error_destroy_args destroy = {.struct_size = sizeof destroy, .error = error};
    api->error_destroy(&destroy);
    exit(1);
}

static void await(struct pjrt_event *event) {
    ARGS(event_await, .event = event);
    CALL(event_await);
    struct pjrt_event_destroy_args destroy = {.struct_size = sizeof destroy, .event = event};
    check(api->event_destroy(&destroy), "event_destroy");
}

static struct pjrt_loaded *compile(const char *text) {
    struct pjrt_program source = {.struct_size = sizeof source, .code = text, .code_size = strlen(text),
                                  .format = "mlir", .format_size = 4};
    ARGS(client_compile, .client = client, .program = &source, .compile_options = "", .compile_options_size = 0);
    CALL(client_compile);
    return args.executable;
}

static struct pjrt_buffer *put(const float *values) {
    static const int64_t dims[] = {4};
    ARGS(client_buffer_from_host_buffer, .client = client, .data = values, .type = PJRT_F32, .dims = dims, .num_dims = 1,
         .host_buffer_semantics = PJRT_DURING_CALL, .device = device);
    CALL(client_buffer_from_host_buffer);
    await(args.done_with_host_buffer);
    return args.buffer;
}

static void destroy_buffer(struct pjrt_buffer *buffer) {
    ARGS(buffer_destroy, .buffer = buffer);
    CALL(buffer_destroy);
}

static void run(struct pjrt_loaded *executable, const float *x, const float *y, float *result) {
    struct pjrt_buffer *inputs[] = {put(x), put(y)}, *outputs[1];
    struct pjrt_buffer *const *lists[] = {inputs};
    struct pjrt_buffer **const out[] = {outputs};
    struct pjrt_event *complete[1];
    struct pjrt_execute_options options = {.struct_size = sizeof options};
    {
        ARGS(loaded_executable_execute, .executable = executable, .options = &options, .argument_lists = lists,
             .num_devices = 1, .num_args = 2, .output_lists = out, .device_complete_events = complete);
        CALL(loaded_executable_execute);
    }
    await(complete[0]);
    ARGS(buffer_to_host_buffer, .src = outputs[0], .dst = result, .dst_size = 4 * sizeof *result);
    CALL(buffer_to_host_buffer);
    await(args.event);
    destroy_buffer(outputs[0]);
    destroy_buffer(inputs[0]);
    destroy_buffer(inputs[1]);
}

static const float x[] = {1, 2, 3, 4}, y[] = {10, 20, 30, 40};

/* A thread of the host, which Python has never seen: compiles as well as runs. */
static void *work(void *shared) {
    static const float expected[] = {11, 24, 39, 56};
    struct pjrt_loaded *own = compile(program);
    for (int i = 0; i < 200; i++) {
        float result[4] = {0};
        run(i % 2 ? own : shared, x, y, result);
        if (memcmp(result, expected, sizeof result)) return "a wrong result";
    }
    ARGS(loaded_executable_destroy, .executable = own);
    CALL(loaded_executable_destroy);
    return NULL;
}

static void *find_api(void *unused) {
    (void)unused;
    return (void *)get_api();
}

static void interrupted(int signal) {
    (void)signal;
    static const char said[] = "the host's own handler\n";
    if (write(1, said, sizeof said - 1) < 0) _exit(3);
}

int main(int count, char **arguments) {
    const char *mode = count > 2 ? arguments[2] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGINT, interrupted);
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
    *(void **)&get_api = dlsym(library, "GetPjrtApi");
    pthread_t threads[4];
    void *found[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, find_api, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], &found[i]);
    api = found[0];
    for (int i = 1; i < 4; i++)
        if (found[i] != found[0]) return puts("threads got different tables"), 2;
    if (!api) return puts("no table"), 2;
    printf("PJRT %d.%d\n", api->version.major_version, api->version.minor_version);
    {
        ARGS(client_create, .num_options = 0);
        CALL(client_create);
        client = args.client;
    }
    {
        ARGS(client_addressable_devices, .client = client);
        CALL(client_addressable_devices);
        device = args.addressable_devices[0];
    }
    if (strcmp(mode, "bad") == 0) compile("func.func @main( {");
    struct pjrt_loaded *executable = compile(program);
    float result[4] = {0};
    run(executable, x, y, result);
    printf("%g %g %g %g\n", result[0], result[1], result[2], result[3]);
    if (strcmp(mode, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            executable = compile(program);
            run(executable, x, y, result);
            printf("child: %g\n", result[3]);
            fflush(stdout);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        printf("status %d\n", status);
    }
    if (strcmp(mode, "signal") == 0) raise(SIGINT);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, executable);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &found[i]);
        if (found[i]) return puts(found[i]), 2;
    }
    {
        ARGS(loaded_executable_destroy, .executable = executable);
        CALL(loaded_executable_destroy);
    }
    {
        ARGS(client_destroy, .client = client);
        CALL(client_destroy);
    }
    puts("done");
    return 0;
}
