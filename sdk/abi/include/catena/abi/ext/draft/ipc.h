/* catena.ipc.draft/1: a backend extension; memory and events that processes of one machine share.
 * */
#ifndef CATENA_ABI_EXT_DRAFT_IPC_H
#define CATENA_ABI_EXT_DRAFT_IPC_H

#include "catena/abi/backend.h"

#define CATENA_IPC_DRAFT_1 "catena.ipc.draft/1" /* its id */

/* Bytes that mean the same in every process of the machine; frozen. They may be sent as they are.
 * */
typedef struct catena_ipc_handle {
    uint8_t bytes[64];
} catena_ipc_handle;

/* The table of the extension; all are [compute]. A process does not import what it exported itself.
 * */
typedef struct catena_ipc {
    uint32_t struct_size;
    uint32_t reserved;
    /* data lies *offset bytes behind the start of the memory that the handle stands for. The memory
     * must outlive all imports of it. */
    catena_status(CATENA_CALL *memory_export)(catena_ctx *ctx, void *dev, const void *data,
                                              catena_ipc_handle *handle, uint64_t *offset);
    /* The start of that memory here, the same for each import of it; closed as often as imported.
     * */
    catena_status(CATENA_CALL *memory_import)(catena_ctx *ctx, void *dev,
                                              const catena_ipc_handle *handle, void **data);
    void(CATENA_CALL *memory_close)(void *dev, void *data);
    /* An event that can be exported; destroyed by the backend's event_destroy(), as imported ones.
     * */
    catena_status(CATENA_CALL *event_create)(catena_ctx *ctx, void *dev, catena_event **event);
    catena_status(CATENA_CALL *event_export)(catena_ctx *ctx, void *dev, catena_event *event,
                                             catena_ipc_handle *handle);
    catena_status(CATENA_CALL *event_import)(catena_ctx *ctx, void *dev,
                                             const catena_ipc_handle *handle, catena_event **event);
} catena_ipc;

#endif
