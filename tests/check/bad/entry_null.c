// expect: load/entry
#define OWN_ENTRY
#include "module.h"
const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table, catena_ctx *ctx) {
    table->fail(ctx, CATENA_E_INTERNAL, "today is no good day");
    return NULL;
}
