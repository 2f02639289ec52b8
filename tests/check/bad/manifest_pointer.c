// The manifest's section also contains a pointer, whose value only a loader can fill in.
// expect: static/manifest
#define OWN_MANIFEST
#include "module.h"
typedef struct {
    catena_manifest manifest;
    const void *more;
} manifest_and_more;
extern CATENA_EXPORT const manifest_and_more longer __asm__("catena_manifest_v1");
__attribute__((section(CATENA_MANIFEST_SECTION), used))
const manifest_and_more longer = {{.magic = {'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L'},
                                   .struct_size = sizeof(manifest_and_more),
                                   .abi_major = CATENA_ABI_MAJOR,
                                   .id = "org.example.bad",
                                   .version = "1.0.0",
                                   .devices = "cpu"},
                                  &the_plugin};
SPOIL {}
