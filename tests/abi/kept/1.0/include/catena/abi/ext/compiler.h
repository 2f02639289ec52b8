/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_EXT_COMPILER_H
#define CATENA_ABI_EXT_COMPILER_H
#include "catena/abi/host.h"
#define CATENA_COMPILER_1 "catena.compiler/1"
enum { CATENA_COMPILER_IDENTITY = 1024 };
typedef struct catena_compiled catena_compiled;
typedef struct catena_compilation {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;
    const char *source;
    const char *const *options;
    void(CATENA_CALL *binary)(void *user, const void *data, uint64_t bytes);
    void(CATENA_CALL *messages)(void *user, const char *text);
    void *user;
} catena_compilation;
typedef struct catena_binary {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;
    const void *data;
    uint64_t bytes;
    const char *path;
} catena_binary;
enum {
    CATENA_LAUNCH_ELEMENTS = 0,
    CATENA_LAUNCH_ROWS = 1,
    CATENA_LAUNCH_COLUMNS = 2
};
typedef struct catena_launch {
    uint32_t struct_size;
    int32_t kind;
    const catena_compiled *kernel;
    int64_t n;
    int64_t cost;
    int64_t unit;
    const void *args;
    uint64_t args_bytes;
    void *dev;
    catena_stream *stream;
} catena_launch;
typedef struct catena_compiler {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;
    const char *dialect;
    int64_t reduction_pieces;
    int64_t reduction_least;
    catena_status(CATENA_CALL *identity)(catena_ctx *ctx, void *dev, char *text);
    catena_status(CATENA_CALL *compile)(catena_ctx *ctx, void *dev,
                                        const catena_compilation *compilation);
    catena_status(CATENA_CALL *load)(catena_ctx *ctx, void *dev, const catena_binary *binary,
                                     const catena_compiled **kernel);
    catena_status(CATENA_CALL *launch)(catena_ctx *ctx, const catena_launch *launch);
} catena_compiler;
#endif
