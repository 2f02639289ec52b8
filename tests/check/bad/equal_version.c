// expect: skew/new-host
// Accepts only a host whose table has exactly the size that the plugin was built with.
#define OWN_ENTRY
#include "module.h"

const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table, catena_ctx *ctx) {
    host = table;
    if (table->struct_size == sizeof *table) return &the_plugin;
    host->fail(ctx, CATENA_E_INVALID, "[" NAME "] host: expected the same size, got another");
    return NULL;
}
