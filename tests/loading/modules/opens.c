/* Opens libraries with dlopen(), in the ways that the plugin guide describes. */
#define _GNU_SOURCE
#define MODULE_ID "org.example.opens"
#include "../../bad_plugins/module.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int brought(void);

/* Sets path to the folder of the address's file, with a final '/'. Returns 0 if there is none. */
static int folder_of(const void *address, char *path, size_t size) {
    Dl_info info;
    if (!dladdr(address, &info)) return 0;
    snprintf(path, size, "%s", info.dli_fname);
    char *end = path[0] == '/' ? strrchr(path, '/') : NULL;
    if (!end || access(path, F_OK) != 0) return 0;
    end[1] = '\0';
    return 1;
}

static int opens(const void *beside, const char *library) {
    char path[4096];
    if (!folder_of(beside, path, sizeof path)) return 0;
    if (strlen(path) + strlen(library) >= sizeof path) return 0;
    return dlopen(strcat(path, library), RTLD_NOW | RTLD_LOCAL) != NULL;
}

static catena_status CATENA_CALL init(const catena_host *host, catena_ctx *ctx) {
    char found[256];
    /* By the plugin's RUNPATH. */
    const int by_runpath = dlopen("libdeep.so.1", RTLD_NOW | RTLD_LOCAL) != NULL;
    const int linked = dlopen("libbrought.so.1", RTLD_NOW | RTLD_LOCAL) != NULL;
    /* By the folder of a linked library, of the host's library, and of this file. */
    const int by_linked = opens((const void *)(uintptr_t)&brought, "../chain/deep/libdeep.so.1");
    const int by_host = opens((const void *)(uintptr_t)host->fail, "catena/private/libdeep.so.1");
    const int by_itself = opens((const void *)(uintptr_t)&init, "chain/deep/libdeep.so.1");
    snprintf(found, sizeof found,
             "by RUNPATH %d, linked %d, by linked %d, by host %d, by itself %d", by_runpath, linked,
             by_linked, by_host, by_itself);
    return host->fail(ctx, CATENA_E_INTERNAL, found);
}
static const catena_function function = FUNCTION("test.opens");
static const catena_function *const functions[] = {&function};
PLUGIN(functions, 1, NULL, 0, init)
