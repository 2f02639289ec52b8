/* Faults of the plugin's table. */
#include "../../bad_plugins/module.h"

// schema_addition fails: schema/ports load/host
// Claims to be the function that adds gradients, but has only one input.
SPOIL(schema_addition) { the_function.flags = CATENA_FUNCTION_ADDITION; }

// schema_attributes fails: schema/attributes load/host
SPOIL(schema_attributes) {
    attr_scale.lo.v.f = 2;
    attr_scale.hi.v.f = 3;
    the_examples[1] = NULL;
}

// schema_devices fails: schema/devices
// compile: -DDEVICES='"cpu,cuda"'
SPOIL(schema_devices) {}

// elsewhere fails: nothing
// Has only kernels for a device that does not exist; the checks of kernels are skipped.
// skips: values/dtypes gradients/kernel faults/allocation faults/pieces skew/new-host fuzz/shapes
// compile: -DDEVICES='"nowhere"'
SPOIL(elsewhere) {
    the_forward32.function = the_forward64.function = "catena.relu";
    the_forward32.device = the_forward64.device = "nowhere";
    the_plugin.n_functions = 0;
    the_plugin.n_kernels = 2;
}

// for_nobody fails: values/survives
// Has only kernels, of a function that no plugin defines.
// skips: values/dtypes gradients/kernel
// options: --only values --only gradients
SPOIL(for_nobody) {
    the_plugin.n_functions = 0;
    for (int i = 0; i < 4; ++i) the_kernels[i]->function = "org.example.nobody";
}

// schema_docs fails: schema/docs
SPOIL(schema_docs) { the_function.doc = ""; }

// schema_examples fails: schema/examples values/examples load/host
SPOIL(schema_examples) { the_examples[1] = "z=(4)"; }

// example_refused fails: values/examples
SPOIL(example_refused) { the_examples[1] = "x=(4) scale=1000"; }

// long_example fails: load/host schema/examples
// The host accepts examples of at most 1000 bytes.
// says: an example of over 1000 bytes
SPOIL(long_example) {
    static char text[1100] = "x=(4)";
    for (size_t i = 5; i + 1 < sizeof text; ++i) text[i] = ' ';
    the_examples[1] = text;
}

static catena_attr_spec attr_mode = {.struct_size = sizeof(catena_attr_spec),
                                     .kind = CATENA_ATTR_STRING,
                                     .name = "mode",
                                     .doc = "of no consequence",
                                     .def = {CATENA_ATTR_STRING, 1, {.s = "a b"}}};
// good_examples fails: nothing
// Examples with blanks and quotes that the parser accepts.
SPOIL(good_examples) {
    the_attrs[the_function.n_attrs++] = &attr_mode;
    the_examples[0] = " x=(2,3)  scale=2 ";
    the_examples[1] = "mode=\"a \\\" b\" x=(4)";
}

static const int nothing = 1;
static const catena_extension extension = {
    .struct_size = sizeof(catena_extension), .id = "a b c", .device = "cpu", .table = &nothing};
// schema_extension fails: schema/names load/host
SPOIL(schema_extension) {
    static const catena_extension *const all[] = {&extension};
    the_plugin.n_extensions = 1;
    the_plugin.extensions = all;
}

// schema_function_name fails: schema/names load/host
// says: expected two or more words with dots between them, each a lower-case letter and then
SPOIL(schema_function_name) {
    the_function.name = "org.example.Square";
    for (int i = 0; i < 4; ++i) the_kernels[i]->function = the_function.name;
}

// schema_names fails: schema/names load/host
SPOIL(schema_names) {
    port_x.name = "the x";
    the_function.examples = NULL;
}

// schema_gradient fails: schema/gradient
GRADIENT(not_called) {
    return host->fail(ctx, CATENA_E_INTERNAL, "[" NAME "] gradient: expected no call, got one");
}
SPOIL(schema_gradient) {
    the_function.flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE;
    the_function.gradient = not_called;
    the_plugin.n_kernels = 2;
}

// schema_kernels fails: schema/kernels
SPOIL(schema_kernels) {
    static const catena_dtype twice[] = {{CATENA_CODE_FLOAT, 32, 1}, {CATENA_CODE_FLOAT, 32, 1}};
    the_forward32.types = twice;
    the_forward32.n_types = 2;
}

// schema_no_function fails: schema/kernels
// A kernel of a function that does not exist.
// says: expected a function of the plugin, of catena's own or of --with
// options: --only schema
SPOIL(schema_no_function) { the_backward32.function = "org.example.sqaure"; }

// schema_large_version fails: schema/versions load/host
// The largest possible version, which no later version can follow.
// says: 4294967295
SPOIL(schema_large_version) {
    the_function.version = 0xffffffff;
    for (int i = 0; i < 4; ++i) the_kernels[i]->version_max = 0xffffffff;
}

// schema_versions fails: schema/versions
SPOIL(schema_versions) { the_forward32.version_min = the_forward32.version_max = 2; }

// schema_long_default fails: schema/table
// A default of 2^32 - 1 values.
// says: its default: expected at most 100000 values, got 4294967295
SPOIL(schema_long_default) {
    static const double one = 1;
    attr_scale.kind = attr_scale.def.kind = CATENA_ATTR_FLOATS;
    attr_scale.def.v.floats = &one;
    attr_scale.def.n = 0xffffffff;
}

// schema_many_saved fails: schema/table
// says: n_saved: expected at most 64, got 4294967295
SPOIL(schema_many_saved) {
    the_backward32.n_saved = 0xffffffff;
    the_backward32.variant = "v";
}

// schema_many_types fails: schema/table
// Claims to have 2^31 - 1 rows of dtypes, but has one.
// says: n_types: expected at most 16, got 2147483647
SPOIL(schema_many_types) { the_forward32.n_types = 0x7fffffff; }

// schema_short_kernel fails: schema/table
// The struct of a kernel is shorter than in ABI 1.0.
// says: kernel 0: struct_size: expected at least 120, got 112
SPOIL(schema_short_kernel) { the_forward32.struct_size = 112; }

// schema_struct_size fails: schema/table
// The struct_size is larger than in any header: a host would read past the end of the struct.
// says: struct_size: expected at most 120, as in the ABI that its manifest names, got 4294967295
SPOIL(schema_struct_size) { the_function.struct_size = 0xffffffff; }

// schema_table fails: schema/table
SPOIL(schema_table) { the_forward32.isa = NULL; }

// schema_ports fails: schema/ports load/host
SPOIL(schema_ports) { the_function.retain_y = 2; }

// schema_variants fails: schema/variants
// A forward kernel of a variant that has no backward kernel.
SPOIL(schema_variants) {
    more_kernels[0] = the_forward32;
    more_kernels[0].variant = "fused";
    more_kernels[0].priority = CATENA_PRIORITY_REFERENCE;
    more_kernels[0].retain_x = 1;
    the_plugin.n_kernels = 5;
}

// random_unused fails: determinism/random
// Declares that it draws random numbers, but draws none.
SPOIL(random_unused) { the_function.flags = CATENA_FUNCTION_STOCHASTIC; }
