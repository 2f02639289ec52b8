// World's calls: one kernel run with everything around it that a host brings, and watched.
#pragma once

#include <array>

#include "catena/testing/absent.hpp"
#include "catena/testing/device.hpp"

namespace catena::testing {

// Tensors and lists of one catena_call, and the checks after it.
struct World::Invocation {
    Invocation(World& world, const catena_function& function,
               const std::vector<catena_value>& values, const Options& given)
        : options(given), ctx{&world, {}, {}, given.train} {
        call.struct_size = sizeof call;
        call.flags = options.train ? +CATENA_CALL_TRAIN : 0u;
        call.function = &function;
        call.attrs = values.data();
    }
    catena_tensor* add(Array& array) {
        if (!array) return nullptr;
        return &lent.emplace_back(array.tensor(), &array).first;
    }
    // With the lists as they are now.
    void bind() {
        call.n_x = static_cast<std::uint32_t>(x.size());
        call.n_y = static_cast<std::uint32_t>(y.size());
        call.x = x.data();
        call.y = y.data();
        call.gy = gy.data();
        call.gx = gx.data();
        call.req = req.data();
    }
    // False if the kernel cannot do this call.
    bool attempt(const catena_kernel& kernel, std::vector<Array>& saved) {
        call.phase = kernel.phase;
        call.n_saved = kernel.n_saved;
        ctx.device = kernel.device;
        const detail::Device* device = ctx.world->device_of(kernel);
        for (auto& [tensor, array] : lent) place(tensor, *array, device);
        if (device != nullptr) {
            call.dev = device->dev;
            call.stream = device->stream;
        }
        if (kernel.supports != nullptr && kernel.supports(&ctx, &call) == 0) return false;
        Array scratch;
        if (!plan(kernel, saved, scratch)) return false;
        std::deque<std::pair<catena_tensor, Array*>> kept;
        std::vector<catena_tensor*> list;
        for (Array& a : saved) {
            place(kept.emplace_back(a.tensor(), &a).first, a, device);
            list.push_back(&kept.back().first);
        }
        call.saved = list.data();
        ++ctx.world->runs_;
        ctx.world->kernels_run_.insert(&kernel);
        running = &kernel;
        if (device == nullptr) {
            check(kernel.run(&ctx, &call));
        } else {
            std::deque<detail::Placed> places;
            for (auto* tensors : {&lent, &kept})
                for (auto& [tensor, array] : *tensors)
                    tensor.dl.data = places.emplace_back(*device, ctx, *array).data();
            if (scratch)
                call.scratch = places.emplace_back(*device, ctx, scratch).data() + scratch.shift();
            check(kernel.run(&ctx, &call));
            device->sync(ctx);
            for (detail::Placed& place : places) place.fetch();
            device->sync(ctx);
        }
        intact({scratch}, [](std::size_t) { return std::string("its scratch"); });
        intact(saved, [](std::size_t i) { return "what it saves, " + std::to_string(i); });
        ctx.world->ran_ = ctx.world->origin(kernel);
        return true;
    }
    // On a device, data come later: supports() and plan() must not look at them.
    static void place(catena_tensor& tensor, Array& array, const detail::Device* device) {
        tensor.dl.data = device == nullptr ? array.memory() + Array::guard : nullptr;
        tensor.dl.device_type = device == nullptr ? 1 : device->table.dlpack_type;
    }
    bool plan(const catena_kernel& kernel, std::vector<Array>& saved, Array& scratch) {
        if (kernel.plan == nullptr) return true;
        const bool forward = kernel.phase == CATENA_PHASE_FORWARD;
        std::vector<catena_meta> metas(forward ? kernel.n_saved : 0);
        std::vector<catena_meta*> list;
        for (catena_meta& m : metas) {
            m.struct_size = sizeof m;
            list.push_back(&m);
        }
        catena_plan plan = {sizeof plan, kernel.n_saved, 0, list.data()};
        const catena_status status = kernel.plan(&ctx, &call, &plan);
        if (status == CATENA_E_UNSUPPORTED) return false;
        check(status);
        for (const catena_meta& m : metas) {
            saved.emplace_back(Dims(m.shape, m.shape + m.ndim), m.dtype);
            saved.back().fill(options.fill);
        }
        if (plan.scratch_bytes > 0) {
            scratch = Array::room(static_cast<std::int64_t>(plan.scratch_bytes));
            scratch.fill(options.fill);
            call.scratch = scratch.data<std::byte>();
        }
        call.scratch_bytes = plan.scratch_bytes;
        return true;
    }
    void check(catena_status status) const {
        if (!ctx.thrown.empty())
            throw Thrown(CATENA_E_INTERNAL,
                         who() + "an exception leaves a piece of parallel_for(): " + ctx.thrown);
        if (status != CATENA_OK) throw Failure(status, ctx.error);
    }
    // name(i) is what an array is called.
    template <class Name>
    void intact(const std::vector<Array>& arrays, const Name& name) const {
        for (std::size_t i = 0; i < arrays.size(); ++i)
            if (const std::string text = arrays[i] ? arrays[i].damage() : ""; !text.empty())
                throw OutOfBounds(CATENA_E_INTERNAL,
                                  who() + name(i) + ": written out of bounds: " + text);
    }
    template <class Name>
    void unchanged(const std::vector<Array>& now, const std::vector<Array>& before,
                   const Name& name) const {
        intact(now, name);
        for (std::size_t i = 0; i < now.size() && i < before.size(); ++i)
            if (!(now[i] == before[i]))
                throw InputChanged(CATENA_E_INTERNAL, who() + name(i) + ": changed");
    }
    auto inputs(const std::string& what) const {
        return [this, what](std::size_t i) { return what + input_name(*call.function, i); };
    }
    auto outputs(const std::string& what) const {
        return [this, what](std::size_t i) { return what + call.function->outputs[i]->name; };
    }
    // The kernel that ran, with the dtypes of this call.
    std::string who() const {
        if (running == nullptr) return {};
        const TypeVars vars(*call.function);
        std::vector<std::string> row(vars.size(), "any");
        for (std::size_t i = 0; i < x.size(); ++i)
            if (x[i] != nullptr) row[vars.input(i)] = plugin::text_of(x[i]->dl.dtype);
        for (std::size_t i = 0; i < y.size(); ++i)
            if (y[i] != nullptr) row[vars.output(i)] = plugin::text_of(y[i]->dl.dtype);
        for (std::size_t i = 0; i < gx.size(); ++i)
            if (gx[i] != nullptr) row[vars.input(i)] = plugin::text_of(gx[i]->dl.dtype);
        std::string types;
        for (const std::string& dtype : row) types += (types.empty() ? "" : ",") + dtype;
        return label_of(*ctx.world, *running, types) + ": ";
    }
    [[noreturn]] void fail_unsupported() const {
        throw NoKernel(CATENA_E_UNSUPPORTED, std::string("[") + call.function->name +
                                                 "] kernel: expected one that supports the call, "
                                                 "got none");
    }

    const Options& options;
    catena_ctx ctx;
    catena_call call = {};
    std::deque<std::pair<catena_tensor, Array*>> lent;
    std::vector<const catena_tensor*> x;
    std::vector<catena_tensor*> y;
    std::vector<const catena_tensor*> gy;
    std::vector<catena_tensor*> gx;
    std::vector<std::uint8_t> req;
    const catena_kernel* running = nullptr;
};

namespace detail {

inline Unretained unretained(const Options& options, std::size_t port) {
    const bool given = options.spoilt >= 0 && static_cast<std::size_t>(options.spoilt) != port;
    return given ? Unretained::given : options.unretained;
}

}  // namespace detail

inline void fill_ones(Array& a) {
    for (std::int64_t i = 0; i < a.size(); ++i) a.set(i, 1);
}

CATENA_TESTING_INLINE std::vector<Array> World::forward(const std::string& name,
                                                        const std::vector<Array>& inputs,
                                                        const Attrs& attrs,
                                                        const Options& options) {
    std::vector<Array> saved;
    return forward(name, inputs, attrs, options, saved);
}

CATENA_TESTING_INLINE std::vector<Array> World::forward(const std::string& name,
                                                        const std::vector<Array>& inputs,
                                                        const Attrs& attrs, const Options& options,
                                                        std::vector<Array>& saved) {
    const catena_function& f = function(name);
    const std::vector<catena_value> values = bind(f, attrs);
    Invocation run(*this, f, values, options);
    std::vector<Array> x = complete(f, inputs);
    const std::vector<Array> given = x;
    std::vector<Array> y;
    for (const catena_meta& m : infer(f, run.ctx, values, metas_of(x))) {
        y.emplace_back(Dims(m.shape, m.shape + m.ndim), m.dtype);
        y.back().fill(options.fill);
    }
    began_ = drawn;
    if ((f.flags & CATENA_FUNCTION_VIEW) != 0) return {x[0].reshaped(y[0].shape())};
    threads = options.threads;
    for (Array& a : x) run.x.push_back(run.add(a));
    for (Array& a : y) {
        const bool add = options.add && a.floating();
        if (add) fill_ones(a);
        run.y.push_back(run.add(a));
        run.req.push_back(add ? CATENA_REQ_ADD : CATENA_REQ_WRITE);
    }
    run.bind();
    bool done = false;
    for (const catena_kernel* k : candidates(f, CATENA_PHASE_FORWARD, x, y, options)) {
        saved.clear();
        if ((done = run.attempt(*k, saved))) break;
        run.ctx.error.clear();
    }
    if (!done) run.fail_unsupported();
    run.intact(y, run.outputs("output "));
    std::vector<Array> updated;
    for (std::size_t i = 0; i < x.size(); ++i)
        if ((input_flags(f, i) & CATENA_PORT_MUTATED) != 0) {
            run.intact({x[i]}, [&](std::size_t) { return "updated input " + input_name(f, i); });
            updated.push_back(x[i]);  // handed back behind the outputs
            x[i] = given[i];
        }
    run.unchanged(x, given, run.inputs("input "));
    for (Array& a : updated) y.push_back(std::move(a));
    return y;
}

CATENA_TESTING_INLINE std::vector<Array> World::backward(
    const std::string& name, const std::vector<Array>& inputs, const std::vector<Array>& outputs,
    const std::vector<Array>& gys, const Attrs& attrs, const Options& options) {
    const catena_function& f = function(name);
    const std::vector<catena_value> values = bind(f, attrs);
    std::vector<Array> x = complete(f, inputs);
    const std::vector<Array> given_x = x;
    std::vector<Array> gy = gys;
    gy.resize(f.n_outputs);
    const std::vector<Array> given_gy = gy;
    threads = options.threads;
    for (const catena_kernel* k : candidates(f, CATENA_PHASE_BACKWARD, x, outputs, options)) {
        Invocation run(*this, f, values, options);
        std::vector<Array> given_y(
            outputs.begin(),
            outputs.begin() + std::min<std::ptrdiff_t>(f.n_outputs, std::ssize(outputs)));
        std::vector<Array> saved;
        if (k->variant != nullptr && !forward_of(*k, inputs, attrs, options, given_y, saved))
            continue;
        std::vector<Array> y = given_y;
        std::vector<Array> gx(x.size());
        std::vector<Array> garbage;
        std::array<std::int64_t, CATENA_MAX_NDIM> ones;
        ones.fill(1);
        garbage.reserve(x.size() + y.size());
        const auto unseen = [&](Array& a, std::size_t port) -> catena_tensor* {
            const Unretained how = detail::unretained(options, port);
            if (!a || how == Unretained::missing) return nullptr;
            if (how == Unretained::given) return run.add(a);
            garbage.push_back(a.floating() ? Array(a.shape(), a.dtype())
                                           : Array::constant(a.shape(), a.dtype(), 0));
            catena_tensor* const tensor = run.add(garbage.back());
            tensor->dl.shape = tensor->dl.strides = ones.data();
            return tensor;
        };
        const std::uint64_t kept_x = k->variant != nullptr ? k->retain_x : f.retain_x;
        const std::uint64_t kept_y = k->variant != nullptr ? k->retain_y : f.retain_y;
        const Targets targets(f, x, options);
        for (std::size_t i = 0; i < x.size(); ++i) {
            run.x.push_back(retains(kept_x, i, f.n_inputs) ? run.add(x[i]) : unseen(x[i], i));
            if (targets[i]) {
                gx[i] = Array(x[i].shape(), x[i].dtype());
                gx[i].fill(options.fill);
                if (options.add) fill_ones(gx[i]);
            }
            run.gx.push_back(run.add(gx[i]));
            run.req.push_back(!gx[i]        ? CATENA_REQ_NONE
                              : options.add ? CATENA_REQ_ADD
                                            : CATENA_REQ_WRITE);
        }
        for (std::size_t i = 0; i < y.size(); ++i) {
            run.y.push_back((kept_y >> i & 1) != 0 ? run.add(y[i]) : unseen(y[i], x.size() + i));
            run.gy.push_back(run.add(gy[i]));
        }
        run.call.targets = targets.data();
        run.bind();
        const detail::Absent in_call(f, run.call, kept_x, kept_y);
        if (!run.attempt(*k, saved)) continue;
        run.intact(gx, run.inputs("gradient of "));
        run.unchanged(x, given_x, run.inputs("input "));
        run.unchanged(y, given_y, run.outputs("output "));
        run.unchanged(gy, given_gy, run.outputs("gradient of output "));
        return gx;
    }
    throw NoKernel(CATENA_E_UNSUPPORTED, std::string("[") + f.name +
                                             "] kernel: expected one that supports the call, got "
                                             "none");
}

// The state that the forward kernel of a variant saves for its backward kernel.
CATENA_TESTING_INLINE bool World::forward_of(const catena_kernel& backward,
                                             const std::vector<Array>& inputs, const Attrs& attrs,
                                             const Options& options, std::vector<Array>& y,
                                             std::vector<Array>& saved) {
    Options again;
    again.train = options.train;
    again.threads = options.threads;
    again.fill = options.fill;
    for (const catena_kernel* k : kernels(backward.function, CATENA_PHASE_FORWARD)) {
        if (k->variant == nullptr || std::strcmp(k->variant, backward.variant) != 0 ||
            origin(*k) != origin(backward) || std::strcmp(k->isa, backward.isa) != 0 ||
            std::strcmp(k->device, backward.device) != 0)
            continue;
        again.kernel = k;
        drawn = began_;
        try {
            y = forward(backward.function, inputs, attrs, again, saved);
        } catch (const NoKernel&) {
            continue;  // of other dtypes
        }
        y.resize(function(backward.function).n_outputs);
        return true;
    }
    return false;
}

}  // namespace catena::testing
