// Runs of compositions, also without computing, for shapes.
#include <algorithm>
#include <cstring>

#include "testing/engine.hpp"
#include "testing/state.hpp"

namespace catena::testing::detail {
namespace {

thread_local constinit catena_ctx* running = nullptr;  // the innermost composition

// Makes a context that of a composition. Throws a Failure if the function is running already.
class Composing {
public:
    Composing(catena_ctx& ctx, const catena_function& f, const std::vector<catena_var*>& x,
              const Options& options, bool shapes)
        : before_(running) {
        std::string chain = f.name;
        for (const catena_ctx* at = running; at != nullptr; at = at->outer) {
            chain = std::string(at->composes->name) + " > " + chain;
            if (std::strcmp(at->composes->name, f.name) == 0)
                refuse(f, CATENA_E_INVALID, "compose", "calls that do not lead back to it", chain);
        }
        ctx.composes = &f;
        ctx.x = x;
        ctx.options = &options;
        ctx.shapes = shapes;
        ctx.outer = running;
        running = &ctx;
    }
    Composing(const Composing&) = delete;
    Composing& operator=(const Composing&) = delete;
    ~Composing() {
        running->composes = nullptr;
        running->options = nullptr;
        running = before_;
    }

private:
    catena_ctx* before_;
};

}  // namespace

Reply Engine::compose(const std::vector<catena_var*>& x, std::vector<catena_var*>& y, bool shapes) {
    Ground ground(placement);
    Reply reply;
    y.assign(f_.n_outputs, nullptr);
    begin_variables();
    catena_var** results = ground.writable_list(y);
    const catena_compose_call* call = ground.lend(catena_compose_call{
        0, (options_.train ? +CATENA_CALL_TRAIN : 0u) | options_.flags, &f_, attributes(ground),
        static_cast<std::uint32_t>(x.size()), f_.n_outputs, ground.list(handles(x)), results});
    const std::size_t first = ctx.vars.size();
    {
        const Composing scope(ctx, f_, x, options_, shapes);
        enter(reply, Step::compose, true, [&](catena_ctx* c) { return f_.compose(c, call); });
    }
    if (reply.status != CATENA_OK || !reply.thrown.empty()) return reply;
    for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] = watch != nullptr && results[i] != nullptr ? watch->variable(results[i]) : results[i];
        const bool own =
            std::any_of(ctx.vars.begin() + static_cast<std::ptrdiff_t>(first), ctx.vars.end(),
                        [&](const auto& v) { return v.get() == y[i]; });
        if (!own) {
            if (reply.misuse.empty())
                reply.misuse = std::string(f_.outputs[i]->name) +
                               ": expected a result of one of its calls, got " +
                               (results[i] == nullptr ? "none" : "another variable");
            return reply;
        }
        reply.results.push_back(y[i]->array);
    }
    return reply;
}

Reply Engine::shapes(const Arrays& x, int before) {
    if (f_.infer != nullptr) return infer(metas_of(x), before);
    std::vector<catena_var*> y;
    Reply reply = compose(make({x}).x, y, true);
    for (const Array& a : std::exchange(reply.results, {})) reply.metas.push_back(a.meta());
    return reply;
}

}  // namespace catena::testing::detail
