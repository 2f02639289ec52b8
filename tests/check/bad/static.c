/* Faults of the file, which catena-check finds without running it. */
#include <stdlib.h>

#include "../../bad_plugins/module.h"

// auxiliary fails: static/needed
// says: got libm.so.6 (DT_AUXILIARY)
// link: -Wl,--auxiliary,libm.so.6
SPOIL(auxiliary) {}

// needs_openmp fails: static/needed
// link: -Wl,--no-as-needed -l:libgomp.so.1
SPOIL(needs_openmp) {}

// run_path fails: static/run-path
// link: -Wl,-rpath,/tmp/libraries
SPOIL(run_path) {}

// cut fails: static/file load/host
// The end of the file, with the section header table, is missing; the file can still be mapped.
// cut: 100
SPOIL(cut) {}

static int count;

#ifdef BAD_constructor
// constructor fails: static/constructors
__attribute__((constructor)) static void work(void) { ++count; }
SPOIL(constructor) {}
#endif

#ifdef BAD_constructor_fini
// constructor_fini fails: static/constructors
// link: -Wl,-fini=finish
// says: DT_FINI: expected the linker's, got finish
CATENA_EXPORT void finish(void);
void finish(void) { ++count; }
SPOIL(constructor_fini) {}
#endif

#ifdef BAD_constructor_init
// constructor_init fails: static/constructors
// DT_INIT names a single function; DT_INIT_ARRAY, a list of functions, is newer.
// link: -Wl,-init=begin
// says: begin
CATENA_EXPORT void begin(void);
void begin(void) { ++count; }
SPOIL(constructor_init) {}
#endif

static inline void ask_for_avx2(void) { /* the query links a constructor of libgcc */
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) the_forward32.priority += 1;
#endif
}

// good_stripped fails: nothing
// The name of libgcc's constructor is stripped.
// link: -s
SPOIL(good_stripped) { ask_for_avx2(); }

#ifdef BAD_constructor_stripped
// constructor_stripped fails: static/constructors
// A constructor in addition to libgcc's, in a file without symbol names.
// link: -s
// says: expected none, got 1
__attribute__((constructor)) static void work(void) { ++count; }
SPOIL(constructor_stripped) { ask_for_avx2(); }
#endif

#ifdef BAD_exports
// exports fails: static/exports
// exports: all
CATENA_EXPORT int helper(void);
int helper(void) { return 1; }
SPOIL(exports) {}
#endif

// good_versioned fails: nothing
// The linker adds a symbol named like the version; it is no function or variable and thus allowed.
// exports: all
// compile: -fvisibility=hidden
// link: -Wl,--default-symver
SPOIL(good_versioned) {}

#ifdef BAD_unique
// unique fails: static/unique
// exports: all
__asm__(
    ".pushsection .data\n"
    ".globl shared_counter\n"
    ".type shared_counter, %gnu_unique_object\n"
    ".size shared_counter, 4\n"
    "shared_counter: .long 0\n"
    ".popsection\n");
SPOIL(unique) {}
#endif

#ifdef BAD_writable_code
// writable_code fails: static/writable-code
// link: -Wl,--no-warn-rwx-segments
__asm__(
    ".pushsection .patched,\"awx\",%progbits\n"
    ".fill 64\n"
    ".popsection\n");
SPOIL(writable_code) {}
#endif

// imports_exit fails: static/imports
BEFORE(imports_exit, forward32) {
    if (size_of(call->x[0]) > INT64_MAX - 1) exit(1);
}

// rand fails: static/imports determinism/repeated
// Draws its random numbers from the C library.
KERNELS(random, size_of(call->y[0]), Y(0) = (T)SCALE * X(0) * X(0) * (T)(rand() % 100))
SPOIL(rand) { the_forward32.run = random32, the_forward64.run = random64; }

// rand_below fails: static/imports determinism/repeated
// Draws its random numbers with another function of the C library.
extern uint32_t arc4random_uniform(uint32_t below);
KERNELS(below, size_of(call->y[0]), Y(0) = (T)SCALE * X(0) * X(0) * (T)arc4random_uniform(100))
SPOIL(rand_below) { the_forward32.run = below32, the_forward64.run = below64; }

// good_coverage fails: nothing
// Instrumentation for coverage adds a constructor and calls of exit() and fork().
// needs: --coverage
// compile: --coverage
SPOIL(good_coverage) {}

// manifest_id fails: static/manifest load/host
// says: id: expected two or more words with dots between them, each a lower-case letter and then
// compile: -DID='"My Plugin"'
SPOIL(manifest_id) {}

#ifdef OWN_MANIFEST
/* The manifest's section also contains a pointer, whose value only a loader can fill in. */
typedef struct {
    catena_manifest manifest;
    const void *more;
} manifest_and_more;
extern CATENA_EXPORT const manifest_and_more longer __asm__("catena_manifest_v1");
__attribute__((section(CATENA_MANIFEST_SECTION), used))
const manifest_and_more longer = {{.magic = MAGIC,
                                   .struct_size = sizeof(manifest_and_more),
                                   .abi_major = CATENA_ABI_MAJOR,
                                   .id = ID,
                                   .version = "1.0.0",
                                   .devices = DEVICES},
                                  &the_plugin};
#endif
// manifest_pointer fails: static/manifest
// compile: -DOWN_MANIFEST
SPOIL(manifest_pointer) {}
// manifest_packed_pointer fails: static/manifest
// The relocation is in the packed table.
// compile: -DOWN_MANIFEST
// link: -Wl,-z,pack-relative-relocs
SPOIL(manifest_packed_pointer) {}
