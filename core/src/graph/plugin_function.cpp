// PluginFunction: handles of functions.
#include "graph/call.hpp"

namespace catena {
namespace {

template <class T>
std::vector<T> to_vector(SmallVector<T, 2>&& values) {
    return {std::make_move_iterator(values.begin()), std::make_move_iterator(values.end())};
}

}  // namespace

PluginFunction::PluginFunction(std::string_view name, std::span<const Attribute> attributes)
    : PluginFunction(Registry::get().require(name), attributes) {}
PluginFunction::PluginFunction(FunctionEntry& entry, std::span<const Attribute> attributes)
    : entry_(&entry), attributes_(BoundAttributes::make(entry, attributes)) {}
PluginFunction::PluginFunction(const PluginFunction& other) noexcept = default;
PluginFunction& PluginFunction::operator=(const PluginFunction& other) noexcept = default;
PluginFunction::~PluginFunction() = default;

PluginFunction PluginFunction::with(std::initializer_list<Attribute> attributes) const {
    return with(std::span(attributes.begin(), attributes.size()));
}
PluginFunction PluginFunction::with(std::span<const Attribute> attributes) const {
    return {*entry_, attributes};
}

std::string_view PluginFunction::name() const noexcept { return entry_->descriptor.name; }
const catena_function& PluginFunction::descriptor() const noexcept { return entry_->descriptor; }

std::vector<Variable> PluginFunction::operator()(std::span<const Variable* const> inputs) const {
    return to_vector(call_function(*entry_, *attributes_, inputs));
}

std::vector<Array> PluginFunction::forward(std::span<const Array> inputs) const {
    return to_vector(forward_arrays(*entry_, *attributes_, inputs).y);
}

void PluginFunction::forward(std::span<const Array> inputs, std::span<Array> outputs) const {
    SmallVector<Array, 2> y = forward_arrays(*entry_, *attributes_, inputs).y;
    for (std::size_t i = 0; i < std::min(outputs.size(), y.size()); ++i)
        outputs[i] = std::move(y[i]);
}

Variable PluginFunction::call(std::span<const Variable* const> inputs, std::size_t output) const {
    return std::move(call_function(*entry_, *attributes_, inputs)[output]);
}

Array PluginFunction::call(std::span<const Array> inputs, std::size_t output) const {
    return std::move(forward_arrays(*entry_, *attributes_, inputs).y[output]);
}

std::size_t PluginFunction::first_output() const {
    if (entry_->descriptor.n_outputs) return 0;
    raise<InvalidError>("[{}] first(): expected an output, it has none", name());
}

std::size_t PluginFunction::only_output() const {
    const catena_function& d = entry_->descriptor;
    std::size_t n = 0, last = 0;
    for (std::size_t i = 0; i < d.n_outputs; ++i) {
        if (d.outputs[i]->flags & CATENA_PORT_HIDDEN) continue;
        ++n;
        last = i;
    }
    if (n == 1) return last;
    raise<InvalidError>(
        "[{}] call: expected a function of one output, got one of {}: use f({{&x, ...}}) or "
        "forward()",
        name(), n);
}

std::vector<Array> PluginFunction::infer(std::span<const Array> inputs) const {
    return to_vector(infer_arrays(*entry_, *attributes_, inputs));
}

}  // namespace catena
