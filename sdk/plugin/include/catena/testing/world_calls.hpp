// World's calls: one kernel run with everything around it that a host brings.
#pragma once

#include "catena/testing/world.hpp"

namespace catena::testing {

// Tensors and lists of one catena_call, and the checks after it.
struct World::Invocation {
    Invocation(World& world, const catena_function& function,
               const std::vector<catena_value>& values, const Options& options)
        : ctx{&world, {}, {}} {
        call.struct_size = sizeof call;
        call.flags = options.train ? +CATENA_CALL_TRAIN : 0u;
        call.function = &function;
        call.attrs = values.data();
    }
    catena_tensor* add(Array& array) {
        if (!array) return nullptr;
        return &tensors.emplace_back(array.tensor());
    }
    // The first that can do it; its plugin's id.
    std::string run(const std::vector<const catena_kernel*>& candidates) {
        for (const catena_kernel* k : candidates) {
            call.phase = k->phase;
            if (k->supports != nullptr && k->supports(&ctx, &call) == 0) continue;
            if (attempt(*k)) return ctx.world->origins_.at(k);
            ctx.error.clear();
        }
        throw Failure(CATENA_E_DTYPE, std::string(call.function->name) + ": no kernel");
    }
    // False if it is unsupported.
    bool attempt(const catena_kernel& kernel) {
        std::vector<std::byte> scratch;
        if (kernel.plan != nullptr) {
            catena_plan plan = {};
            plan.struct_size = sizeof plan;
            const catena_status status = kernel.plan(&ctx, &call, &plan);
            if (status == CATENA_E_UNSUPPORTED) return false;
            check(status);
            scratch.resize(plan.scratch_bytes + 64);
            void* p = scratch.data();
            std::size_t space = scratch.size();
            call.scratch = std::align(64, plan.scratch_bytes, p, space);
            call.scratch_bytes = plan.scratch_bytes;
        }
        check(kernel.run(&ctx, &call));
        return true;
    }
    void check(catena_status status) const {
        if (status != CATENA_OK) throw Failure(status, ctx.error);
    }

    catena_ctx ctx;
    catena_call call = {};
    std::deque<catena_tensor> tensors;
    std::vector<const catena_tensor*> x;
    std::vector<catena_tensor*> y;
    std::vector<const catena_tensor*> gy;
    std::vector<catena_tensor*> gx;
    std::vector<std::uint8_t> req;
};

inline void World::differ(const std::vector<Array>& arrays, const char* what) {
    for (const Array& a : arrays)
        if (a && !a.intact())
            throw Failure(CATENA_E_INTERNAL, std::string(what) + ": written out of bounds");
}

inline void fill_ones(Array& a) {
    for (std::int64_t i = 0; i < a.size(); ++i) a.set(i, 1);
}

inline std::vector<Array> World::forward(const std::string& name, const std::vector<Array>& inputs,
                                         const Attrs& attrs, const Options& options) {
    const catena_function& f = function(name);
    const std::vector<catena_value> values = bind(f, attrs);
    Invocation run(*this, f, values, options);
    std::vector<Array> x = inputs;
    if (x.size() < f.n_inputs) x.resize(f.n_inputs);  // optional ones at the end may be left out
    std::vector<Array> y;
    for (const catena_meta& m : infer(f, run.ctx, values, x))
        y.emplace_back(Dims(m.shape, m.shape + m.ndim), m.dtype);
    if ((f.flags & CATENA_FUNCTION_VIEW) != 0) return {x[0].reshaped(y[0].shape())};
    threads = options.threads;
    for (Array& a : x) run.x.push_back(run.add(a));
    for (Array& a : y) {
        const bool add = options.add && a.floating();
        if (add) fill_ones(a);
        run.y.push_back(run.add(a));
        run.req.push_back(add ? CATENA_REQ_ADD : CATENA_REQ_WRITE);
    }
    run.call.n_x = static_cast<std::uint32_t>(x.size());
    run.call.n_y = static_cast<std::uint32_t>(y.size());
    run.call.x = run.x.data();
    run.call.y = run.y.data();
    run.call.req = run.req.data();
    ran_ = run.run(candidates(f, CATENA_PHASE_FORWARD, x, y, options));
    differ(y, "forward");
    for (std::size_t i = 0; i < x.size(); ++i) {
        const bool mutated =
            (f.inputs[std::min<std::size_t>(i, f.n_inputs - 1)]->flags & CATENA_PORT_MUTATED) != 0;
        if (mutated) y.push_back(x[i]);  // handed back behind the outputs
        else if (x[i] && !(x[i] == inputs[i]))
            throw Failure(CATENA_E_INTERNAL, "forward: an input was changed");
    }
    return y;
}

inline std::vector<Array> World::backward(const std::string& name, const std::vector<Array>& inputs,
                                          const std::vector<Array>& outputs,
                                          const std::vector<Array>& gys, const Attrs& attrs,
                                          const Options& options) {
    const catena_function& f = function(name);
    const std::vector<catena_value> values = bind(f, attrs);
    Invocation run(*this, f, values, options);
    std::vector<Array> x = inputs;
    std::vector<Array> y = outputs;
    std::vector<Array> gy = gys;
    std::vector<Array> gx(x.size());
    threads = options.threads;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const bool kept = (f.retain_x >> i & 1) != 0;
        run.x.push_back(kept ? run.add(x[i]) : nullptr);
        const auto flags = f.inputs[std::min<std::size_t>(i, f.n_inputs - 1)]->flags;
        if (x[i] && x[i].floating() && (flags & CATENA_PORT_NON_DIFFERENTIABLE) == 0 &&
            (options.targets >> i & 1) != 0) {
            gx[i] = Array(x[i].shape(), x[i].dtype());
            if (options.add) fill_ones(gx[i]);
        }
        run.gx.push_back(run.add(gx[i]));
        run.req.push_back(!gx[i]        ? CATENA_REQ_NONE
                          : options.add ? CATENA_REQ_ADD
                                        : CATENA_REQ_WRITE);
    }
    for (std::size_t i = 0; i < y.size(); ++i) {
        run.y.push_back((f.retain_y >> i & 1) != 0 ? run.add(y[i]) : nullptr);
        run.gy.push_back(i < gy.size() ? run.add(gy[i]) : nullptr);
    }
    std::uint64_t targets = 0;
    for (std::size_t i = 0; i < gx.size(); ++i) targets |= std::uint64_t{bool(gx[i])} << i;
    run.call.n_x = static_cast<std::uint32_t>(x.size());
    run.call.n_y = static_cast<std::uint32_t>(y.size());
    run.call.x = run.x.data();
    run.call.y = run.y.data();
    run.call.gy = run.gy.data();
    run.call.gx = run.gx.data();
    run.call.req = run.req.data();
    run.call.targets = &targets;
    ran_ = run.run(candidates(f, CATENA_PHASE_BACKWARD, x, y, options));
    differ(gx, "backward");
    return gx;
}

inline std::vector<Array> World::gradient(const std::string& name, const std::vector<Array>& inputs,
                                          const std::vector<Array>& outputs,
                                          const std::vector<Array>& gys, const Attrs& attrs,
                                          const Options& options) {
    const catena_function& f = function(name);
    if (f.gradient == nullptr) throw Failure(CATENA_E_NOT_DIFFERENTIABLE, name);
    const std::vector<catena_value> values = bind(f, attrs);
    catena_ctx ctx{this, {}, {}};
    const auto make = [&](const Array& a, bool kept) -> catena_var* {
        if (!a || !kept) return nullptr;
        return ctx.vars.emplace_back(new catena_var{a}).get();
    };
    std::vector<catena_var*> x;
    std::vector<catena_var*> y;
    std::vector<catena_var*> gy;
    std::vector<catena_var*> gx(inputs.size(), nullptr);
    std::vector<catena_meta> metas;
    std::vector<const catena_meta*> meta_list;
    std::uint64_t targets = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        x.push_back(make(inputs[i], (f.retain_x >> i & 1) != 0));
        metas.push_back(inputs[i] ? inputs[i].meta() : catena_meta{});
        const auto flags = f.inputs[std::min<std::size_t>(i, f.n_inputs - 1)]->flags;
        if (inputs[i] && inputs[i].floating() && (flags & CATENA_PORT_NON_DIFFERENTIABLE) == 0)
            targets |= options.targets & std::uint64_t{1} << i;
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
        meta_list.push_back(inputs[i] ? &metas[i] : nullptr);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        y.push_back(make(outputs[i], (f.retain_y >> i & 1) != 0));
        gy.push_back(i < gys.size() ? make(gys[i], true) : nullptr);
    }
    catena_gradient_call call = {};
    call.struct_size = sizeof call;
    call.flags = options.train ? +CATENA_CALL_TRAIN : 0u;
    call.function = &f;
    call.attrs = values.data();
    call.n_x = static_cast<std::uint32_t>(inputs.size());
    call.n_y = static_cast<std::uint32_t>(outputs.size());
    call.x = x.data();
    call.y = y.data();
    call.gy = gy.data();
    call.gx = gx.data();
    call.targets = &targets;
    call.x_meta = meta_list.data();
    if (const catena_status status = f.gradient(&ctx, &call); status != CATENA_OK)
        throw Failure(status, ctx.error);
    std::vector<Array> result(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if ((targets >> i & 1) == 0) continue;
        if (gx[i] != nullptr) {
            result[i] = gx[i]->array;
        } else {
            result[i] = Array(inputs[i].shape(), inputs[i].dtype());
            for (std::int64_t k = 0; k < result[i].size(); ++k) result[i].set(k, 0);
        }
    }
    return result;
}

}  // namespace catena::testing
