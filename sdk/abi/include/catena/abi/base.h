/* Versions, calling convention and status codes, which every other ABI header needs. */
#ifndef CATENA_ABI_BASE_H
#define CATENA_ABI_BASE_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != 0xffffffffffffffffu
#error "catena: the plugin ABI is defined for 64-bit targets"
#endif

#define CATENA_ABI_MAJOR 1u /* another major is another set of headers and symbols */
#define CATENA_ABI_MINOR 0u /* newest minor that these headers describe */

/* The oldest host minor that the plugin needs. This is not the version it was built with: a
 * plugin that uses nothing newer runs on every host with the same major. */
#ifndef CATENA_TARGET_MINOR
#define CATENA_TARGET_MINOR 0u
#endif

#if defined(_WIN32)
#define CATENA_CALL __cdecl
#define CATENA_EXPORT __declspec(dllexport)
#else
#define CATENA_CALL                                          /* of every callback */
#define CATENA_EXPORT __attribute__((visibility("default"))) /* of the two symbols alone */
#endif

/* Structs start with struct_size and grow only at their end. A reader uses a field only if the
 * writer's struct contains it. */
#define CATENA_HAS(pointer, type, field) \
    ((size_t)(pointer)->struct_size >= offsetof(type, field) + sizeof(((type *)0)->field))

/* Thread tags, used in all comments:
 *   [load]    entry, init, deinit: one thread, no other call into the plugin is running
 *   [any]     any thread, concurrently, reentrant; accesses no device memory
 *   [compute] any thread, concurrently for different calls; accesses only the memory of its call
 *   [pool]    a worker of parallel_for: no host function except fail()
 * Nothing may throw or unwind out of a callback. Strings are UTF-8 and zero-terminated, and belong
 * to their owner: tables and names live until the process ends, because hosts never unload. */

/* The status of a call. 0 is success; everything else is a failure, also a code that the host
 * does not know. catena_host.fail() passes the message to the host. */
typedef int32_t catena_status;
enum {
    CATENA_OK = 0,
    CATENA_E_INVALID = 1,     /* an argument or attribute is wrong */
    CATENA_E_DTYPE = 2,       /* a dtype is wrong */
    CATENA_E_SHAPE = 3,       /* a rank or an extent is wrong */
    CATENA_E_UNSUPPORTED = 4, /* legal, but this kernel cannot do it: of plan(), the host tries the
                                 next one; of run(), the call has failed */
    CATENA_E_NOMEM = 5,
    CATENA_E_DEVICE = 6, /* the device or a vendor library failed */
    CATENA_E_INTERNAL = 7,
    CATENA_E_NOT_DIFFERENTIABLE = 8,
    CATENA_E_VALUE = 9 /* the data itself is out of range: a label, an index */
};

typedef struct catena_ctx catena_ctx;           /* host's: one running call and its message */
typedef struct catena_stream catena_stream;     /* backend's: an ordered queue of work */
typedef struct catena_event catena_event;       /* backend's: a point in a stream */
typedef struct catena_var catena_var;           /* host's: a variable of its graph */
typedef struct catena_callable catena_callable; /* host's: a function resolved by name */
typedef struct catena_host catena_host;
typedef struct catena_function catena_function;

#endif
