/* Extensions that plugins use, in plain C: a kernel from a formula, a kernel by the compiler alone,
 * random numbers, shipped kernels. One of the kept binaries. */
#include <catena/abi/ext/compiled.h>
#include <catena/abi/ext/compiler.h>
#include <catena/abi/ext/draws.h>
#include <catena/abi/ext/kernels.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

/* y = x * x * x, by a formula. */
static catena_status CATENA_CALL cube(catena_ctx *ctx, const catena_call *call) {
    const catena_kernels *kernels =
        (const catena_kernels *)*host->extensions(NULL, CATENA_KERNELS_1);
    if (kernels == NULL) return host->fail(ctx, CATENA_E_UNSUPPORTED, "no kernels from formulas");
    catena_formula formula;
    memset(&formula, 0, sizeof formula);
    formula.struct_size = sizeof formula;
    formula.kind = CATENA_FORMULA_ELEMENTWISE;
    formula.name = "kept_cube";
    formula.inputs = "T x";
    formula.outputs = "T y";
    formula.operation = "y = x * x * x";
    const catena_formula_kernel *kernel = NULL;
    catena_status status = kernels->create(ctx, &formula, &kernel);
    if (status != CATENA_OK) return status;
    catena_operand x;
    memset(&x, 0, sizeof x);
    x.tensor = call->x[0];
    catena_formula_call c;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.x = &x;
    c.y = call->y;
    c.n_x = c.n_y = 1;
    c.dev = call->dev;
    c.stream = call->stream;
    return kernels->run(ctx, kernel, &c);
}

/* y = 2 * x, by the compiler of the device. */
struct text {
    char bytes[4000000];
    uint64_t size;
};
static void CATENA_CALL keep(void *user, const void *data, uint64_t bytes) {
    struct text *text = (struct text *)user;
    if (bytes > sizeof text->bytes) return;
    memcpy(text->bytes, data, bytes);
    text->size = bytes;
}
static void CATENA_CALL say(void *user, const char *text) { (void)user, fputs(text, stderr); }

static const char body[] =
    "namespace catena_kernel {\n"
    "struct catena_arguments { int64 size; const float32* a0; float32* a1; };\n"
    "#define CATENA_PLAIN(IN, OUT) IN(float32, a0) OUT(float32, a1)\n"
    "CATENA_ENTRY(kept_twice, catena_arguments)\n"
    "CATENA_EACH(i, 4) CATENA_AT(a1, i) = 2 * CATENA_AT(a0, i); CATENA_EACH_END\n"
    "CATENA_ENTRY_END\n"
    "}\n";

static catena_status CATENA_CALL twice(catena_ctx *ctx, const catena_call *call) {
    const catena_compiler *compiler =
        (const catena_compiler *)*host->extensions(ctx, CATENA_COMPILER_1);
    const catena_targets *targets =
        (const catena_targets *)*host->extensions(ctx, CATENA_TARGETS_1);
    if (compiler == NULL || targets == NULL || targets->runs(call->dev) == NULL)
        return host->fail(ctx, CATENA_E_UNSUPPORTED, "no compiler, or no targets");
    char identity[CATENA_COMPILER_IDENTITY];
    catena_status status = compiler->identity(ctx, call->dev, identity);
    char *source = (char *)malloc(strlen(compiler->dialect) + sizeof body);
    struct text *text = (struct text *)calloc(1, sizeof *text);
    const catena_compiled *kernel = NULL;
    if (source == NULL || text == NULL) status = host->fail(ctx, CATENA_E_NOMEM, "no memory");
    if (status == CATENA_OK) {
        strcpy(source, compiler->dialect);
        strcat(source, body);
        const char *const options[] = {NULL};
        const catena_compilation c = {.struct_size = sizeof c,
                                      .name = "kept_twice",
                                      .source = source,
                                      .options = options,
                                      .binary = keep,
                                      .messages = say,
                                      .user = text};
        status = compiler->compile(ctx, call->dev, &c);
    }
    if (status == CATENA_OK) {
        const catena_binary binary = {.struct_size = sizeof binary,
                                      .name = "kept_twice",
                                      .data = text->bytes,
                                      .bytes = text->size};
        status = compiler->load(ctx, call->dev, &binary, &kernel);
    }
    free(source);
    free(text);
    if (status != CATENA_OK) return status;
    struct {
        int64_t size;
        const float *a0;
        float *a1;
    } args = {size_of(call->x[0]), floats(call->x[0]), floats(call->y[0])};
    const catena_launch launch = {.struct_size = sizeof launch,
                                  .kind = CATENA_LAUNCH_ELEMENTS,
                                  .kernel = kernel,
                                  .n = args.size,
                                  .cost = 1,
                                  .unit = 1,
                                  .args = &args,
                                  .args_bytes = sizeof args,
                                  .dev = call->dev,
                                  .stream = call->stream};
    return args.size == 0 ? CATENA_OK : compiler->launch(ctx, &launch);
}

/* y = x + the offset of the random numbers that the call has reserved. */
static catena_status CATENA_CALL reserve(catena_ctx *ctx, const catena_call *call) {
    const catena_draws *draws = (const catena_draws *)host->get_extension(host, CATENA_DRAWS_1);
    if (draws == NULL) return host->fail(ctx, CATENA_E_UNSUPPORTED, "no draws");
    uint64_t seed, offset;
    const int64_t *where = NULL;
    const catena_status status = draws->reserve(ctx, 8, &seed, &offset, &where);
    if (status != CATENA_OK || where != NULL)
        return status != CATENA_OK ? status : host->fail(ctx, CATENA_E_INTERNAL, "not recorded");
    for (int64_t i = 0, n = size_of(call->x[0]); i < n; ++i)
        floats(call->y[0])[i] = floats(call->x[0])[i] + (float)offset;
    return CATENA_OK;
}

/* A folder that is not there is refused, with a message of the plugin that takes kernels. */
static catena_status CATENA_CALL use(catena_ctx *ctx, const catena_call *call) {
    (void)call;
    const catena_compiled_kernels *compiled =
        (const catena_compiled_kernels *)*host->extensions(NULL, CATENA_COMPILED_KERNELS_1);
    if (compiled == NULL) return host->fail(ctx, CATENA_E_UNSUPPORTED, "no compiled kernels");
    return compiled->use(ctx, "/nowhere/kernels");
}

static const catena_function functions[] = {
    {FUNCTION("formula_cube", "y = x * x * x"), .flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE},
    {FUNCTION("compiled_twice", "y = 2 * x"), .flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE},
    {FUNCTION("reserved", "y = x + an offset"), .flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE},
    {FUNCTION("shipped", "uses a folder that is not there"),
     .flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE},
};

static const catena_kernel kernels[] = {
    {KERNEL(CATENA_PHASE_FORWARD, "formula_cube", cube)},
    {KERNEL(CATENA_PHASE_FORWARD, "compiled_twice", twice)},
    {KERNEL(CATENA_PHASE_FORWARD, "reserved", reserve)},
    {KERNEL(CATENA_PHASE_FORWARD, "shipped", use)},
};
static const catena_function *const function_list[] = {&functions[0], &functions[1], &functions[2],
                                                       &functions[3]};
static const catena_kernel *const kernel_list[] = {&kernels[0], &kernels[1], &kernels[2],
                                                   &kernels[3]};

static const catena_plugin plugin = {.struct_size = sizeof plugin,
                                     .n_functions = 4,
                                     .n_kernels = 4,
                                     .functions = function_list,
                                     .kernels = kernel_list};

SAMPLE("formulas", "cpu")
