// The functions that the tests call. Each shows one feature of functions.
#include "toys.hpp"

#include "graph/call.hpp"

#include <catena/loader/plugins.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace toys {
namespace {

constexpr auto backward_phase = CATENA_PHASE_BACKWARD;

Seen& seen_of(const catena_call* c) { return seen(c->function->name); }

void saw_forward(const catena_call* c) {
    Seen& s = seen_of(c);
    ++s.forward;
    s.flags = c->flags;
    s.n_saved = c->n_saved;
}

void saw_backward(const catena_call* c) {
    Seen& s = seen_of(c);
    ++s.backward;
    s.flags = c->flags;
    s.n_saved = c->n_saved;
    s.targets = c->targets[0];
    for (std::uint32_t i = 0; i < c->n_x; ++i) s.adds += c->req[i] == CATENA_REQ_ADD;
}

bool wanted(const catena_gradient_call* g, unsigned i) {
    return g->targets[i / 64] >> (i % 64) & 1;
}

// Computes y = formula(x...) for each element.
template <auto Formula>
catena_status elementwise(catena_ctx*, const catena_call* c) {
    saw_forward(c);
    for (std::int64_t i = 0; i < count(*c->y[0]); ++i) put(*c->y[0], i, Formula(c, i));
    return CATENA_OK;
}

// Computes gx[k] = formula(k) for each requested gradient.
template <auto Formula>
catena_status elementwise_backward(catena_ctx*, const catena_call* c) {
    saw_backward(c);
    for (std::uint32_t k = 0; k < c->n_x; ++k) {
        if (!c->gx[k]) continue;
        for (std::int64_t i = 0; i < count(*c->gx[k]); ++i) {
            put(*c->gx[k], i, Formula(c, k, i), c->req[k]);
        }
    }
    return CATENA_OK;
}

double x(const catena_call* c, unsigned k, std::int64_t i) { return get(*c->x[k], i); }
double gy(const catena_call* c, unsigned k, std::int64_t i) {
    return c->gy[k] ? get(*c->gy[k], i) : 0;
}

void arithmetic(Plugin& p) {
    auto& add = p.function("toy.add", {{"a"}, {"b"}}, {{"y"}}, infer_same);
    add.flags = CATENA_FUNCTION_ADDITION;
    add.gradient = [](catena_ctx*, const catena_gradient_call* g) -> catena_status {
        ++seen("toy.add").gradient;
        g->gx[0] = g->gx[1] = g->gy[0];
        return CATENA_OK;
    };
    constexpr auto sum = [](const catena_call* c, std::int64_t i) {
        return x(c, 0, i) + x(c, 1, i);
    };
    p.kernel("toy.add", elementwise<sum>);
    p.kernel("toy.add", elementwise<sum>, CATENA_PHASE_FORWARD, "vault");

    auto& mul = p.function("toy.mul", {{"a"}, {"b"}}, {{"y"}}, infer_same);
    mul.retain_x = 3;
    mul.gradient = [](catena_ctx* ctx, const catena_gradient_call* g) -> catena_status {
        ++seen("toy.mul").gradient;
        for (unsigned i = 0; i < 2; ++i) {
            if (wanted(g, i)) g->gx[i] = call(ctx, "toy.mul", {g->gy[0], g->x[1 - i]});
            if (wanted(g, i) && !g->gx[i]) return CATENA_E_INTERNAL;
        }
        return CATENA_OK;
    };
    constexpr auto product = [](const catena_call* c, std::int64_t i) {
        return x(c, 0, i) * x(c, 1, i);
    };
    constexpr auto product_backward = [](const catena_call* c, unsigned k, std::int64_t i) {
        return gy(c, 0, i) * x(c, 1 - k, i);
    };
    for (const char* device : {"toy", "vault"}) {
        p.kernel("toy.mul", elementwise<product>, CATENA_PHASE_FORWARD, device);
        p.kernel("toy.mul", elementwise_backward<product_backward>, backward_phase, device).flags |=
            CATENA_KERNEL_ADDS;
    }

    // Linear in x; no backward kernel.
    auto& scale = p.function("toy.scale", {{"x"}}, {{"y"}}, infer_same);
    p.attribute(scale, "factor", CATENA_ATTR_FLOAT).def.v.f = 1;
    scale.gradient = [](catena_ctx* ctx, const catena_gradient_call* g) -> catena_status {
        ++seen("toy.scale").gradient;
        g->gx[0] = call(ctx, "toy.scale", {g->gy[0]}, {{"factor", g->attrs[0]}});
        return g->gx[0] ? CATENA_OK : CATENA_E_INTERNAL;
    };
    p.kernel("toy.scale", elementwise<[](const catena_call* c, std::int64_t i) {
                 return c->attrs[0].v.f * x(c, 0, i);
             }>);

    // Has a first-order gradient only.
    p.function("toy.twice", {{"x"}}, {{"y"}}, infer_same);
    p.kernel("toy.twice",
             elementwise<[](const catena_call* c, std::int64_t i) { return 2 * x(c, 0, i); }>);
    p.kernel("toy.twice", elementwise_backward<[](const catena_call* c, unsigned, std::int64_t i) {
                 return 2 * gy(c, 0, i);
             }>,
             backward_phase);

    // Its gradient is given by grad_function.
    auto& cube = p.function("toy.cube", {{"x"}}, {{"y"}}, infer_same);
    cube.retain_x = 1;
    cube.grad_function = "toy.cube_grad";
    p.kernel("toy.cube", elementwise<[](const catena_call* c, std::int64_t i) {
                 return x(c, 0, i) * x(c, 0, i) * x(c, 0, i);
             }>);
    auto& cube_grad = p.function("toy.cube_grad", {{"x"}, {"gy"}}, {{"gx"}}, infer_same);
    cube_grad.retain_x = 3;
    cube_grad.gradient = [](catena_ctx* ctx, const catena_gradient_call* g) -> catena_status {
        catena_var* six_x = call(ctx, "toy.scale", {g->x[0]}, {{"factor", number(6)}});
        if (wanted(g, 0)) {
            g->gx[0] = call(ctx, "toy.mul", {call(ctx, "toy.mul", {six_x, g->x[1]}), g->gy[0]});
        }
        if (wanted(g, 1)) g->gx[1] = call(ctx, "toy.cube_grad", {g->x[0], g->gy[0]});
        return CATENA_OK;
    };
    p.kernel("toy.cube_grad", elementwise<[](const catena_call* c, std::int64_t i) {
                 return 3 * x(c, 0, i) * x(c, 0, i) * x(c, 1, i);
             }>);

    // Retains only its output.
    auto& reciprocal = p.function("toy.reciprocal", {{"x"}}, {{"y"}}, infer_same);
    reciprocal.retain_y = 1;
    reciprocal.gradient = [](catena_ctx* ctx, const catena_gradient_call* g) -> catena_status {
        catena_var* square = call(ctx, "toy.mul", {g->y[0], g->y[0]});
        catena_var* minus = call(ctx, "toy.scale", {g->gy[0]}, {{"factor", number(-1)}});
        g->gx[0] = call(ctx, "toy.mul", {square, minus});
        return CATENA_OK;
    };
    p.kernel("toy.reciprocal",
             elementwise<[](const catena_call* c, std::int64_t i) { return 1 / x(c, 0, i); }>);
}

void ports(Plugin& p) {
    // a = 2x, b = 3x.
    auto& split = p.function("toy.split", {{"x"}}, {{"a"}, {"b"}}, infer_same);
    split.gradient = [](catena_ctx* ctx, const catena_gradient_call* g) -> catena_status {
        ++seen("toy.split").gradient;
        catena_var* parts[2] = {};
        for (unsigned i = 0; i < 2; ++i) {
            if (g->gy[i]) {
                parts[i] = call(ctx, "toy.scale", {g->gy[i]}, {{"factor", number(2.0 + i)}});
            }
        }
        if (parts[0] && parts[1]) g->gx[0] = call(ctx, "toy.add", {parts[0], parts[1]});
        else g->gx[0] = parts[0] ? parts[0] : parts[1];
        return CATENA_OK;
    };
    p.kernel("toy.split", [](catena_ctx*, const catena_call* c) -> catena_status {
        for (std::int64_t i = 0; i < count(*c->y[0]); ++i) {
            put(*c->y[0], i, 2 * x(c, 0, i));
            put(*c->y[1], i, 3 * x(c, 0, i));
        }
        return CATENA_OK;
    });
    p.kernel("toy.split", elementwise_backward<[](const catena_call* c, unsigned, std::int64_t i) {
                 return 2 * gy(c, 0, i) + 3 * gy(c, 1, i);
             }>,
             backward_phase);

    auto& total =
        p.function("toy.total", {{"first"}, {"rest", CATENA_PORT_VARIADIC}}, {{"y"}}, infer_same);
    total.gradient = [](catena_ctx*, const catena_gradient_call* g) -> catena_status {
        seen("toy.total").targets = g->targets[0];
        for (std::uint32_t i = 0; i < g->n_x; ++i) g->gx[i] = g->gy[0];
        return CATENA_OK;
    };
    p.kernel("toy.total", elementwise<[](const catena_call* c, std::int64_t i) {
                 double s = 0;
                 for (std::uint32_t k = 0; k < c->n_x; ++k) s += x(c, k, i);
                 return s;
             }>);

    // x * w + b; b is optional.
    auto& affine =
        p.function("toy.affine", {{"x"}, {"w"}, {"b", CATENA_PORT_OPTIONAL}}, {{"y"}}, infer_same);
    affine.retain_x = 3;
    p.kernel("toy.affine", elementwise<[](const catena_call* c, std::int64_t i) {
                 return x(c, 0, i) * x(c, 1, i) + (c->x[2] ? x(c, 2, i) : 0);
             }>);
    p.kernel("toy.affine",
             elementwise_backward<[](const catena_call* c, unsigned k, std::int64_t i) {
                 return k == 2 ? gy(c, 0, i) : gy(c, 0, i) * x(c, 1 - k, i);
             }>,
             backward_phase)
        .flags |= CATENA_KERNEL_ADDS;

    // x * t; t is an integer tensor.
    auto& weigh = p.function("toy.weigh", {{"x"}, {"t", CATENA_PORT_NON_DIFFERENTIABLE, "I"}},
                             {{"y"}}, infer_same);
    weigh.retain_x = 2;
    auto& weigh_forward = p.kernel(
        "toy.weigh",
        elementwise<[](const catena_call* c, std::int64_t i) { return x(c, 0, i) * x(c, 1, i); }>);
    auto& weigh_backward = p.kernel(
        "toy.weigh", elementwise_backward<[](const catena_call* c, unsigned, std::int64_t i) {
            return gy(c, 0, i) * x(c, 1, i);
        }>,
        backward_phase);
    const Types types = {{catena::Dtype::float32, catena::Dtype::int32},
                         {catena::Dtype::float64, catena::Dtype::int64}};
    p.types(weigh_forward, types);
    p.types(weigh_backward, types);

    // x * w, of which only x is differentiable.
    auto& weight = p.function("toy.weight", {{"x"}, {"w", CATENA_PORT_NON_DIFFERENTIABLE}}, {{"y"}},
                              infer_same);
    weight.retain_x = 2;
    weight.gradient = [](catena_ctx* ctx, const catena_gradient_call* g) -> catena_status {
        g->gx[0] = call(ctx, "toy.mul", {g->gy[0], g->x[1]});
        return CATENA_OK;
    };
    p.kernel(
        "toy.weight",
        elementwise<[](const catena_call* c, std::int64_t i) { return x(c, 0, i) * x(c, 1, i); }>);

    // Updates its first input in place; has no output.
    auto& update =
        p.function("toy.update", {{"param", CATENA_PORT_MUTATED}, {"grad"}}, {}, infer_same);
    update.flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE;
    p.attribute(update, "lr", CATENA_ATTR_FLOAT).flags = CATENA_ATTR_REQUIRED;
    p.kernel("toy.update", [](catena_ctx*, const catena_call* c) -> catena_status {
        for (std::int64_t i = 0; i < count(*c->x[0]); ++i) {
            put(*c->x[0], i, x(c, 0, i) - c->attrs[0].v.f * x(c, 1, i));
        }
        return CATENA_OK;
    });

    // Returns the largest element and, as an integer output, its index.
    auto& largest = p.function(
        "toy.largest", {{"x"}}, {{"value"}, {"place", CATENA_PORT_NON_DIFFERENTIABLE, "I"}},
        [](catena_ctx*, const catena_value*, const catena_meta* const* in, std::uint32_t,
           catena_meta* const* out, std::uint32_t) -> catena_status {
            out[0]->ndim = out[1]->ndim = 0;
            out[0]->dtype = in[0]->dtype;
            out[1]->dtype = catena::to_abi(catena::Dtype::int64);
            return CATENA_OK;
        });
    largest.retain_y = 2;
    auto& largest_forward =
        p.kernel("toy.largest", [](catena_ctx*, const catena_call* c) -> catena_status {
            std::int64_t best = 0;
            for (std::int64_t i = 1; i < count(*c->x[0]); ++i) {
                if (x(c, 0, i) > x(c, 0, best)) best = i;
            }
            put(*c->y[0], 0, x(c, 0, best));
            put(*c->y[1], 0, static_cast<double>(best));
            return CATENA_OK;
        });
    auto& largest_backward = p.kernel(
        "toy.largest",
        [](catena_ctx*, const catena_call* c) -> catena_status {
            for (std::int64_t i = 0; i < count(*c->gx[0]); ++i) {
                const bool here = static_cast<double>(i) == get(*c->y[1], 0);
                put(*c->gx[0], i, here ? gy(c, 0, 0) : 0, c->req[0]);
            }
            return CATENA_OK;
        },
        backward_phase);
    const Types with_place = {{catena::Dtype::float32, catena::Dtype::int64},
                              {catena::Dtype::float64, catena::Dtype::int64}};
    p.types(largest_forward, with_place);
    p.types(largest_backward, with_place);
}

void shapes(Plugin& p) {
    auto& sum =
        p.function("toy.sum", {{"x"}}, {{"y"}},
                   [](catena_ctx*, const catena_value*, const catena_meta* const* in, std::uint32_t,
                      catena_meta* const* out, std::uint32_t) -> catena_status {
                       out[0]->ndim = 0;
                       out[0]->dtype = in[0]->dtype;
                       return CATENA_OK;
                   });
    sum.gradient = [](catena_ctx* ctx, const catena_gradient_call* g) -> catena_status {
        const catena_meta& meta = *g->x_meta[0];
        const std::vector<std::int64_t> shape(meta.shape, meta.shape + meta.ndim);
        g->gx[0] = call(ctx, "toy.spread", {g->gy[0]}, {{"shape", integers(shape)}});
        return CATENA_OK;
    };
    p.kernel("toy.sum", [](catena_ctx*, const catena_call* c) -> catena_status {
        double s = 0;
        for (std::int64_t i = 0; i < count(*c->x[0]); ++i) s += x(c, 0, i);
        put(*c->y[0], 0, s);
        return CATENA_OK;
    });

    const Infer infer_shape = [](catena_ctx* ctx, const catena_value* attrs,
                                 const catena_meta* const* in, std::uint32_t,
                                 catena_meta* const* out, std::uint32_t) -> catena_status {
        if (attrs[0].n > CATENA_MAX_NDIM) return fail(ctx, CATENA_E_SHAPE, "too many axes");
        out[0]->ndim = static_cast<std::int32_t>(attrs[0].n);
        out[0]->dtype = in[0]->dtype;
        std::copy(attrs[0].v.ints, attrs[0].v.ints + attrs[0].n, out[0]->shape);
        return CATENA_OK;
    };
    auto& spread = p.function("toy.spread", {{"x"}}, {{"y"}}, infer_shape);
    p.attribute(spread, "shape", CATENA_ATTR_INTS).flags = CATENA_ATTR_REQUIRED;
    spread.gradient = [](catena_ctx* ctx, const catena_gradient_call* g) -> catena_status {
        g->gx[0] = call(ctx, "toy.sum", {g->gy[0]});
        return CATENA_OK;
    };
    p.kernel("toy.spread",
             elementwise<[](const catena_call* c, std::int64_t) { return x(c, 0, 0); }>);

    auto& view = p.function("toy.view", {{"x"}}, {{"y"}}, infer_shape);
    view.flags = CATENA_FUNCTION_VIEW;
    p.attribute(view, "shape", CATENA_ATTR_INTS).flags = CATENA_ATTR_REQUIRED;
    view.gradient = [](catena_ctx* ctx, const catena_gradient_call* g) -> catena_status {
        const catena_meta& meta = *g->x_meta[0];
        const std::vector<std::int64_t> shape(meta.shape, meta.shape + meta.ndim);
        g->gx[0] = call(ctx, "toy.view", {g->gy[0]}, {{"shape", integers(shape)}});
        return CATENA_OK;
    };
}

void states(Plugin& p) {
    auto& noise = p.function("toy.noise", {{"x"}}, {{"y"}}, infer_same);
    noise.flags = CATENA_FUNCTION_STOCHASTIC;
    p.kernel("toy.noise", [](catena_ctx* ctx, const catena_call* c) -> catena_status {
        std::uint64_t seed = 0;
        std::uint64_t offset = 0;
        const auto n = static_cast<std::uint64_t>(count(*c->y[0]) + 3) / 4;
        if (catena_status s = catena::host_table().philox(ctx, n, &seed, &offset)) return s;
        for (std::int64_t i = 0; i < count(*c->y[0]); ++i) {
            put(*c->y[0], i, static_cast<double>(seed % 1000) + static_cast<double>(offset));
        }
        return CATENA_OK;
    });

    // y = max(x, 0). The forward kernel saves the mask x > 0, which its backward kernel reads.
    auto& gate = p.function("toy.gate", {{"x"}}, {{"y"}}, infer_same);
    gate.flags = 0;
    auto& forward = p.kernel("toy.gate", [](catena_ctx*, const catena_call* c) -> catena_status {
        saw_forward(c);
        auto* copies = static_cast<double*>(c->scratch);
        for (std::int64_t i = 0; i < count(*c->y[0]); ++i) {
            const bool open = x(c, 0, i) > 0;
            copies[i] = open ? x(c, 0, i) : 0;
            put(*c->saved[0], i, open);
        }
        for (std::int64_t i = 0; i < count(*c->y[0]); ++i) put(*c->y[0], i, copies[i]);
        return CATENA_OK;
    });
    forward.variant = "saving";
    forward.n_saved = 1;
    forward.plan = [](catena_ctx*, const catena_call* c, catena_plan* plan) -> catena_status {
        plan->saved[0]->ndim = 1;
        plan->saved[0]->shape[0] = count(*c->x[0]);
        plan->saved[0]->dtype = catena::to_abi(catena::Dtype::int32);
        plan->scratch_bytes = static_cast<std::uint64_t>(count(*c->x[0])) * sizeof(double);
        return CATENA_OK;
    };
    auto& backward = p.kernel(
        "toy.gate",
        [](catena_ctx*, const catena_call* c) -> catena_status {
            saw_backward(c);
            for (std::int64_t i = 0; i < count(*c->gx[0]); ++i) {
                put(*c->gx[0], i, get(*c->saved[0], i) * gy(c, 0, i), c->req[0]);
            }
            return CATENA_OK;
        },
        backward_phase);
    backward.variant = "saving";
    backward.n_saved = 1;

    // Fails on demand: see fail_forward and fail_backward.
    auto& fragile = p.function("toy.fragile", {{"x"}}, {{"y"}}, infer_same);
    fragile.retain_x = 1;
    p.kernel("toy.fragile", [](catena_ctx* ctx, const catena_call* c) -> catena_status {
        if (fail_forward.exchange(false)) return fail(ctx, CATENA_E_VALUE, "x: it broke");
        for (std::int64_t i = 0; i < count(*c->y[0]); ++i) put(*c->y[0], i, x(c, 0, i));
        return CATENA_OK;
    });
    p.kernel(
        "toy.fragile",
        [](catena_ctx* ctx, const catena_call* c) -> catena_status {
            if (fail_backward.exchange(false)) return fail(ctx, CATENA_E_VALUE, "gy: it broke");
            for (std::int64_t i = 0; i < count(*c->gx[0]); ++i)
                put(*c->gx[0], i, gy(c, 0, i), c->req[0]);
            return CATENA_OK;
        },
        backward_phase);
}

// Runs before the constructors of the tests' static PluginFunctions.
__attribute__((constructor(200))) void register_toys() {
    catena::disable_default_plugins();
    Plugin devices("toys.devices");
    devices.backend("vault", 12, 0);
    devices.backend("toy", 1, CATENA_BACKEND_HOST_MEMORY);
    devices.add();
    Plugin functions("toys.functions");
    arithmetic(functions);
    ports(functions);
    shapes(functions);
    states(functions);
    functions.add();
}

}  // namespace
}  // namespace toys
