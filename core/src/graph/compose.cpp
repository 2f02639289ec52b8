// Functions that are compositions of functions.
#include "graph/call.hpp"

#include <within.hpp>

namespace catena {

thread_local constinit const CallGroup* current_group = nullptr;
const CallGroup* running_group() noexcept { return current_group; }

namespace {

thread_local constinit Composition* running = nullptr;

// Throws InvalidError if the function is running already.
void check_recursion(const FunctionEntry& f) {
    const Composition* same = running;
    while (same && &same->function != &f) same = same->outer;
    if (!same) return;
    std::string chain = f.descriptor.name;
    for (const Composition* at = running; at != same->outer; at = at->outer)
        chain = fmt::format("{} > {}", at->function.descriptor.name, chain);
    raise<InvalidError>("[{}] compose: expected calls that do not lead back to it, got {}",
                        f.descriptor.name, chain);
}

class Copy final : public GraphNode {
public:
    Variable of(const Variable& x) {
        const Variable y(x.data());
        const Variable* const inputs[] = {&x};
        record(inputs, {&y, 1});
        return y;
    }
    std::string_view label() const noexcept override { return "copy"; }

private:
    void gradients(std::span<const Variable> gy, std::span<const bool>,
                   std::span<Variable> gx) override {
        gx[0] = gy[0];
    }
};

}  // namespace

Variable copy_in_graph(const Variable& x) { return Ref(new Copy)->of(x); }

void throw_within(const Composition& c, const FunctionEntry& callee,
                  std::span<const Variable* const> x, const Error& error) {
    const bool other = dynamic_cast<const PluginError*>(&error) ||
                       dynamic_cast<const GraphError*>(&error) ||
                       dynamic_cast<const NanError*>(&error);
    if (other) throw;
    InputNames names;
    for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t k = 0; *x[i] && k < c.x.size(); ++k) {
            if (handle(c.x[k]) == handle(x[i]))
                names.emplace_back(callee.input_name(i), c.function.input_name(k));
        }
    }
    const std::string text =
        within(c.function.descriptor.name, callee.descriptor.name, error.what(), names);
    if (text.empty()) throw;
    throw_status(error.status(), text);
}

Results compose(FunctionEntry& f, const BoundAttributes& attributes,
                std::span<const Variable* const> x, DeviceState& device, std::uint32_t flags) {
    const catena_function& d = f.descriptor;
    if (running) check_recursion(f);
    const Ref<const CallGroup> group(new CallGroup(d.name, current_group));
    Composition composition{f, x, running, {}, {}};
    const using_value scope(running, &composition);
    const using_value group_scope(current_group, group.get());
    SmallVector<catena_var*, 6> inputs;
    SmallVector<catena_var*, 3> outputs(d.n_outputs, nullptr);
    for (const Variable* v : x) inputs.push_back(handle(v));
    catena_ctx ctx;
    ctx.device = &device;
    ctx.variables = &composition.made;
    ctx.composition = &composition;
    const catena_compose_call call{.struct_size = sizeof(catena_compose_call),
                                   .flags = flags,
                                   .function = &d,
                                   .attrs = attributes.values(),
                                   .n_x = static_cast<std::uint32_t>(x.size()),
                                   .n_y = d.n_outputs,
                                   .x = inputs.data(),
                                   .y = outputs.data()};
    const catena_status status = d.compose(&ctx, &call);
    if (status != CATENA_OK) throw_failure(ctx, status, d.name);
    Results results;
    for (std::uint32_t i = 0; i < d.n_outputs; ++i) {
        const auto found = std::ranges::find(composition.made, outputs[i],
                                             [](const Variable& v) { return handle(&v); });
        if (!outputs[i] || found == composition.made.end()) {
            if (ctx.status != CATENA_OK) throw_failure(ctx, ctx.status, d.name);
            raise<InternalError>("[{}] compose: {}: expected a result of one of its calls, got {}",
                                 d.name, d.outputs[i]->name,
                                 outputs[i] ? "another variable" : "none");
        }
        results.push_back(*found);
    }
    return results;
}

}  // namespace catena
