/* A plugin of an invented next minor, whose structs all have a new field. It uses new fields of
 * the host's structs if present: y = x, or y = x + next(1) with the new service. Built in three
 * variants: normal, needing the next minor (CATENA_TARGET_MINOR), and UNGUARDED (without HAS()). */
#include <catena/abi.h>

#ifndef NAME
#define NAME "org.example.next"
#endif

static const catena_host *host;

#ifdef UNGUARDED
#define HAS(pointer, type) 1
#else
#define HAS(pointer, type) CATENA_HAS(pointer, type, next)
#endif
/* Whether the host's struct has the field, and not with 0, which means the same as no field. */
#define NEXT(pointer, type) (HAS(pointer, type) && (pointer)->next != 0)

static double more(catena_ctx *ctx) {
    return NEXT(host, catena_host) ? (double)host->next(ctx, 1) : 0;
}

static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    (void)attrs, (void)n_x, (void)n_y;
    if (NEXT(x[0], catena_meta))
        return host->fail(ctx, CATENA_E_INTERNAL, "next of an input's meta");
    y[0]->ndim = x[0]->ndim;
    y[0]->dtype = x[0]->dtype;
    y[0]->device_type = x[0]->device_type;
    for (int32_t i = 0; i < x[0]->ndim; ++i) y[0]->shape[i] = x[0]->shape[i];
    return CATENA_OK;
}
static catena_status CATENA_CALL plan(catena_ctx *ctx, const catena_call *call, catena_plan *p) {
    p->scratch_bytes = 8;
    if (NEXT(call, catena_call) || NEXT(p, catena_plan))
        return host->fail(ctx, CATENA_E_INTERNAL, "next of a call or plan");
    return CATENA_OK;
}
static catena_status CATENA_CALL run(catena_ctx *ctx, const catena_call *call) {
    const int forward = call->phase == CATENA_PHASE_FORWARD;
    const catena_tensor *from = forward ? call->x[0] : call->gy[0];
    catena_tensor *to = forward ? call->y[0] : call->gx[0];
    if (from == NULL || to == NULL) return CATENA_OK;
    if (NEXT(call, catena_call) || NEXT(from, catena_tensor))
        return host->fail(ctx, CATENA_E_INTERNAL, "next of a call or tensor");
    const double *x = (const double *)(const void *)((char *)from->dl.data + from->dl.byte_offset);
    double *y = (double *)(void *)((char *)to->dl.data + to->dl.byte_offset);
    for (uint64_t i = 0; i < from->nbytes / sizeof(double); ++i)
        y[i] = forward ? x[i] + more(ctx) : x[i];
    return CATENA_OK;
}

/* Sets the field that current hosts do not know, in every struct. */
#define MORE .next = ~(uint64_t)0
static const catena_port_spec x = {.struct_size = sizeof x, .name = "x", .type_var = "T", MORE};
static const catena_port_spec y = {.struct_size = sizeof y, .name = "y", .type_var = "T", MORE};
static const catena_port_spec *const inputs[] = {&x}, *const outputs[] = {&y};
static const catena_attr_spec unused = {.struct_size = sizeof unused,
                                        .kind = CATENA_ATTR_INT,
                                        .name = "unused",
                                        .def = {CATENA_ATTR_INT, 1, {0}},
                                        MORE};
static const catena_attr_spec *const attrs[] = {&unused};
static const catena_function function = {.struct_size = sizeof function,
                                         .name = NAME,
                                         .version = 1,
                                         .n_attrs = 1,
                                         .n_inputs = 1,
                                         .n_outputs = 1,
                                         .attrs = attrs,
                                         .inputs = inputs,
                                         .outputs = outputs,
                                         .infer = infer,
                                         MORE};
static const catena_dtype float64 = {CATENA_CODE_FLOAT, 64, 1};
#define KERNEL(which)                                                                          \
    {                                                                                          \
        .struct_size = sizeof(catena_kernel), .flags = CATENA_KERNEL_DETERMINISTIC,            \
        .phase = which, .function = NAME, .version_min = 1, .version_max = 1, .device = "cpu", \
        .isa = "", .types = &float64, .n_types = 1, .plan = plan, .run = run, MORE             \
    }
static const catena_kernel forward = KERNEL(CATENA_PHASE_FORWARD);
static const catena_kernel backward = KERNEL(CATENA_PHASE_BACKWARD);
static const int table_of_extension;
static const catena_extension extension = {.struct_size = sizeof extension,
                                           .id = "org.example.next/1",
                                           .device = "cpu",
                                           .table = &table_of_extension,
                                           MORE};

static const catena_function *const functions[] = {&function};
static const catena_kernel *const kernels[] = {&forward, &backward};
static const catena_extension *const extensions[] = {&extension};
static const catena_plugin plugin = {.struct_size = sizeof plugin,
                                     .n_functions = 1,
                                     .n_kernels = 2,
                                     .n_extensions = 1,
                                     .functions = functions,
                                     .kernels = kernels,
                                     .extensions = extensions,
                                     MORE};

__attribute__((section(CATENA_MANIFEST_SECTION)))
const catena_manifest catena_manifest_v1 = {.magic = {'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L'},
                                            .struct_size = sizeof catena_manifest_v1,
                                            .abi_major = CATENA_ABI_MAJOR,
                                            .abi_minor_built = CATENA_ABI_MINOR,
                                            .abi_minor_needed = CATENA_TARGET_MINOR,
                                            .id = NAME,
                                            .version = "1.0.0",
                                            .devices = "cpu",
                                            MORE};

const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table, catena_ctx *ctx) {
    (void)ctx;
    host = table;
    if (NEXT(host, catena_host) && host->abi_minor < CATENA_ABI_MINOR) return NULL;
    return &plugin;
}
