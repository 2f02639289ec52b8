/* Modules that must be refused with the reason that follows "fails:", and one that loads. */
#define _ISOC11_SOURCE /* aligned_alloc() */
#ifndef NAME
#define NAME "test." TEXT(BAD)
#endif
#define DEVICES ""
#define VERSION "1.2"
#include "backend.h"

// a_good fails: nothing
// The first by file name.
// compile: -DID='"org.example.a"' -DNAME='"test.a"'
SPOIL(a_good) { the_plugin.n_kernels = 1; }

// same_id fails: id org.example.a is already loaded from FOLDER/a_good.catena
// compile: -DID='"org.example.a"'
SPOIL(same_id) {}

// duplicate_function fails: function test.a is already registered by FOLDER/a_good.catena
SPOIL(duplicate_function) {
    static catena_function old;
    old = the_function;
    old.name = "test.a";
    the_functions[the_plugin.n_functions++] = &old;
}

// duplicate_within fails: function test.duplicate_within is declared twice
SPOIL(duplicate_within) { the_functions[the_plugin.n_functions++] = &the_function; }

// bad_id fails: its manifest: id: expected RULE, got 'org.example.Bad'
// compile: -DID='"org.example.Bad"'
SPOIL(bad_id) {}

// no_id fails: its manifest has no id
// compile: -DID='""'
SPOIL(no_id) {}

// no_manifest fails: no catena plugin: it has no manifest (section .catena)
// compile: -DOWN_MANIFEST
SPOIL(no_manifest) {}

// other_magic fails: its manifest does not begin with CATENAPL
// compile: -DMAGIC='"SOMEBODY"'
SPOIL(other_magic) {}

// short_manifest fails: its manifest: struct_size: expected at least MANIFEST, got 20
// compile: -DMANIFEST_SIZE=20
SPOIL(short_manifest) {}

// wrong_major fails: ABI major: expected 1, got 2
// compile: -DMAJOR=2
SPOIL(wrong_major) {}

// newer_minor fails: ABI minor: it needs 1.NEXT, this host has 1.THIS
// compile: -DMINOR_NEEDED=CATENA_ABI_MINOR+1
SPOIL(newer_minor) {}

// no_entry fails: it exports no catena_plugin_entry_v1
// compile: -DOWN_ENTRY
SPOIL(no_entry) {}

// returns_null fails: its entry failed: it gave no reason
ENTRY(returns_null) { return NULL; }

// returns_null_with_text fails: its entry failed: the moon is in the wrong phase
ENTRY(returns_null_with_text) {
    table->fail(ctx, CATENA_E_DEVICE, "the moon is in the wrong phase");
    return NULL;
}

// undefined_symbol fails: the system's loader refuses it: ...
// Calls a function that no library defines.
extern int function_of_a_missing_library(void);
SPOIL(undefined_symbol) { the_plugin.n_functions = (uint32_t)function_of_a_missing_library(); }

// short_table fails: plugin table 0: struct_size: expected at least TABLE, got 24
SPOIL(short_table) { the_plugin.struct_size = 24; }

// null_function fails: function 1 of its table is NULL
// The valid function is not registered either.
SPOIL(null_function) { the_plugin.n_functions = 2; }

// null_list fails: its table has a list that is NULL but not empty
SPOIL(null_list) { the_plugin.functions = NULL; }

// many_kernels fails: its table: n_kernels: expected at most 100000, got 4294967295
SPOIL(many_kernels) { the_plugin.n_kernels = 0xffffffff; }

// short_function fails: function 0: struct_size: expected at least 120, got 16
SPOIL(short_function) { the_function.struct_size = 16; }

// large_struct fails: function 0: struct_size: expected at most 65536, got 4294967295
SPOIL(large_struct) { the_function.struct_size = 0xffffffff; }

// no_name fails: a function has no name
SPOIL(no_name) { the_function.name = NULL; }

// bad_name fails: a function 'test.bad name!': expected RULE
SPOIL(bad_name) { the_function.name = "test.bad name!"; }

// large_version fails: function test.large_version: version: expected at most 1000000, got 4294967295
SPOIL(large_version) { the_function.version = 0xffffffff; }

// bool_default fails: function test.bool_default: attribute scale: its default: expected 0 or 1, got 7
SPOIL(bool_default) {
    attr_scale.kind = CATENA_ATTR_BOOL;
    attr_scale.def = (catena_value){CATENA_ATTR_BOOL, 1, {.i = 7}};
}

// long_default fails: function test.long_default: attribute scale: its default: expected at most 100000 values, got 4294967295
SPOIL(long_default) {
    static const int64_t one = 1;
    attr_scale.kind = CATENA_ATTR_INTS;
    attr_scale.def = (catena_value){CATENA_ATTR_INTS, 0xffffffff, {.ints = &one}};
}

// endless_choices fails: function test.endless_choices: attribute scale: over 1000 choices; is the list NULL-terminated?
SPOIL(endless_choices) {
    static const char *choices[2000];
    for (int i = 0; i < 2000; ++i) choices[i] = "full";
    attr_scale.kind = CATENA_ATTR_STRING;
    attr_scale.choices = choices;
    attr_scale.def = (catena_value){CATENA_ATTR_STRING, 1, {.s = "full"}};
}

// kernel_without_run fails: kernel of test.kernel_without_run has no run()
SPOIL(kernel_without_run) { the_forward32.run = NULL; }

// many_rows fails: kernel of test.many_rows: n_types: expected at most 16, got 17
SPOIL(many_rows) { the_forward32.n_types = 17; }

// many_types fails: kernel of test.many_types: n_types: expected at most 16, got 2147483647
SPOIL(many_types) { the_forward32.n_types = 0x7fffffff; }

// many_saved fails: kernel of test.many_saved: n_saved: expected at most 64, got 4294967295
SPOIL(many_saved) {
    the_forward32.n_saved = 0xffffffff;
    the_forward32.variant = "v";
}

// saved_without_variant fails: kernel of test.saved_without_variant saves tensors but names no variant
// No backward kernel can read them.
SPOIL(saved_without_variant) { the_forward32.n_saved = 2; }

// saved_differ fails: kernel of test.saved_differ: n_saved: expected 0 as in the other kernels of variant 'v', got 2
SPOIL(saved_differ) {
    the_forward32.variant = the_backward32.variant = "v";
    the_backward32.n_saved = 2;
}

// device_type fails: backend shelf: dlpack_type: expected a DLDeviceType, 1 to 255, got 2147483647
BACKEND(device_type) { shelf.dlpack_type = 0x7fffffff; }

// no_streams fails: backend shelf is asynchronous and lacks one of stream_create, stream_destroy, stream_sync, event_create, event_destroy, event_record, event_wait
BACKEND(no_streams) { shelf.flags = CATENA_BACKEND_ASYNC; }

static catena_status CATENA_CALL no_licence(const catena_host *table, catena_ctx *ctx) {
    const catena_callable *self = NULL;
    if (host->find(ctx, NAME, &self) != CATENA_OK) return CATENA_OK; /* not there yet? */
    return host->fail(ctx, CATENA_E_DEVICE, "no licence");
}
// init_fails fails: its init() failed: no licence
// The function and the kernels must be removed again.
SPOIL(init_fails) {
    the_plugin.init = no_licence;
    for (int i = 0; i < 4; ++i) the_kernels[i]->function = "test.a";
}
