/* Parts of the ABI that the examples do not use, in plain C: saved state, random numbers, threads,
 * scratch, an attribute, a gradient composed of host functions, init. One of the kept binaries. */
#include <string.h>

#include "sample.h"

/* Philox4x32-10: four draws for a counter. */
static void philox(uint64_t key, uint64_t counter, uint32_t out[4]) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c[4] = {0, 0, 0, 0};
    c[0] = (uint32_t)counter, c[1] = (uint32_t)(counter >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        const uint64_t a = (uint64_t)0xd2511f53u * c[0], b = (uint64_t)0xcd9e8d57u * c[2];
        c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0, c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1, c[3] = (uint32_t)a;
    }
    memcpy(out, c, sizeof c);
}

/* Dropout: the forward kernel saves what it multiplied by; the backward of the variant reads it. */
typedef struct dropout_work {
    const float *x;
    float *y, *factors;
    int64_t n;
    uint64_t seed, offset;
    double ratio;
    int64_t *dropped; /* in scratch, one for each worker */
} dropout_work;

static void CATENA_CALL drop(void *user, int64_t begin, int64_t end, int32_t slot) {
    const dropout_work *w = (const dropout_work *)user;
    for (int64_t block = begin; block < end; ++block) {
        uint32_t draws[4];
        philox(w->seed, w->offset + (uint64_t)block, draws);
        for (int64_t i = 4 * block; i < 4 * block + 4 && i < w->n; ++i) {
            const int keep = draws[i % 4] * 0x1p-32 >= w->ratio;
            w->factors[i] = keep ? (float)(1 / (1 - w->ratio)) : 0;
            w->y[i] = w->x[i] * w->factors[i];
            w->dropped[slot] += !keep;
        }
    }
}
static catena_status CATENA_CALL plan(catena_ctx *ctx, const catena_call *call, catena_plan *p) {
    p->scratch_bytes = (uint64_t)host->slots(ctx) * sizeof(int64_t);
    if (call->phase == CATENA_PHASE_FORWARD) {
        const catena_tensor *x = call->x[0];
        p->saved[0]->ndim = 1;
        p->saved[0]->dtype = x->dl.dtype;
        p->saved[0]->device_type = x->dl.device_type;
        p->saved[0]->shape[0] = size_of(x);
    }
    return CATENA_OK;
}
static catena_status CATENA_CALL dropout(catena_ctx *ctx, const catena_call *call) {
    dropout_work w = {floats(call->x[0]),
                      floats(call->y[0]),
                      floats(call->saved[0]),
                      size_of(call->x[0]),
                      0,
                      0,
                      call->attrs[0].v.f,
                      (int64_t *)call->scratch};
    if ((call->flags & CATENA_CALL_TRAIN) == 0) {
        for (int64_t i = 0; i < w.n; ++i) w.factors[i] = 1, w.y[i] = w.x[i];
        return CATENA_OK;
    }
    const int64_t blocks = (w.n + 3) / 4;
    const catena_status status = host->philox(ctx, (uint64_t)blocks, &w.seed, &w.offset);
    if (status != CATENA_OK) return status;
    memset(call->scratch, 0, call->scratch_bytes);
    host->parallel_for(ctx, blocks, 16, drop, &w);
    int64_t dropped = 0;
    for (uint64_t i = 0; i < call->scratch_bytes / sizeof(int64_t); ++i) dropped += w.dropped[i];
    if (dropped > w.n) return host->fail(ctx, CATENA_E_INTERNAL, "more dropped than there are");
    return CATENA_OK;
}
static catena_status CATENA_CALL dropout_backward(catena_ctx *ctx, const catena_call *call) {
    const float *factors = floats(call->saved[0]);
    (void)ctx;
    if (call->gx[0] == NULL || call->gy[0] == NULL) return CATENA_OK;
    for (int64_t i = 0, n = size_of(call->gy[0]); i < n; ++i)
        floats(call->gx[0])[i] = floats(call->gy[0])[i] * factors[i];
    return CATENA_OK;
}

/* Square: its gradient is gy * x + gy * x, of functions that the host finds by name. */
static const catena_callable *mul, *add;

static catena_status CATENA_CALL square(catena_ctx *ctx, const catena_call *call) {
    const float *x = floats(call->x[0]);
    (void)ctx;
    for (int64_t i = 0, n = size_of(call->x[0]); i < n; ++i) floats(call->y[0])[i] = x[i] * x[i];
    return CATENA_OK;
}
static catena_status CATENA_CALL square_gradient(catena_ctx *ctx, const catena_gradient_call *c) {
    catena_status status = CATENA_OK;
    if (mul == NULL) status = host->find(ctx, "catena.mul", &mul);
    if (status == CATENA_OK && add == NULL) status = host->find(ctx, "catena.add", &add);
    if (status != CATENA_OK || c->gy[0] == NULL || (c->targets[0] & 1) == 0) return status;
    catena_var *in[2] = {c->gy[0], c->x[0]}, *product, *sum;
    status = host->call(ctx, mul, NULL, 0, in, 2, &product, 1);
    if (status != CATENA_OK) return status;
    in[0] = in[1] = product;
    status = host->call(ctx, add, NULL, 0, in, 2, &sum, 1);
    if (status != CATENA_OK) return status;
    catena_meta meta;
    meta.struct_size = sizeof meta;
    status = host->meta(ctx, sum, &meta);
    if (status == CATENA_OK && meta.ndim != c->x_meta[0]->ndim)
        status = host->fail(ctx, CATENA_E_SHAPE, "the gradient has another rank");
    c->gx[0] = sum;
    return status;
}

static const catena_attr_spec ratio = {.struct_size = sizeof ratio,
                                       .kind = CATENA_ATTR_FLOAT,
                                       .name = "ratio",
                                       .doc = "how many are dropped",
                                       .flags = CATENA_ATTR_RANGED,
                                       .def = {CATENA_ATTR_FLOAT, 1, {.f = 0.5}},
                                       .lo = {CATENA_ATTR_FLOAT, 1, {.f = 0}},
                                       .hi = {CATENA_ATTR_FLOAT, 1, {.f = 0.9}}};
static const catena_attr_spec *const attrs[] = {&ratio};
static const char *const examples[] = {"x=(2,3)", "x=(4,) ratio=0", NULL};
static const catena_function dropout_function = {
    FUNCTION("dropout", "y = x, some elements of it 0"), .flags = CATENA_FUNCTION_STOCHASTIC,
    .n_attrs = 1, .attrs = attrs, .examples = examples};
static const catena_function square_function = {FUNCTION("square", "y = x * x"), .retain_x = 1,
                                                .gradient = square_gradient};
#define SAVED .n_saved = 1, .variant = "factors", .plan = plan
static const catena_kernel kernels[] = {
    {KERNEL(CATENA_PHASE_FORWARD, "dropout", dropout), SAVED},
    {KERNEL(CATENA_PHASE_BACKWARD, "dropout", dropout_backward), SAVED},
    {KERNEL(CATENA_PHASE_FORWARD, "square", square)},
};
static const catena_function *const function_list[] = {&dropout_function, &square_function};
static const catena_kernel *const kernel_list[] = {&kernels[0], &kernels[1], &kernels[2]};

static catena_status CATENA_CALL init(const catena_host *table, catena_ctx *ctx) {
    if (host->config(ctx, "org.example.unknown", 7) != 7 ||
        host->get_extension(table, "org.example.unknown/1") != NULL)
        return host->fail(ctx, CATENA_E_INTERNAL, "the host knows what nobody has");
    host->log(ctx, CATENA_LOG_DEBUG, "org.example.c.state is there");
    return CATENA_OK;
}
static void CATENA_CALL deinit(void) { mul = add = NULL; }

static const catena_plugin plugin = {.struct_size = sizeof plugin,
                                     .n_functions = 2,
                                     .n_kernels = 3,
                                     .functions = function_list,
                                     .kernels = kernel_list,
                                     .init = init,
                                     .deinit = deinit};

SAMPLE("state", "cpu")
