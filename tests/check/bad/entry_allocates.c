// expect: faults/load
// The entry does not check the result of the malloc() for its table.
#include <stdlib.h>
#include <string.h>

#define OWN_ENTRY
#include "module.h"

const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table, catena_ctx *ctx) {
    static catena_plugin *volatile mine;
    (void)ctx;
    host = table;
    if (mine == NULL) {
        mine = malloc(sizeof *mine);
        memcpy(mine, &the_plugin, sizeof *mine);
    }
    return mine;
}
