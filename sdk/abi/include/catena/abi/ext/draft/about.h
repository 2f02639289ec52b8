/* catena.about.draft/1: a backend extension; a line about a device, for listings. */
#ifndef CATENA_ABI_EXT_DRAFT_ABOUT_H
#define CATENA_ABI_EXT_DRAFT_ABOUT_H

#include "catena/abi/backend.h"

#define CATENA_ABOUT_DRAFT_1 "catena.about.draft/1" /* its id */

/* The table of the extension. */
typedef struct catena_about {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] What the device is, for people: its model, what it can do, its memory. The backend's,
     * until close(). */
    const char *(CATENA_CALL *text)(void *dev);
} catena_about;

#endif
