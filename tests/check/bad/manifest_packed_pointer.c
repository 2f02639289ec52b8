// As manifest_pointer.c, with the relocation in the packed table.
// expect: static/manifest
// link: -Wl,-z,pack-relative-relocs
#include "manifest_pointer.c"
