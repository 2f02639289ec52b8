/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_HOST_H
#define CATENA_ABI_HOST_H
#include "catena/abi/kernel.h"
enum { CATENA_LOG_DEBUG = 0, CATENA_LOG_INFO = 1, CATENA_LOG_WARNING = 2, CATENA_LOG_ERROR = 3 };
typedef void(CATENA_CALL *catena_range_fn)(void *user, int64_t begin, int64_t end, int32_t slot);
struct catena_host {
    uint32_t struct_size;
    uint16_t abi_major;
    uint16_t abi_minor;
    const char *name;
    const char *version;
    void(CATENA_CALL *log)(catena_ctx *ctx, int32_t level, const char *text);
    catena_status(CATENA_CALL *fail)(catena_ctx *ctx, catena_status status, const char *text);
    void(CATENA_CALL *parallel_for)(catena_ctx *ctx, int64_t n, int64_t grain, catena_range_fn fn,
                                    void *user);
    int32_t(CATENA_CALL *slots)(catena_ctx *ctx);
    catena_status(CATENA_CALL *philox)(catena_ctx *ctx, uint64_t n, uint64_t *seed,
                                       uint64_t *offset);
    int64_t(CATENA_CALL *config)(catena_ctx *ctx, const char *key, int64_t otherwise);
    const void *const *(CATENA_CALL *extensions)(catena_ctx *ctx, const char *id);
    catena_status(CATENA_CALL *find)(catena_ctx *ctx, const char *function,
                                     const catena_callable **out);
    catena_status(CATENA_CALL *call)(catena_ctx *ctx, const catena_callable *function,
                                     const catena_named_value *attrs, uint32_t n_attrs,
                                     catena_var *const *x, uint32_t n_x, catena_var **y,
                                     uint32_t n_y);
    catena_status(CATENA_CALL *meta)(catena_ctx *ctx, const catena_var *var, catena_meta *out);
    const void *(CATENA_CALL *get_extension)(const catena_host *host, const char *id);
    catena_status(CATENA_CALL *read)(catena_ctx *ctx, const catena_var *var, const void **elements);
};
#endif
