// World's calls: selects a kernel, runs it, and throws its violations.
#include <algorithm>
#include <functional>
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
    const detail::TypeVars vars(f);
    std::vector<std::string> row(vars.size(), "any");
    for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i]) row[vars.input(i)] = plugin::text_of(x[i]->dtype);
    for (std::size_t i = 0; i < y.size() && i < f.n_outputs; ++i)
        if (y[i]) row[vars.output(i)] = plugin::text_of(y[i]->dtype);
    std::string types;
    for (const std::string& dtype : row) types += (types.empty() ? "" : ",") + dtype;
    return detail::label_of(world, k, types) + ": ";
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
            throw Failure(CATENA_E_SHAPE,
                          std::string("[") + f.name + "] output: expected a shape, got none");
    return r.metas;
}

// Returns the results of the first kernel of a phase that serves the call, run by call(kernel).
template <class Call>
std::vector<Array> run_first(World& world, const catena_function& f, int phase,
                             const detail::Metas& x, const detail::Metas& y, const Options& options,
                             const Call& call) {
    world.threads = options.threads;
    for (const catena_kernel* k : world.state().candidates(f, phase, x, y, options)) {
        Reply reply = call(*k);
        if (!reply.served) continue;
        need(reply, [&] { return who(world, f, *k, x, y); });
        world.state().ran = world.origin(*k);
        return std::move(reply.results);
    }
    throw NoKernel(
        CATENA_E_UNSUPPORTED,
        std::string("[") + f.name + "] kernel: expected one that supports the call, got none");
}

// Computes the gradients by the function's grad_function.
void call_grad_function(World& world, const catena_function& f, Engine& engine,
                        const Engine::Vars& lent, const Attrs& attrs, Engine::Vars& vars) {
    std::vector<catena_var*> in;
    for (std::size_t i = 0; i < lent.x.size(); ++i)
        if (detail::retains(f.retain_x, i, f.n_inputs)) in.push_back(lent.x[i]);
    for (std::size_t i = 0; i < lent.y.size(); ++i)
        if ((f.retain_y >> i & 1) != 0) in.push_back(lent.y[i]);
    in.insert(in.end(), lent.gy.begin(), lent.gy.end());
    const catena_callable* g = nullptr;
    std::vector<catena_var*> out(world.function(f.grad_function).n_outputs);
    if (World::host().find(&engine.ctx, f.grad_function, &g) != CATENA_OK ||
        World::host().call(&engine.ctx, g, attrs.data(), static_cast<std::uint32_t>(attrs.size()),
                           in.data(), static_cast<std::uint32_t>(in.size()), out.data(),
                           static_cast<std::uint32_t>(out.size())) != CATENA_OK)
        throw Failure(CATENA_E_INTERNAL, engine.ctx.error);
    std::size_t next = 0;
    for (std::size_t i = 0; i < vars.gx.size() && next < out.size(); ++i)
        if ((detail::input_flags(f, i) & CATENA_PORT_NON_DIFFERENTIABLE) == 0)
            vars.gx[i] = out[next++];
}

void compose(World& world, const catena_function& f, Engine& engine, const detail::Given& given,
             const Attrs& attrs, Engine::Vars& vars) {
    if (f.grad_function != nullptr)
        return call_grad_function(world, f, engine, engine.lend(vars, given), attrs, vars);
    if (f.gradient == nullptr) throw Failure(CATENA_E_NOT_DIFFERENTIABLE, f.name);
    need(engine.gradient(given, vars), no_kernel);
}

}  // namespace

std::vector<catena_meta> World::infer(const std::string& name,
                                      const std::vector<std::optional<catena_meta>>& inputs,
                                      const Attrs& attrs) {
    const catena_function& f = function(name);
    Engine engine(*this, f, state_->bind(f, attrs), {});
    return inferred(f, engine.infer(detail::complete(f, inputs)));
}

std::vector<Array> World::forward(const std::string& name, const std::vector<Array>& inputs,
                                  const Attrs& attrs, const Options& options) {
    const catena_function& f = function(name);
    Engine engine(*this, f, state_->bind(f, attrs), options);
    const detail::Metas in = detail::complete(f, detail::metas_of(inputs));
    const std::vector<catena_meta> y = inferred(f, engine.infer(in));
    state_->began = drawn;
    if ((f.flags & CATENA_FUNCTION_VIEW) != 0) return {inputs[0].reshaped(detail::dims_of(y[0]))};
    return run_first(*this, f, CATENA_PHASE_FORWARD, in, {y.begin(), y.end()}, options,
                     [&](const catena_kernel& k) { return engine.forward(k, inputs, y); });
}

std::vector<Array> World::backward(const std::string& name, const std::vector<Array>& inputs,
                                   const std::vector<Array>& outputs, const std::vector<Array>& gy,
                                   const Attrs& attrs, const Options& options) {
    return detail::backward(*this, function(name), {inputs, outputs, gy}, attrs, options,
                            state_->began);
}
std::vector<Array> detail::backward(World& world, const catena_function& f, const Given& given,
                                    const Attrs& attrs, const Options& options,
                                    std::uint64_t drawn) {
    const World::State& state = world.state();
    Engine engine(world, f, state.bind(f, attrs), options);
    const Metas in = complete(f, metas_of(given.x)), out = metas_of(given.y);
    return run_first(world, f, CATENA_PHASE_BACKWARD, in, out, options,
                     [&](const catena_kernel& k) {
                         return engine.backward(k, state.before(k, in, out), given, drawn);
                     });
}

std::vector<Array> World::gradient(const std::string& name, const std::vector<Array>& inputs,
                                   const std::vector<Array>& outputs, const std::vector<Array>& gy,
                                   const Attrs& attrs, const Options& options) {
    const catena_function& f = function(name);
    Engine engine(*this, f, state_->bind(f, attrs), options);
    const detail::Given given = {detail::complete(f, inputs), outputs, gy};
    Engine::Vars vars = engine.make(given);
    compose(*this, f, engine, given, attrs, vars);
    const std::vector<std::uint64_t> targets = engine.targets(given.x);
    std::vector<Array> result(given.x.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
        if ((targets[i / 64] >> i % 64 & 1) == 0) continue;
        result[i] = vars.gx[i] != nullptr ? vars.gx[i]->array : detail::zeros_like(given.x[i]);
        if (result[i].shape() != given.x[i].shape())
            throw Failure(CATENA_E_SHAPE, "gradient of input " + std::to_string(i) + ": expected " +
                                              plugin::text_of(given.x[i].shape()) + ", got " +
                                              plugin::text_of(result[i].shape()));
    }
    return result;
}

// Propagates gradients backward over the recorded calls of the composition.
std::vector<Array> World::second(const std::string& name, const std::vector<Array>& inputs,
                                 const std::vector<Array>& outputs, const std::vector<Array>& gy,
                                 const std::vector<Array>& ggx, const Attrs& attrs,
                                 const Options& options) {
    const catena_function& f = function(name);
    Engine engine(*this, f, state_->bind(f, attrs), options);
    const detail::Given given = {detail::complete(f, inputs), outputs, gy};
    Engine::Vars vars = engine.make(given);
    std::vector<RecordedCall> tape = {{&f, OwnedAttrs(attrs), vars.x, vars.y}};
    engine.ctx.tape = &tape;
    compose(*this, f, engine, given, attrs, vars);

    std::map<const catena_var*, Array> gradients;
    const auto add = [&](const catena_var* var, const Array& g) {
        Array& sum = gradients[var];
        if (!sum) {
            sum = g;
            return;
        }
        std::vector<double> values = sum.numbers();
        const std::vector<double> more = g.numbers();
        std::transform(values.begin(), values.end(), more.begin(), values.begin(), std::plus());
        sum.set_numbers(values);
    };
    for (std::size_t i = 0; i < vars.gx.size(); ++i)
        if (vars.gx[i] != nullptr && i < ggx.size() && ggx[i]) add(vars.gx[i], ggx[i]);
    Options plain;
    plain.train = options.train;
    const auto arrays = [](const std::vector<catena_var*>& list) {
        std::vector<Array> result;
        for (const catena_var* v : list) result.push_back(v != nullptr ? v->array : Array());
        return result;
    };
    for (std::size_t s = tape.size(); s-- > 0;) {
        const RecordedCall& step = tape[s];
        const catena_function& g = *step.function;
        if ((g.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) != 0) continue;
        std::vector<Array> step_gy(step.y.size());
        bool any = false;
        for (std::size_t i = 0; i < step.y.size(); ++i) {
            const auto found = gradients.find(step.y[i]);
            if (found == gradients.end() || !detail::gives_gradient(g, i, step.y[i]->array))
                continue;
            step_gy[i] = found->second;
            any = true;
        }
        if (!any) continue;
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
    for (std::size_t i = 0; i < vars.x.size(); ++i)
        result.push_back(detail::takes_gradient(f, i, given.x[i]) ? take(vars.x[i]) : Array());
    for (const catena_var* var : vars.gy) result.push_back(take(var));
    return result;
}

}  // namespace catena::testing
