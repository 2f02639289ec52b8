// expect: schema/names load/host
#include "module.h"
static const int table = 1;
static const catena_extension extension = {
    .struct_size = sizeof(catena_extension), .id = "a b c", .device = "cpu", .table = &table};
SPOIL {
    static const catena_extension *const all[] = {&extension};
    the_plugin.n_extensions = 1;
    the_plugin.extensions = all;
}
