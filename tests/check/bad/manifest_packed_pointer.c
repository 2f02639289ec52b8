// Like manifest_pointer.c, but the relocation is in the packed table.
// expect: static/manifest
// link: -Wl,-z,pack-relative-relocs
#include "manifest_pointer.c"
