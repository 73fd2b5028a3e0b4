/* hilo_pjrt.so, the library that hosts of PJRT load. All it does is to find hilo: it takes the Python of the process, or
 * starts the one that hilo is installed in, imports hilo, and gives what hilo.runtime._native has as PJRT's table.
 *
 * It is linked with nothing of Python, so that a host without Python can load it: functions are looked up by name when they
 * are needed, and the headers serve for struct PyConfig alone, whose layout is that of one version of Python.
 *
 * HILO_PYTHON          the interpreter to start, whose packages are used; otherwise the one of the environment that this
 *                      library lies in, or that it was built by
 * HILO_PYTHON_LIBRARY  libpython; otherwise the one that belongs to the interpreter that built this library
 */
#define _GNU_SOURCE
#include <Python.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef HILO_BUILT_BY /* paths, set by setup.py */
#define HILO_BUILT_BY ""
#endif
#ifndef HILO_LIBPYTHON
#define HILO_LIBPYTHON ""
#endif

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define VERSION TEXT(PY_MAJOR_VERSION) "." TEXT(PY_MINOR_VERSION)
#define SONAME "libpython" VERSION ".so.1.0"

#define PYTHON_FUNCTIONS(F) \
    F(int, Py_IsInitialized, (void)) \
    F(const char *, Py_GetVersion, (void)) \
    F(void, PyConfig_InitPythonConfig, (PyConfig *)) \
    F(PyStatus, PyConfig_SetBytesString, (PyConfig *, wchar_t **, const char *)) \
    F(void, PyConfig_Clear, (PyConfig *)) \
    F(PyStatus, Py_InitializeFromConfig, (const PyConfig *)) \
    F(int, PyStatus_Exception, (PyStatus)) \
    F(PyThreadState *, PyEval_SaveThread, (void)) \
    F(PyGILState_STATE, PyGILState_Ensure, (void)) \
    F(void, PyGILState_Release, (PyGILState_STATE)) \
    F(PyObject *, PyDict_New, (void)) \
    F(PyObject *, PyDict_GetItemString, (PyObject *, const char *)) \
    F(int, PyDict_SetItemString, (PyObject *, const char *, PyObject *)) \
    F(PyObject *, PyUnicode_DecodeFSDefault, (const char *)) \
    F(const char *, PyUnicode_AsUTF8, (PyObject *)) \
    F(PyObject *, PyRun_StringFlags, (const char *, int, PyObject *, PyObject *, PyCompilerFlags *)) \
    F(void *, PyLong_AsVoidPtr, (PyObject *)) \
    F(void, PyErr_Clear, (void)) \
    F(void, Py_DecRef, (PyObject *))

#define MEMBER(type, name, arguments) type(*name) arguments;
static struct {
    PYTHON_FUNCTIONS(MEMBER)
} py;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows and the start of Python */
static bool have_python, have_started; /* `py` is there; it was us who started Python */

static void say(const char *what, const char *why) { fprintf(stderr, "hilo: %s: %s\n", what, why); }

/* Looks the functions up. NULL, or the name of one that is not there. */
static const char *find_functions(void) {
#define FIND(type, name, arguments) \
    if (!(*(void **)&py.name = dlsym(RTLD_DEFAULT, #name))) return #name;
    PYTHON_FUNCTIONS(FIND)
    return NULL;
}

/* Where things are. */

/* The directory that the package hilo is in, which this library is a part of: DIRECTORY/hilo/pjrt/hilo_pjrt.so. */
static int directory(char *path, size_t size) {
    Dl_info info;
    if (!dladdr((void *)&find_functions, &info) || !info.dli_fname) return -1;
    char *whole = realpath(info.dli_fname, NULL);
    if (!whole) return -1;
    for (int i = 0; i < 3; i++) {
        char *slash = strrchr(whole, '/');
        if (slash) *slash = 0;
    }
    int written = snprintf(path, size, "%s", whole);
    free(whole);
    return written > 0 && (size_t)written < size ? 0 : -1;
}

/* The interpreter whose environment is to be used; "": Python's own choice. */
static void interpreter(char *path, size_t size) {
    const char *given = getenv("HILO_PYTHON"), tail[] = "/lib/python" VERSION "/site-packages";
    if (given && *given) {
        snprintf(path, size, "%s", given);
        return;
    }
    if (directory(path, size) == 0) {
        size_t length = strlen(path), behind = sizeof tail - 1;
        if (length > behind && strcmp(path + length - behind, tail) == 0) {
            snprintf(path + length - behind, size - (length - behind), "/bin/python3");
            if (access(path, X_OK) == 0) return;
        }
    }
    snprintf(path, size, "%s", HILO_BUILT_BY);
}

/* Loads libpython, so that extension modules find its functions. */
static int load_python(void) {
    const char *given = getenv("HILO_PYTHON_LIBRARY");
    const char *const places[] = {given && *given ? given : HILO_LIBPYTHON, given && *given ? "" : SONAME};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (*places[i] && dlopen(places[i], RTLD_NOW | RTLD_GLOBAL)) return 0;
    const char *why = dlerror();
    fprintf(stderr,
            "hilo: this process has no Python, and " SONAME " cannot be loaded (%s); HILO_PYTHON_LIBRARY is to name it\n",
            why ? why : "no path is known");
    return -1;
}

/* Starts Python: the host's signals, arguments and streams stay its own. The GIL is free afterwards. */
static int start_python(void) {
    PyConfig config;
    PyStatus status;
    char path[4096];
    interpreter(path, sizeof path);
    py.PyConfig_InitPythonConfig(&config);
    config.install_signal_handlers = 0;
    config.parse_argv = 0;
    config.configure_c_stdio = 0;
    status = py.PyConfig_SetBytesString(&config, &config.program_name, *path ? path : "python3");
    if (!py.PyStatus_Exception(status) && *path) status = py.PyConfig_SetBytesString(&config, &config.executable, path);
    if (!py.PyStatus_Exception(status)) status = py.Py_InitializeFromConfig(&config);
    py.PyConfig_Clear(&config);
    if (py.PyStatus_Exception(status)) {
        say("Python cannot be started", status.err_msg ? status.err_msg : "it does not say why");
        return -1;
    }
    py.PyEval_SaveThread();
    return 0;
}

/* Makes `py` usable and Python run, once. */
static int ensure_python(void) {
    if (have_python) return 0;
    if (!dlsym(RTLD_DEFAULT, "Py_IsInitialized") && load_python() != 0) return -1;
    const char *missing = find_functions();
    if (missing) {
        say("libpython lacks a function", missing);
        return -1;
    }
    if (strncmp(py.Py_GetVersion(), VERSION ".", sizeof VERSION) != 0) {
        say("it was built for Python " VERSION ", but this process has", py.Py_GetVersion());
        return -1;
    }
    if (!py.Py_IsInitialized()) {
        if (start_python() != 0) return -1;
        have_started = true;
    }
    have_python = true;
    return 0;
}

/* The table. */

static const char code[] =
    "address, error = 0, ''\n"
    "try:\n"
    "    import sys\n"
    "    if directory and directory not in sys.path:\n"
    "        sys.path.insert(0, directory)\n"
    "    import hilo.pjrt\n"
    "    address = hilo.pjrt.table()\n"
    "except BaseException as e:\n"
    "    error = f'{type(e).__name__}: {e} (Python {sys.version.split()[0]} of {sys.prefix})'\n";

/* With the GIL. `where`: a directory to import hilo from if the Python that we started has no other way to it. */
static const void *import(const char *where) {
    const void *table = NULL;
    PyObject *names = py.PyDict_New(), *path = names ? py.PyUnicode_DecodeFSDefault(where) : NULL, *done = NULL;
    if (path && py.PyDict_SetItemString(names, "directory", path) == 0)
        done = py.PyRun_StringFlags(code, Py_file_input, names, names, NULL);
    if (done) {
        PyObject *address = py.PyDict_GetItemString(names, "address"), *error = py.PyDict_GetItemString(names, "error");
        table = address ? py.PyLong_AsVoidPtr(address) : NULL;
        const char *text = error ? py.PyUnicode_AsUTF8(error) : NULL;
        if (!table) say("it cannot be imported", text ? text : "there is no memory");
    } else {
        say("it cannot be imported", "there is no memory");
    }
    py.PyErr_Clear();
    if (done) py.Py_DecRef(done);
    if (path) py.Py_DecRef(path);
    if (names) py.Py_DecRef(names);
    return table;
}

__attribute__((visibility("default"))) const void *GetPjrtApi(void) {
    static _Atomic(const void *) table;
    const void *known = atomic_load(&table);
    if (known) return known;
    char where[4096] = "";
    pthread_mutex_lock(&lock); /* which nobody holds who waits for the GIL: whoever waits for it may have the GIL */
    int ready = ensure_python();
    bool started = have_started;
    pthread_mutex_unlock(&lock);
    if (ready != 0) return NULL;
    if (started && directory(where, sizeof where) != 0) where[0] = 0;
    PyGILState_STATE gil = py.PyGILState_Ensure();
    known = import(where);
    py.PyGILState_Release(gil);
    atomic_store(&table, known);
    return known;
}
