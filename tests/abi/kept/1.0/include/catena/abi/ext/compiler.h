/* catena.compiler/1: an extension between plugins; source text becomes kernels of a device. It is
 * offered for a backend by name, as catena.blas/1 is, and not by the backend itself: so another
 * plugin can bring a better compiler for a device that it did not make. */
#ifndef CATENA_ABI_EXT_COMPILER_H
#define CATENA_ABI_EXT_COMPILER_H

#include "catena/abi/host.h"

#define CATENA_COMPILER_1 "catena.compiler/1" /* its id */

enum { CATENA_COMPILER_IDENTITY = 1024 }; /* bytes that an identity needs at most */

/* The compiler's: a kernel, ready to launch; never freed. */
typedef struct catena_compiled catena_compiled;

/* One translation unit with one kernel. */
typedef struct catena_compilation {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;           /* of the kernel's entry, which profilers show: an identifier */
    const char *source;         /* the dialect comes first in it */
    const char *const *options; /* the user's, NULL-terminated */
    /* Get the binary, or what the compiler has to say of a source that is wrong; not both. */
    void(CATENA_CALL *binary)(void *user, const void *data, uint64_t bytes);
    void(CATENA_CALL *messages)(void *user, const char *text);
    void *user; /* for both */
} catena_compilation;

/* What compile() made, now or in another process of another day. */
typedef struct catena_binary {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name; /* as in catena_compilation */
    const void *data; /* as binary() got it */
    uint64_t bytes;   /* at data */
    /* A file that begins with these bytes, so that profilers find the code, or NULL. The name may
     * stand for another file after the call. */
    const char *path;
} catena_binary;

/* What the items of a launch are; it says which macro of the dialect made the entry. */
enum {
    CATENA_LAUNCH_ELEMENTS = 0, /* CATENA_ENTRY: short, independent, of neighbouring elements */
    CATENA_LAUNCH_ROWS = 1,     /* CATENA_REDUCTION with its lanes along the row: a row each */
    CATENA_LAUNCH_COLUMNS = 2   /* CATENA_REDUCTION with its lanes across: neighbouring columns */
};

/* One launch of a kernel. */
typedef struct catena_launch {
    uint32_t struct_size;
    int32_t kind;                  /* CATENA_LAUNCH_* */
    const catena_compiled *kernel; /* from load(), of the same dev */
    int64_t n;                     /* items; at least 1 */
    int64_t cost;                  /* elements that an item reads of each argument, about */
    int64_t unit;                  /* items that belong together: n is cut at multiples of it */
    const void *args;              /* the entry's struct, read before the return; aligned to 8 */
    uint64_t args_bytes;           /* at args; at most 4000 */
    void *dev;                     /* as in catena_call */
    catena_stream *stream;         /* as in catena_call */
} catena_launch;

/* The table of the extension. Failures have text by fail(), but for what messages() got. */
typedef struct catena_compiler {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name; /* for messages: "nvrtc" */
    /* Source that stands before every kernel. What it has to define is said in
     * plugins/jit/README.md: types, mathematics, and the macros that make an entry of a body. */
    const char *dialect;
    /* How a reduction is cut: more pieces than this are no faster, nor are smaller ones. */
    int64_t reduction_pieces;
    int64_t reduction_least; /* elements of a piece */
    /* [any] The compiler, its version, settings and the target in one line: binaries of one
     * identity can take each other's place. CATENA_E_UNSUPPORTED if there is no compiler. text has
     * CATENA_COMPILER_IDENTITY bytes. */
    catena_status(CATENA_CALL *identity)(catena_ctx *ctx, void *dev, char *text);
    /* [any] CATENA_E_INVALID if the source or an option is wrong. */
    catena_status(CATENA_CALL *compile)(catena_ctx *ctx, void *dev,
                                        const catena_compilation *compilation);
    /* [compute] Brings a binary onto the device. */
    catena_status(CATENA_CALL *load)(catena_ctx *ctx, void *dev, const catena_binary *binary,
                                     const catena_compiled **kernel);
    /* [compute] Enqueues or does the work. */
    catena_status(CATENA_CALL *launch)(catena_ctx *ctx, const catena_launch *launch);
} catena_compiler;

#endif
