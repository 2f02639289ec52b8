/* Modules that load or not, depending on the host's settings. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DEVICES
#define DEVICES ""
#endif
#ifndef NAME
#define NAME "test." TEXT(BAD)
#endif
#define VERSION "1.2"
#include "../bad_plugins/backend.h"

/* A row with a function, no kernel, and init(), which runs after registration; NULL: without. */
#define FUNCTION(name, f)         \
    SPOIL(name) {                 \
        the_plugin.n_kernels = 0; \
        the_plugin.init = f;      \
    }
#define INIT(name) static catena_status CATENA_CALL name(const catena_host *table, catena_ctx *ctx)

// good fails: nothing
FUNCTION(good, NULL)

// other fails: nothing
// Has the id of "good" but other code: must not be loaded in its place.
// compile: -DID='"org.example.good"'
SPOIL(other) {
    static catena_function more;
    more = the_function;
    more.name = "test.more";
    the_functions[the_plugin.n_functions++] = &more;
    the_plugin.n_kernels = 0;
}

// bound fails: nothing
// compile: -DNAME='"test.bound"' -DDEVICES='"dry"'
FUNCTION(bound, NULL)
// bound_too fails: nothing
// compile: -DNAME='"test.bound"' -DDEVICES='"dry"'
FUNCTION(bound_too, NULL)
// both fails: nothing
// compile: -DNAME='"test.bound"' -DDEVICES='"dry,elsewhere"'
FUNCTION(both, NULL)
// good_bound fails: nothing
// compile: -DID='"org.example.good"' -DNAME='"test.bound"' -DDEVICES='"elsewhere"'
FUNCTION(good_bound, NULL)

// slip fails: nothing
// Kernels for functions that no plugin has. The first name is a misspelling of "good"'s.
SPOIL(slip) {
    static const char *const names[] = {"test.goood", "org.nobody.one", "org.nobody.two",
                                        "org.nobody.three", "org.nobody.four"};
    more_kernels[0] = the_forward32;
    for (int i = 0; i < 5; ++i) the_kernels[i]->function = names[i];
    the_plugin.n_functions = 0;
    the_plugin.n_kernels = 5;
}

// undefined fails: the system's loader
// Calls a function that no library defines.
extern int function_of_a_missing_library(void);
SPOIL(undefined) { the_plugin.n_functions = (uint32_t)function_of_a_missing_library(); }

extern int brought(void);
INIT(needs_brought) {
    return brought() == 42 ? CATENA_OK : host->fail(ctx, CATENA_E_INTERNAL, "another library");
}
// needs fails: nothing
// Links a library that lies in a folder next to the plugin.
// link: -Wl,--no-as-needed
// libs: loading-brought
// rpath: $ORIGIN/brought
FUNCTION(needs, needs_brought)
// chain fails: nothing
// Links a library that links another one.
// link: -Wl,--no-as-needed
// libs: loading-middle
// rpath: $ORIGIN/chain
FUNCTION(chain, needs_brought)

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
static int opens_beside(const void *beside, const char *library) {
    char path[4096];
    if (!folder_of(beside, path, sizeof path)) return 0;
    if (strlen(path) + strlen(library) >= sizeof path) return 0;
    return dlopen(strcat(path, library), RTLD_NOW | RTLD_LOCAL) != NULL;
}
INIT(opens_libraries) {
    char found[256];
    /* By the plugin's RUNPATH. */
    const int by_runpath = dlopen("libdeep.so.1", RTLD_NOW | RTLD_LOCAL) != NULL;
    const int linked = dlopen("libbrought.so.1", RTLD_NOW | RTLD_LOCAL) != NULL;
    /* By the folder of a linked library, of the host's library, and of this file. */
    const int by_linked = opens_beside((void *)(uintptr_t)&brought, "../chain/deep/libdeep.so.1");
    const int by_host = opens_beside((void *)(uintptr_t)host->fail, "catena/private/libdeep.so.1");
    const int by_itself = opens_beside((void *)(uintptr_t)&folder_of, "chain/deep/libdeep.so.1");
    snprintf(found, sizeof found,
             "by RUNPATH %d, linked %d, by linked %d, by host %d, by itself %d", by_runpath, linked,
             by_linked, by_host, by_itself);
    return host->fail(ctx, CATENA_E_INTERNAL, found);
}
// opens fails: its init() failed
// Opens libraries with dlopen(), in the ways that the plugin guide describes.
// link: -Wl,--no-as-needed
// libs: loading-brought dl
// rpath: $ORIGIN/brought:$ORIGIN/chain/deep
FUNCTION(opens, opens_libraries)

#ifdef BAD_exits_constructor
// exits_constructor fails: nothing
// Ends the host's process in a static constructor; the next ones do so in the entry and in init().
__attribute__((constructor)) static void construct(void) { exit(0); }
FUNCTION(exits_constructor, NULL)
#endif
// exits_entry fails: nothing
ENTRY(exits_entry) { exit(0); }
INIT(exits) { exit(0); }
// exits_init fails: nothing
FUNCTION(exits_init, exits)
INIT(exits_at_once) { quick_exit(0); }
// exits_quickly fails: nothing
FUNCTION(exits_quickly, exits_at_once)

/* A backend without a device. A row whose name is not "dry" adds one, whose functions exit. */
static catena_status CATENA_CALL no_device(catena_ctx *ctx, int32_t *n) {
    *n = 7;
    return host->fail(ctx, CATENA_E_DEVICE, "the driver is not there");
}
static catena_status CATENA_CALL one_device(catena_ctx *ctx, int32_t *n) {
    *n = 1;
    return CATENA_OK;
}
INFER(infer_zero) {
    y[0]->ndim = 0;
    y[0]->dtype = float32;
    return CATENA_OK;
}
static void add_zero(void) { /* a function without inputs, for the instruction set "fast" */
    shelf.count = one_device;
    the_function.name = the_forward32.function = "test.zero";
    the_function.n_attrs = the_function.n_inputs = 0;
    the_function.retain_x = 0;
    the_function.infer = infer_zero;
    the_function.examples = NULL;
    the_forward32.device = "dry";
    the_forward32.isa = "fast";
    the_plugin.n_functions = the_plugin.n_kernels = 1;
}
#define DRY(row)                                                 \
    static void dry_##row(void);                                 \
    BACKEND(row) {                                               \
        shelf.name = "dry", shelf.doc = "a bed without a river"; \
        shelf.flags = 0;                                         \
        shelf.count = no_device;                                 \
        the_plugin.n_functions = the_plugin.n_kernels = 0;       \
        dry_##row();                                             \
    }                                                            \
    static void dry_##row(void)
// dry fails: nothing
DRY(dry) {}

static catena_status CATENA_CALL count_exits(catena_ctx *ctx, int32_t *n) { exit(0); }
// exits_count fails: nothing
DRY(exits_count) { add_zero(), shelf.count = count_exits; }
static catena_status CATENA_CALL open_exits(catena_ctx *ctx, int32_t i, void **dev) { exit(0); }
// exits_open fails: nothing
DRY(exits_open) { add_zero(), shelf.open = open_exits; }
static const void *CATENA_CALL extension_exits(void *dev, const char *id) { exit(0); }
// exits_get_extension fails: nothing
DRY(exits_get_extension) { add_zero(), shelf.get_extension = extension_exits; }
static int32_t CATENA_CALL isa_exits(void *dev, const char *isa) { exit(0); }
// exits_supports_isa fails: nothing
DRY(exits_supports_isa) { add_zero(), shelf.supports_isa = isa_exits; }
static void CATENA_CALL deinit_exits(void) { exit(0); }
// exits_deinit fails: nothing
DRY(exits_deinit) { add_zero(), the_plugin.deinit = deinit_exits; }
