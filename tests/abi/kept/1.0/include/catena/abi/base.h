/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_BASE_H
#define CATENA_ABI_BASE_H
#include <stddef.h>
#include <stdint.h>
#if UINTPTR_MAX != 0xffffffffffffffffu
#error "catena: the plugin ABI is defined for 64-bit targets"
#endif
#define CATENA_ABI_MAJOR 1u
#define CATENA_ABI_MINOR 0u
#ifndef CATENA_TARGET_MINOR
#define CATENA_TARGET_MINOR 0u
#endif
#if defined(_WIN32)
#define CATENA_CALL __cdecl
#define CATENA_EXPORT __declspec(dllexport)
#else
#define CATENA_CALL
#define CATENA_EXPORT __attribute__((visibility("default")))
#endif
#define CATENA_HAS(pointer, type, field) \
    ((size_t)(pointer)->struct_size >= offsetof(type, field) + sizeof(((type *)0)->field))
typedef int32_t catena_status;
enum {
    CATENA_OK = 0,
    CATENA_E_INVALID = 1,
    CATENA_E_DTYPE = 2,
    CATENA_E_SHAPE = 3,
    CATENA_E_UNSUPPORTED = 4,
    CATENA_E_NOMEM = 5,
    CATENA_E_DEVICE = 6,
    CATENA_E_INTERNAL = 7,
    CATENA_E_NOT_DIFFERENTIABLE = 8,
    CATENA_E_VALUE = 9
};
typedef struct catena_ctx catena_ctx;
typedef struct catena_stream catena_stream;
typedef struct catena_event catena_event;
typedef struct catena_var catena_var;
typedef struct catena_callable catena_callable;
typedef struct catena_host catena_host;
typedef struct catena_function catena_function;
#endif
