/* Ends the host's process by END(), which is exit() or quick_exit(), at WHERE: 1 in a static
 * constructor, 2 in the entry, 3 in init(). */
#define _ISOC11_SOURCE /* quick_exit() */
#define MODULE_ID "org.example.exits"
#include "../../bad_plugins/module.h"

#include <stdlib.h>

static void end_at(int where) {
    if (where == WHERE) END(0);
}

__attribute__((constructor)) static void construct(void) { end_at(1); }

static catena_status CATENA_CALL init(const catena_host *host, catena_ctx *ctx) {
    (void)host, (void)ctx;
    end_at(3);
    return CATENA_OK;
}

static const catena_function function = FUNCTION("test.exits");
static const catena_function *const functions[] = {&function};
ENTRY {
    static const catena_plugin table = {
        sizeof(catena_plugin), 1, 0, 0, 0, 0, functions, NULL, NULL, NULL, init, NULL};
    (void)host, (void)ctx;
    end_at(2);
    return &table;
}
