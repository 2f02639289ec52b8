/* A plugin with one of everything that catena-inspect shows. Code of it that runs says so in the
 * file that SAMPLE_RAN names. */
#include <catena/abi.h>

#include <stdio.h>
#include <stdlib.h>

#ifndef SAMPLE_MAJOR
#define SAMPLE_MAJOR CATENA_ABI_MAJOR
#endif

__attribute__((section(CATENA_MANIFEST_SECTION), used))
const catena_manifest catena_manifest_v1 = {{'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L'},
                                            sizeof(catena_manifest),
                                            SAMPLE_MAJOR,
                                            7,
                                            0,
                                            0,
                                            0,
                                            "org.example.sample",
                                            "1.2.3",
                                            "A third party",
                                            "MIT",
                                            "cpu,nowhere"};

static void ran(const char *what) {
    const char *name = getenv("SAMPLE_RAN");
    FILE *file = name ? fopen(name, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n", what);
        fclose(file);
    }
}
__attribute__((constructor)) static void constructor(void) { ran("constructor"); }

#define PORT(name, doc, type, flags) \
    { sizeof(catena_port_spec), flags, name, doc, type }
static const catena_port_spec x = PORT("x", "values | any shape", "T", 0);
static const catena_port_spec labels =
    PORT("labels", "", "I", CATENA_PORT_OPTIONAL | CATENA_PORT_NON_DIFFERENTIABLE);
static const catena_port_spec more = PORT("more", "", "T", CATENA_PORT_VARIADIC);
static const catena_port_spec y = PORT("y", "", "T", 0), gx = PORT("gx", "", "T", 0);
static const catena_port_spec mask = PORT("mask", "", "M", CATENA_PORT_HIDDEN);
static const catena_port_spec mask_in = PORT("mask", "", "M", 0), gmask = PORT("gmask", "", "M", 0);
static const catena_port_spec gy = PORT("gy", "", "T", 0);
static const catena_port_spec state = PORT("state", "", "T", CATENA_PORT_MUTATED);
static const catena_port_spec *const mix_inputs[] = {&x, &labels};
static const catena_port_spec *const mix_outputs[] = {&y, &mask};
static const catena_port_spec *const grad_inputs[] = {&x, &mask_in, &gy, &gmask};
static const catena_port_spec *const grad_outputs[] = {&gx};
static const catena_port_spec *const join_inputs[] = {&x, &more};
static const catena_port_spec *const join_outputs[] = {&y};
static const catena_port_spec *const state_inputs[] = {&state};

static const char *const modes[] = {"full", "valid", NULL};
static const int64_t strides[] = {1, 2};
static const double weights[] = {0.5, 2.0};
#define ATTR(kind_, ...) \
    { .struct_size = sizeof(catena_attr_spec), .kind = kind_, __VA_ARGS__ }
#define VALUE(kind, n, field, value) \
    {                                \
        kind, n, { .field = value }  \
    }
static const catena_attr_spec scale =
    ATTR(CATENA_ATTR_FLOAT, .name = "scale", .doc = "how much", .flags = CATENA_ATTR_REQUIRED,
         .def = VALUE(CATENA_ATTR_FLOAT, 1, f, 0));
static const catena_attr_spec axis =
    ATTR(CATENA_ATTR_INT, .name = "axis", .flags = CATENA_ATTR_RANGED,
         .def = VALUE(CATENA_ATTR_INT, 1, i, -1), .lo = VALUE(CATENA_ATTR_INT, 1, i, -3),
         .hi = VALUE(CATENA_ATTR_INT, 1, i, 3));
static const catena_attr_spec mode = ATTR(CATENA_ATTR_STRING, .name = "mode", .choices = modes,
                                          .def = VALUE(CATENA_ATTR_STRING, 1, s, "full"));
static const catena_attr_spec stride =
    ATTR(CATENA_ATTR_INTS, .name = "stride", .def = VALUE(CATENA_ATTR_INTS, 2, ints, strides));
static const catena_attr_spec fast =
    ATTR(CATENA_ATTR_BOOL, .name = "fast", .flags = CATENA_ATTR_HINT,
         .def = VALUE(CATENA_ATTR_BOOL, 1, i, 1));
static const catena_attr_spec dtype =
    ATTR(CATENA_ATTR_DTYPE, .name = "dtype",
         .def = {CATENA_ATTR_DTYPE, 1, {.dtype = {CATENA_CODE_FLOAT, 32, 1}}});
/* Of a kind and default that C++ wrappers cannot have. */
static const catena_attr_spec weight = ATTR(CATENA_ATTR_FLOATS, .name = "weights",
                                            .def = VALUE(CATENA_ATTR_FLOATS, 2, floats, weights));
static const catena_attr_spec *const mix_attrs[] = {&scale, &axis, &mode, &stride, &fast, &dtype};
static const catena_attr_spec *const join_attrs[] = {&weight};

static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *in, uint32_t n_in,
                                       catena_meta *const *out, uint32_t n_out) {
    (void)ctx, (void)attrs, (void)in, (void)n_in, (void)out, (void)n_out;
    return CATENA_E_INTERNAL; /* not called by this test */
}
static catena_status CATENA_CALL run(catena_ctx *ctx, const catena_call *call) {
    (void)ctx, (void)call;
    return CATENA_E_INTERNAL;
}
static catena_status CATENA_CALL gradient(catena_ctx *ctx, const catena_gradient_call *call) {
    (void)ctx, (void)call;
    return CATENA_E_INTERNAL;
}

static const char *const mix_examples[] = {"x=(2,3) scale=2", "x=(4)[0,1] scale=0.5 axis=0", NULL};
#define COUNT(list) sizeof list / sizeof *list
#define FUNCTION(id, text, in, ...)                                                            \
    {                                                                                          \
        .struct_size = sizeof(catena_function), .name = "org.example.sample." id, .doc = text, \
        .n_inputs = COUNT(in), .inputs = in, .infer = infer, __VA_ARGS__                       \
    }
static const catena_function mix =
    FUNCTION("mix", "y = scale * x\n\nSecond paragraph.", mix_inputs, .version = 2,
             .flags = CATENA_FUNCTION_STOCHASTIC, .n_attrs = COUNT(mix_attrs), .attrs = mix_attrs,
             .n_outputs = 2, .outputs = mix_outputs, .retain_x = 1, .retain_y = 2,
             .grad_function = "org.example.sample.mix_grad", .examples = mix_examples);
static const catena_function mix_grad =
    FUNCTION("mix_grad", "gx of mix", grad_inputs, .version = 1, .flags = CATENA_FUNCTION_INTERNAL,
             .n_attrs = COUNT(mix_attrs), .attrs = mix_attrs, .n_outputs = 1,
             .outputs = grad_outputs, .gradient = gradient);
static const catena_function join =
    FUNCTION("join", "y = x and more", join_inputs, .version = 1, .n_attrs = 1, .attrs = join_attrs,
             .n_outputs = 1, .outputs = join_outputs);
static const catena_function bump = FUNCTION("bump", "state += 1", state_inputs, .version = 1,
                                             .flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE);
static const catena_function *const functions[] = {&mix, &mix_grad, &join, &bump};

#define FLOAT(bits) \
    { CATENA_CODE_FLOAT, bits, 1 }
static const catena_dtype mix_types[] = {
    FLOAT(32), {CATENA_CODE_INT, 32, 1}, {CATENA_CODE_UINT, 8, 1},
    FLOAT(64), {CATENA_CODE_INT, 32, 1}, {CATENA_CODE_UINT, 8, 1}};
static const catena_dtype one_type[] = {FLOAT(32)};
#define KERNEL(name, phase_, priority_, device_, types_, n)                                      \
    {                                                                                            \
        .struct_size = sizeof(catena_kernel), .flags = CATENA_KERNEL_ADDS, .phase = phase_,      \
        .priority = priority_, .function = name, .version_min = 1, .version_max = 2,             \
        .device = device_, .isa = "", .types = types_, .n_types = n, .variant = NULL, .run = run \
    }
static const catena_kernel mix_low =
    KERNEL("org.example.sample.mix", CATENA_PHASE_FORWARD, 5, "nowhere", mix_types, 1);
static const catena_kernel mix_high =
    KERNEL("org.example.sample.mix", CATENA_PHASE_FORWARD, 70, "nowhere", mix_types, 2);
static const catena_kernel join_back =
    KERNEL("org.example.sample.join", CATENA_PHASE_BACKWARD, 0, "nowhere", one_type, 1);
static const catena_kernel strange =
    KERNEL("org.nobody.has_this", CATENA_PHASE_FORWARD, 0, "nowhere", one_type, 1);
static const catena_kernel *const kernels[] = {&mix_low, &mix_high, &join_back, &strange};

static const catena_extension thing = {sizeof(catena_extension), 30, "org.example.thing/1",
                                       "nowhere", &thing};
static const catena_extension *const extensions[] = {&thing};
static const catena_plugin table = {.struct_size = sizeof(catena_plugin),
                                    .n_functions = 4,
                                    .n_kernels = 4,
                                    .n_extensions = 1,
                                    .functions = functions,
                                    .kernels = kernels,
                                    .extensions = extensions};

const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *host, catena_ctx *ctx) {
    (void)host, (void)ctx;
    ran("entry");
    return &table;
}
