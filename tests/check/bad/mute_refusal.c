// expect: skew/refusal
// Refuses a host without a message.
#define OWN_ENTRY
#include "module.h"

const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table, catena_ctx *ctx) {
    (void)ctx;
    host = table;
    return table->abi_major == CATENA_ABI_MAJOR ? &the_plugin : NULL;
}
