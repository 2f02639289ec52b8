/* catena.vendor.draft/1: handles of the vendor's libraries, made once for each device and stream. A
 * backend extension, and one between plugins: kernels reach it by catena_host.extensions(). */
#ifndef CATENA_ABI_EXT_DRAFT_VENDOR_H
#define CATENA_ABI_EXT_DRAFT_VENDOR_H

#include "catena/abi/backend.h"

#define CATENA_VENDOR_DRAFT_1 "catena.vendor.draft/1" /* its id */

/* The table of the extension. */
typedef struct catena_vendor {
    uint32_t struct_size;
    uint32_t reserved;
    /* [compute] The library's handle ("cublas": a cublasHandle_t), bound to stream and to the
     * calling thread, made on the first call, or left by a thread that ended; the backend's, valid
     * until the stream is destroyed. Work on it is work on the stream. The backend's own products
     * have another handle: each user sets the modes that it needs. CATENA_E_UNSUPPORTED, with text,
     * if the library is not available. */
    catena_status(CATENA_CALL *handle)(catena_ctx *ctx, void *dev, catena_stream *stream,
                                       const char *library, void **handle);
    /* [any] The library opened with dlopen() and its version as one number, for those who need more
     * of it than the backend does. CATENA_E_UNSUPPORTED as above. */
    catena_status(CATENA_CALL *open)(catena_ctx *ctx, const char *library, void **dl_handle,
                                     int64_t *version);
} catena_vendor;

#endif
