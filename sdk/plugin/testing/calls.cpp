// World's calls: selects a kernel, runs it, and throws its violations.
#include <algorithm>
#include <functional>
#include <span>
#include <stdexcept>

#include "testing/engine.hpp"
#include "testing/state.hpp"

namespace catena::testing {

using detail::Engine;
using detail::Reply;

namespace {

// Returns a label of the kernel that ran, with the dtypes of this call.
std::string who(const World& world, const catena_function& f, const catena_kernel& k,
                const detail::Metas& x, const detail::Metas& y) {
    return detail::label_of(world, k, detail::text_of(detail::check_types(f, x, y), ",")) + ": ";
}

// Throws an exception for an error or a violation in the reply; `label` returns the kernel's.
template <class Label>
void need(const Reply& r, const Label& label) {
    if (!r.piece_thrown.empty())
        throw Violation(
            CATENA_E_INTERNAL,
            label() + "an exception leaves a piece of parallel_for(): " + r.piece_thrown);
    if (!r.thrown.empty()) throw std::runtime_error(r.thrown);
    if (!r.misuse.empty()) throw Failure(CATENA_E_INTERNAL, label() + r.misuse);
    if (r.status != CATENA_OK) throw Failure(r.status, r.text);
    if (!r.damage.empty()) throw OutOfBounds(CATENA_E_INTERNAL, label() + r.damage);
    if (!r.changed.empty()) throw InputChanged(CATENA_E_INTERNAL, label() + r.changed);
}

std::string no_kernel() { return {}; }

std::vector<catena_meta> inferred(const catena_function& f, const Reply& r) {
    need(r, no_kernel);
    for (const catena_meta& m : r.metas)
        if (m.ndim < 0 || m.ndim > CATENA_MAX_NDIM ||
            std::any_of(m.shape, m.shape + m.ndim, [](std::int64_t d) { return d < 0; }))
            detail::refuse(f, CATENA_E_SHAPE, "output", "a shape", "none");
    return r.metas;
}

// Returns the results of the first kernel of a phase that serves the call, run by call(kernel).
template <class Call>
Arrays run_first(World& world, const catena_function& f, int phase, const detail::Metas& x,
                 const detail::Metas& y, const Options& options, const Call& call) {
    world.threads = options.threads;
    for (const catena_kernel* k : world.state().candidates(f, phase, x, y, options)) {
        Reply reply = call(*k);
        if (!reply.served) continue;
        need(reply, [&] { return who(world, f, *k, x, y); });
        world.state().ran = world.origin(*k);
        return std::move(reply.results);
    }
    detail::refuse<NoKernel>(f, CATENA_E_UNSUPPORTED, "kernel", "one that supports the call",
                             "none");
}

// Throws if the results of a composition have other shapes or dtypes than `expected`.
void check_inferred(const catena_function& f, const Arrays& y, const Arrays& expected) {
    const auto text = [](const Array& a) {
        return plugin::text_of(a.dtype()) + " " + plugin::text_of(a.shape());
    };
    for (std::size_t i = 0; i < y.size(); ++i)
        if (y[i].shape() != expected[i].shape() || !plugin::same(y[i].dtype(), expected[i].dtype()))
            detail::refuse(f, CATENA_E_INTERNAL, std::string("compose: ") + f.outputs[i]->name,
                           text(expected[i]) + " as " +
                               (f.infer != nullptr ? "infer() gives" : "without elements"),
                           text(y[i]));
}

Arrays run_composition(World& world, const catena_function& f, Engine& engine, const Arrays& x,
                       const Arrays& shapes, const Options& options) {
    world.threads = options.threads;
    std::vector<catena_var*> y;
    Reply reply = engine.compose(engine.make({x}).x, y);
    need(reply, [&] { return std::string("[") + f.name + "] compose: "; });
    if (!options.within) check_inferred(f, reply.results, shapes);
    world.state().ran = world.origin(f);
    return std::move(reply.results);
}

using Vars = Engine::Vars;

// Computes gradients over recorded calls. They are variables of `ctx`; with a tape there, the calls
// that compute them are recorded, so that they have gradients, too.
class Propagation {
public:
    // Without `kernels`, only gradients of calls that were made of variables count.
    Propagation(World& world, catena_ctx& ctx, const Options& options, bool kernels = true)
        : world_(world), ctx_(ctx), options_(options), kernels_(kernels) {}

    void add(const catena_var* var, catena_var* g) {
        catena_var*& sum = sums_[var];
        sum = sum == nullptr ? g : total(sum, g);
    }
    catena_var* gradient(const catena_var* var) const {
        const auto found = sums_.find(var);
        return found == sums_.end() ? nullptr : found->second;
    }
    void run(const std::vector<RecordedCall>& tape) {
        for (std::size_t s = tape.size(); s-- > 0;) {
            const RecordedCall step = tape[s];
            const catena_function& f = *step.function;
            if ((f.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) != 0) continue;
            std::vector<catena_var*> gy(f.n_outputs);
            for (std::size_t i = 0; i < gy.size(); ++i)
                if (detail::gives_gradient(f, i, step.y[i]->array)) gy[i] = gradient(step.y[i]);
            if (std::all_of(gy.begin(), gy.end(), [](auto* g) { return g == nullptr; })) continue;
            const std::vector<catena_var*> gx = of_call(step, gy);
            for (std::size_t i = 0; i < gx.size(); ++i)
                if (gx[i] != nullptr && detail::takes_gradient(f, i, step.x[i]->array))
                    add(step.x[i], gx[i]);
        }
    }
    // Returns the gradients of the inputs of a call, with null for zero.
    std::vector<catena_var*> of_call(const RecordedCall& step, const std::vector<catena_var*>& gy) {
        const catena_function& f = *step.function;
        Engine engine(world_, f, world_.state().bind(f, step.attrs.list()), options_);
        engine.ctx.tape = ctx_.tape;
        Vars vars = {step.x, step.y, gy, std::vector<catena_var*>(step.x.size())};
        vars.y.resize(f.n_outputs);
        const bool composes = f.compose != nullptr && options_.composition;
        if (composes) of_parts(engine, step, vars);
        else if (f.grad_function != nullptr) of_function(engine, step, vars);
        else if (f.gradient != nullptr) need(engine.gradient(arrays_of(vars), vars), no_kernel);
        else if (f.compose != nullptr) of_parts(engine, step, vars);
        else of_kernel(engine, step, vars);
        for (auto& var : engine.ctx.vars) ctx_.vars.push_back(std::move(var));
        return vars.gx;
    }

private:
    static detail::Given arrays_of(const Vars& vars) {
        const auto arrays = [](const std::vector<catena_var*>& list) {
            Arrays result;
            for (const catena_var* v : list) result.push_back(v != nullptr ? v->array : Array());
            return result;
        };
        return {arrays(vars.x), arrays(vars.y), arrays(vars.gy)};
    }
    catena_var* made(Array array) {
        return ctx_.vars.emplace_back(new catena_var{std::move(array)}).get();
    }
    catena_var* total(catena_var* a, catena_var* b) {
        if (ctx_.tape == nullptr) {
            std::vector<double> values = a->array.numbers();
            const std::vector<double> more = b->array.numbers();
            std::transform(values.begin(), values.end(), more.begin(), values.begin(), std::plus());
            Array sum = a->array;
            sum.set_numbers(values);
            return made(std::move(sum));
        }
        catena_var* const both[] = {a, b};
        catena_var* sum = nullptr;
        call(ctx_, "catena.add", {}, both, {&sum, 1});
        return sum;
    }
    static void call(catena_ctx& ctx, const char* name, const Attrs& attrs,
                     std::span<catena_var* const> x, std::span<catena_var*> y) {
        const catena_callable* callable = nullptr;
        if (World::host().find(&ctx, name, &callable) != CATENA_OK ||
            World::host().call(&ctx, callable, attrs.data(),
                               static_cast<std::uint32_t>(attrs.size()), x.data(),
                               static_cast<std::uint32_t>(x.size()), y.data(),
                               static_cast<std::uint32_t>(y.size())) != CATENA_OK)
            throw Failure(CATENA_E_INTERNAL, ctx.error);
    }
    void of_function(Engine& engine, const RecordedCall& step, Vars& vars) {
        const catena_function& f = *step.function;
        const Vars lent = engine.lend(vars, arrays_of(vars));
        std::vector<catena_var*> in;
        for (std::size_t i = 0; i < lent.x.size(); ++i)
            if (detail::retains(f.retain_x, i, f.n_inputs)) in.push_back(lent.x[i]);
        for (std::size_t i = 0; i < lent.y.size(); ++i)
            if ((f.retain_y >> i & 1) != 0) in.push_back(lent.y[i]);
        in.insert(in.end(), lent.gy.begin(), lent.gy.end());
        std::vector<catena_var*> out(world_.function(f.grad_function).n_outputs);
        call(engine.ctx, f.grad_function, step.attrs.list(), in, out);
        std::size_t next = 0;
        for (std::size_t i = 0; i < vars.gx.size() && next < out.size(); ++i)
            if ((detail::input_flags(f, i) & CATENA_PORT_NON_DIFFERENTIABLE) == 0)
                vars.gx[i] = out[next++];
    }
    // Runs the composition again and propagates through its calls.
    void of_parts(Engine& engine, const RecordedCall& step, Vars& vars) {
        const catena_function& f = *step.function;
        std::vector<catena_var*> x = vars.x, y;
        const auto apart = [&](std::size_t i) {
            return (detail::input_flags(f, i) & CATENA_PORT_NON_DIFFERENTIABLE) != 0;
        };
        for (std::size_t i = 0; i < x.size(); ++i)
            if (x[i] != nullptr && apart(i)) x[i] = made(x[i]->array);
        std::vector<RecordedCall> tape;
        engine.ctx.tape = &tape;
        const std::uint64_t drawn = std::exchange(world_.drawn, step.drawn);
        need(engine.compose(x, y), [&] { return std::string("[") + f.name + "] compose: "; });
        world_.drawn = drawn;
        engine.ctx.tape = ctx_.tape;
        if (ctx_.tape != nullptr) ctx_.tape->insert(ctx_.tape->end(), tape.begin(), tape.end());
        Options plain;
        plain.train = options_.train;
        Propagation parts(world_, engine.ctx, plain);
        for (std::size_t i = 0; i < y.size(); ++i)
            if (vars.gy[i] != nullptr && detail::gives_gradient(f, i, y[i]->array))
                parts.add(y[i], vars.gy[i]);
        parts.run(tape);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const auto here = x.begin() + static_cast<std::ptrdiff_t>(i);
            const bool first = std::find(x.begin(), here, x[i]) == here;
            if (x[i] != nullptr && first && !apart(i)) vars.gx[i] = parts.gradient(x[i]);
        }
    }
    void of_kernel(Engine& engine, const RecordedCall& step, Vars& vars) {
        const catena_function& f = *step.function;
        if (!kernels_ || ctx_.tape != nullptr) throw Failure(CATENA_E_NOT_DIFFERENTIABLE, f.name);
        const Arrays gx =
            detail::backward(world_, f, arrays_of(vars), step.attrs.list(), options_, step.drawn);
        for (std::size_t i = 0; i < gx.size(); ++i)
            if (gx[i]) vars.gx[i] = engine.ctx.vars.emplace_back(new catena_var{gx[i]}).get();
    }

    World& world_;
    catena_ctx& ctx_;
    const Options& options_;
    const bool kernels_;
    std::map<const catena_var*, catena_var*> sums_;
};

}  // namespace

Arrays detail::shapes_of(World& world, const catena_function& f, const Arrays& x,
                         const Attrs& attrs, const Options& options, bool runs) {
    Engine engine(world, f, world.state().bind(f, attrs), options);
    const Arrays in = complete(f, x);
    const Metas metas = metas_of(in);
    if (f.infer != nullptr && !options.composition) {
        Arrays y;
        for (const catena_meta& m : inferred(f, engine.infer(metas)))
            y.push_back(Array::without_memory(dims_of(m), m.dtype));
        if (!runs || (f.flags & CATENA_FUNCTION_VIEW) != 0) return y;
        try {
            world.state().candidates(f, CATENA_PHASE_FORWARD, metas, metas_of(y), options);
            return y;
        } catch (const NoKernel&) {
            if (f.compose == nullptr) throw;
        }
    }
    check_types(f, metas, {});
    std::vector<catena_var*> y;
    Reply reply = engine.compose(engine.make({in}).x, y, true);
    need(reply, [&] { return std::string("[") + f.name + "] compose: "; });
    check_types(f, metas, metas_of(reply.results));
    return std::move(reply.results);
}

std::vector<catena_meta> World::infer(const std::string& name,
                                      const std::vector<std::optional<catena_meta>>& inputs,
                                      const Attrs& attrs) {
    Arrays x;
    for (const auto& m : inputs)
        x.push_back(m ? Array::without_memory(detail::dims_of(*m), m->dtype) : Array());
    return infer(name, x, attrs);
}
std::vector<catena_meta> World::infer(const std::string& name, const Arrays& inputs,
                                      const Attrs& attrs) {
    std::vector<catena_meta> result;
    for (const Array& y : detail::shapes_of(*this, function(name), inputs, attrs, {}))
        result.push_back(y.meta());
    return result;
}

Arrays World::forward(const std::string& name, const Arrays& inputs, const Attrs& attrs,
                      const Options& options) {
    const catena_function& f = function(name);
    Engine engine(*this, f, state_->bind(f, attrs), options);
    const Arrays x = detail::complete(f, inputs);
    const bool composes = f.compose != nullptr && options.kernel == nullptr;
    const bool has_kernels = state_->by_phase.contains({name, CATENA_PHASE_FORWARD});
    const bool tries_kernels = !composes || (!options.composition && has_kernels);
    Arrays shapes;
    if (tries_kernels || !options.within) shapes = detail::shapes_of(*this, f, x, attrs, {});
    for (const Array& y : shapes)
        if (static_cast<std::uint64_t>(y.size()) > options.most_bytes / (y.dtype().bits / 8))
            throw Failure(CATENA_E_NOMEM, std::string("[") + name +
                                              "] memory: expected less than for the shape " +
                                              plugin::text_of(y.shape()));
    if ((f.flags & CATENA_FUNCTION_VIEW) != 0) return {x[0].reshaped(shapes[0].shape())};
    const std::uint64_t start = drawn;
    Arrays results;
    bool done = false;
    if (tries_kernels) try {
            std::vector<catena_meta> y;
            for (const Array& a : shapes) y.push_back(a.meta());
            results = run_first(*this, f, CATENA_PHASE_FORWARD, detail::metas_of(x),
                                detail::metas_of(shapes), options,
                                [&](const catena_kernel& k) { return engine.forward(k, x, y); });
            done = true;
        } catch (const NoKernel&) {
            if (!composes) throw;
        }
    if (!done) results = run_composition(*this, f, engine, x, shapes, options);
    state_->began = start;
    return results;
}

Arrays World::backward(const std::string& name, const Arrays& inputs, const Arrays& outputs,
                       const Arrays& gy, const Attrs& attrs, const Options& options) {
    return detail::backward(*this, function(name), {inputs, outputs, gy}, attrs, options,
                            state_->began);
}
Arrays detail::backward(World& world, const catena_function& f, const Given& given,
                        const Attrs& attrs, const Options& options, std::uint64_t drawn) {
    const World::State& state = world.state();
    Engine engine(world, f, state.bind(f, attrs), options);
    const Metas in = complete(f, metas_of(given.x)), out = metas_of(given.y);
    return run_first(world, f, CATENA_PHASE_BACKWARD, in, out, options,
                     [&](const catena_kernel& k) {
                         return engine.backward(k, state.before(k, in, out), given, drawn);
                     });
}

Arrays World::gradient(const std::string& name, const Arrays& inputs, const Arrays& outputs,
                       const Arrays& gy, const Attrs& attrs, const Options& options) {
    const catena_function& f = function(name);
    const std::uint64_t began = state_->began;
    Engine engine(*this, f, state_->bind(f, attrs), options);
    const detail::Given given = {detail::complete(f, inputs), outputs, gy};
    const Vars vars = engine.make(given);
    const std::vector<catena_var*> gx =
        Propagation(*this, engine.ctx, options, false)
            .of_call({&f, OwnedAttrs(attrs), vars.x, vars.y, began}, vars.gy);
    state_->began = began;
    const std::vector<std::uint64_t> targets = engine.targets(given.x);
    Arrays result(given.x.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
        if ((targets[i / 64] >> i % 64 & 1) == 0) continue;
        result[i] = gx[i] != nullptr ? gx[i]->array : detail::zeros_like(given.x[i]);
        if (result[i].shape() != given.x[i].shape())
            throw Failure(CATENA_E_SHAPE, "gradient of input " + std::to_string(i) + ": expected " +
                                              plugin::text_of(given.x[i].shape()) + ", got " +
                                              plugin::text_of(result[i].shape()));
    }
    return result;
}

Arrays World::second(const std::string& name, const Arrays& inputs, const Arrays& outputs,
                     const Arrays& gy, const Arrays& ggx, const Attrs& attrs,
                     const Options& options) {
    const catena_function& f = function(name);
    const std::uint64_t began = state_->began;
    Engine engine(*this, f, state_->bind(f, attrs), options);
    const detail::Given given = {detail::complete(f, inputs), outputs, gy};
    const Vars vars = engine.make(given);
    std::vector<RecordedCall> tape = {{&f, OwnedAttrs(attrs), vars.x, vars.y, began}};
    engine.ctx.tape = &tape;
    const std::vector<catena_var*> gx =
        Propagation(*this, engine.ctx, options, false).of_call(RecordedCall(tape[0]), vars.gy);
    engine.ctx.tape = nullptr;
    Options plain;
    plain.train = options.train;
    Propagation second(*this, engine.ctx, plain);
    for (std::size_t i = 0; i < gx.size(); ++i)
        if (gx[i] != nullptr && i < ggx.size() && ggx[i])
            second.add(gx[i], engine.ctx.vars.emplace_back(new catena_var{ggx[i]}).get());
    second.run(tape);
    state_->began = began;
    Arrays result;
    const auto take = [&](const catena_var* var) {
        if (var == nullptr) return Array();
        const catena_var* const g = second.gradient(var);
        return g != nullptr ? g->array : detail::zeros_like(var->array);
    };
    for (std::size_t i = 0; i < vars.x.size(); ++i)
        result.push_back(detail::takes_gradient(f, i, given.x[i]) ? take(vars.x[i]) : Array());
    for (const catena_var* var : vars.gy) result.push_back(take(var));
    return result;
}

}  // namespace catena::testing
