// World's gradients: the composition of host functions that a function describes, and the gradient of
// that composition by going back over the calls that it made.
#pragma once

#include "catena/testing/world.hpp"

namespace catena::testing {

struct World::Composition {
    Composition(World& world, const catena_function& function, const std::vector<Array>& inputs,
                const std::vector<Array>& outputs)
        : f(function), ctx{&world, {}, {}}, x_arrays(complete(f, inputs)), y_arrays(outputs) {
        ctx.device = "cpu";
        y_arrays.resize(f.n_outputs);
        for (const Array& a : x_arrays) x.push_back(make(a));
        for (const Array& a : y_arrays) y.push_back(make(a));
        gx.resize(x.size());
    }
    catena_var* make(const Array& a) {
        return a ? ctx.vars.emplace_back(new catena_var{a}).get() : nullptr;
    }

    const catena_function& f;
    catena_ctx ctx;
    std::vector<Array> x_arrays;
    std::vector<Array> y_arrays;
    std::vector<catena_var*> x;
    std::vector<catena_var*> y;
    std::vector<catena_var*> gy;
    std::vector<catena_var*> gx;
};

CATENA_TESTING_INLINE void World::compose(Composition& c, const std::vector<catena_value>& values,
                                          const std::vector<Array>& gy, const Attrs& attrs,
                                          const Options& options) {
    const catena_function& f = c.f;
    c.ctx.train = options.train;
    for (std::size_t i = 0; i < c.y.size(); ++i)
        c.gy.push_back(i < gy.size() ? c.make(gy[i]) : nullptr);
    std::vector<catena_var*> x;
    std::vector<catena_var*> y;
    std::vector<catena_meta> metas;
    std::vector<const catena_meta*> meta_list;
    const auto unseen = [&](const Array& a, catena_var* given, std::size_t port) {
        const Unretained how = detail::unretained(options, port);
        if (!a || how == Unretained::missing || how == Unretained::given)
            return how == Unretained::given ? given : nullptr;
        return c.make(a.floating() ? Array(a.shape(), a.dtype())
                                   : Array::constant(a.shape(), a.dtype(), 0));
    };
    for (std::size_t i = 0; i < c.x.size(); ++i) {
        const Array& a = c.x_arrays[i];
        x.push_back(retains(f.retain_x, i, f.n_inputs) ? c.x[i] : unseen(a, c.x[i], i));
        metas.push_back(a ? a.meta() : catena_meta{});
    }
    for (std::size_t i = 0; i < c.x.size(); ++i)
        meta_list.push_back(c.x_arrays[i] ? &metas[i] : nullptr);
    for (std::size_t i = 0; i < c.y.size(); ++i)
        y.push_back((f.retain_y >> i & 1) != 0 ? c.y[i]
                                               : unseen(c.y_arrays[i], c.y[i], c.x.size() + i));
    if (f.grad_function != nullptr) {
        std::vector<catena_var*> in;
        for (std::size_t i = 0; i < x.size(); ++i)
            if (retains(f.retain_x, i, f.n_inputs)) in.push_back(x[i]);
        for (std::size_t i = 0; i < y.size(); ++i)
            if ((f.retain_y >> i & 1) != 0) in.push_back(y[i]);
        in.insert(in.end(), c.gy.begin(), c.gy.end());
        const catena_function& g = function(f.grad_function);
        std::vector<catena_var*> out(g.n_outputs);
        if (host().call(&c.ctx, callable(g), attrs.data(), static_cast<std::uint32_t>(attrs.size()),
                        in.data(), static_cast<std::uint32_t>(in.size()), out.data(),
                        g.n_outputs) != CATENA_OK)
            throw Failure(CATENA_E_INTERNAL, c.ctx.error);
        std::size_t next = 0;
        for (std::size_t i = 0; i < x.size() && next < out.size(); ++i)
            if ((input_flags(f, i) & CATENA_PORT_NON_DIFFERENTIABLE) == 0) c.gx[i] = out[next++];
        return;
    }
    if (f.gradient == nullptr) throw Failure(CATENA_E_NOT_DIFFERENTIABLE, f.name);
    const Targets targets(f, c.x_arrays, options);
    catena_gradient_call call = {};
    call.struct_size = sizeof call;
    call.flags = options.train ? +CATENA_CALL_TRAIN : 0u;
    call.function = &f;
    call.attrs = values.data();
    call.n_x = static_cast<std::uint32_t>(x.size());
    call.n_y = static_cast<std::uint32_t>(y.size());
    call.x = x.data();
    call.y = y.data();
    call.gy = c.gy.data();
    call.gx = c.gx.data();
    call.targets = targets.data();
    call.x_meta = meta_list.data();
    if (const catena_status status = f.gradient(&c.ctx, &call); status != CATENA_OK)
        throw Failure(status, c.ctx.error);
}

CATENA_TESTING_INLINE std::vector<Array> World::gradient(
    const std::string& name, const std::vector<Array>& inputs, const std::vector<Array>& outputs,
    const std::vector<Array>& gy, const Attrs& attrs, const Options& options) {
    const catena_function& f = function(name);
    Composition c(*this, f, inputs, outputs);
    compose(c, bind(f, attrs), gy, attrs, options);
    const Targets targets(f, c.x_arrays, options);
    std::vector<Array> result(c.x.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
        if (!targets[i]) continue;
        result[i] = c.gx[i] != nullptr ? c.gx[i]->array : detail::zeros_like(c.x_arrays[i]);
        if (result[i].shape() != c.x_arrays[i].shape())
            throw Failure(CATENA_E_SHAPE, "gradient of input " + std::to_string(i) + ": expected " +
                                              plugin::text_of(c.x_arrays[i].shape()) + ", got " +
                                              plugin::text_of(result[i].shape()));
    }
    return result;
}

CATENA_TESTING_INLINE std::vector<Array> World::second(const std::string& name,
                                                       const std::vector<Array>& inputs,
                                                       const std::vector<Array>& outputs,
                                                       const std::vector<Array>& gy,
                                                       const std::vector<Array>& ggx,
                                                       const Attrs& attrs, const Options& options) {
    const catena_function& f = function(name);
    Composition c(*this, f, inputs, outputs);
    std::vector<Step> tape = {{&f, OwnedAttrs(attrs), c.x, c.y}};
    c.ctx.tape = &tape;
    compose(c, bind(f, attrs), gy, attrs, options);

    std::map<const catena_var*, Array> gradients;
    const auto add = [&](const catena_var* var, const Array& g) {
        Array& sum = gradients[var];
        if (!sum) sum = g;
        else
            for (std::int64_t i = 0; i < g.size(); ++i) sum.set(i, sum.at(i) + g.at(i));
    };
    for (std::size_t i = 0; i < c.gx.size(); ++i)
        if (c.gx[i] != nullptr && i < ggx.size() && ggx[i]) add(c.gx[i], ggx[i]);
    for (std::size_t s = tape.size(); s-- > 0;) {
        const Step& step = tape[s];
        const catena_function& g = *step.function;
        if ((g.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) != 0) continue;
        std::vector<Array> step_gy(step.y.size());
        bool any = false;
        for (std::size_t i = 0; i < step.y.size(); ++i) {
            const auto found = gradients.find(step.y[i]);
            if (found == gradients.end() || !gives_gradient(g, i, step.y[i]->array)) continue;
            step_gy[i] = found->second;
            any = true;
        }
        if (!any) continue;
        const auto arrays = [](const std::vector<catena_var*>& vars) {
            std::vector<Array> result;
            for (const catena_var* v : vars) result.push_back(v != nullptr ? v->array : Array());
            return result;
        };
        Options plain;
        plain.train = options.train;
        const auto step_gx =
            gradient(g.name, arrays(step.x), arrays(step.y), step_gy, step.attrs.list(), plain);
        for (std::size_t i = 0; i < step.x.size(); ++i)
            if (step_gx[i]) add(step.x[i], step_gx[i]);
    }
    std::vector<Array> result;
    const auto take = [&](const catena_var* var) {
        if (var == nullptr) return Array();
        const auto found = gradients.find(var);
        return found != gradients.end() ? found->second : detail::zeros_like(var->array);
    };
    for (std::size_t i = 0; i < c.x.size(); ++i)
        result.push_back(takes_gradient(f, i, c.x_arrays[i]) ? take(c.x[i]) : Array());
    for (const catena_var* var : c.gy) result.push_back(take(var));
    return result;
}

}  // namespace catena::testing
