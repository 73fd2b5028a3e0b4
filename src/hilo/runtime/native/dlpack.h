/* Reading other frameworks' arrays through DLPack. */
#ifndef HILO_DLPACK_H
#define HILO_DLPACK_H

#include "arrays.h"

/* from_dlpack(capsule, dtypes): a read-only array over the memory behind a DLPack capsule, which is used up. `dtypes`
 * maps (type code, bits) to numpy dtypes. BufferError for what cannot be read. */
PyObject *hilo_from_dlpack(PyObject *module, PyObject *args);

#endif
