/* y = (x0 - x1)^2 as a composition in plain C: no kernel, any device, any dtype. */
#include <catena/abi.h>

static const catena_host *host;

static catena_status call_of(catena_ctx *ctx, const char *function, catena_var *x0, catena_var *x1,
                             catena_var **y) {
    catena_var *const x[] = {x0, x1};
    const catena_callable *callable;
    const catena_status status = host->find(ctx, function, &callable);
    return status != CATENA_OK ? status : host->call(ctx, callable, NULL, 0, x, 2, y, 1);
}

static catena_status CATENA_CALL compose(catena_ctx *ctx, const catena_compose_call *call) {
    catena_var *difference;
    const catena_status status = call_of(ctx, "catena.sub", call->x[0], call->x[1], &difference);
    if (status != CATENA_OK) return status;
    return call_of(ctx, "catena.mul", difference, difference, &call->y[0]);
}

#define PORT(name) \
    { sizeof(catena_port_spec), 0, name, "", "T" }
static const catena_port_spec x0 = PORT("x0"), x1 = PORT("x1"), y = PORT("y");
static const catena_port_spec *const inputs[] = {&x0, &x1}, *const outputs[] = {&y};
static const char *const examples[] = {"x0=(2,3) x1=(2,3)", "x0=(2,3) x1=(3)", NULL};
static const catena_function function = {.struct_size = sizeof function,
                                         .name = "org.example.c.squared_error",
                                         .doc = "y = (x0 - x1)^2",
                                         .version = 1,
                                         .n_inputs = 2,
                                         .n_outputs = 1,
                                         .inputs = inputs,
                                         .outputs = outputs,
                                         .examples = examples,
                                         .compose = compose};

static const catena_function *const functions[] = {&function};
static const catena_plugin plugin = {
    .struct_size = sizeof plugin, .n_functions = 1, .functions = functions};

__attribute__((section(CATENA_MANIFEST_SECTION)))
const catena_manifest catena_manifest_v1 = {.magic = {'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L'},
                                            .struct_size = sizeof catena_manifest_v1,
                                            .abi_major = CATENA_ABI_MAJOR,
                                            .abi_minor_built = CATENA_ABI_MINOR,
                                            .abi_minor_needed = CATENA_TARGET_MINOR,
                                            .id = "org.example.c.squared_error",
                                            .version = "1.0.0",
                                            .devices = "cpu"};

const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *table, catena_ctx *ctx) {
    (void)ctx;
    host = table;
    return &plugin;
}
