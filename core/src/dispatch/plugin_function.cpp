// Handles of functions: found by name, bound to attributes, called.
#include <catena/core/plugin_function.hpp>

#include "dispatch/dispatch.hpp"

#include <algorithm>

namespace catena {

PluginFunction::PluginFunction(std::string_view name, std::span<const Attribute> attributes)
    : PluginFunction(Registry::get().require(name), attributes) {}
PluginFunction::PluginFunction(FunctionEntry& entry, std::span<const Attribute> attributes)
    : entry_(&entry) {
    if (attributes.empty() && entry_->defaults) attributes_ = entry_->defaults;
    else attributes_ = BoundAttributes::make(entry_->descriptor, attributes);
}
PluginFunction::PluginFunction(const PluginFunction& other) noexcept
    : entry_(other.entry_), attributes_(other.attributes_) {
    attributes_->retain();
}
PluginFunction& PluginFunction::operator=(const PluginFunction& other) noexcept {
    other.attributes_->retain();
    attributes_->release();
    entry_ = other.entry_;
    attributes_ = other.attributes_;
    return *this;
}
PluginFunction::~PluginFunction() { attributes_->release(); }

PluginFunction PluginFunction::with(std::initializer_list<Attribute> attributes) const {
    return {*entry_, std::span(attributes.begin(), attributes.size())};
}

std::string_view PluginFunction::name() const noexcept { return entry_->descriptor.name; }
const catena_function& PluginFunction::descriptor() const noexcept { return entry_->descriptor; }

namespace {

template <class T>
std::vector<T> to_vector(SmallVector<T, 2>&& values) {
    return {std::make_move_iterator(values.begin()), std::make_move_iterator(values.end())};
}

}  // namespace

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

Variable PluginFunction::first(std::span<const Variable* const> inputs) const {
    require_output();
    return std::move(call_function(*entry_, *attributes_, inputs)[0]);
}

Array PluginFunction::first(std::span<const Array> inputs) const {
    require_output();
    return std::move(forward_arrays(*entry_, *attributes_, inputs).y[0]);
}

Variable PluginFunction::only(std::span<const Variable* const> inputs) const {
    const std::size_t i = only_output();
    return std::move(call_function(*entry_, *attributes_, inputs)[i]);
}

Array PluginFunction::only(std::span<const Array> inputs) const {
    const std::size_t i = only_output();
    return std::move(forward_arrays(*entry_, *attributes_, inputs).y[i]);
}

void PluginFunction::require_output() const {
    if (entry_->descriptor.n_outputs) return;
    raise<InvalidError>("[{}] first(): expected an output, it has none", name());
}

// The index of the output that is not hidden.
std::size_t PluginFunction::only_output() const {
    const catena_function& d = entry_->descriptor;
    const auto hidden = [](const catena_port_spec* port) {
        return port->flags & CATENA_PORT_HIDDEN;
    };
    const std::span outputs(d.outputs, d.n_outputs);
    const auto n =
        outputs.size() - static_cast<std::size_t>(std::ranges::count_if(outputs, hidden));
    if (n == 1)
        return static_cast<std::size_t>(std::ranges::find_if_not(outputs, hidden) -
                                        outputs.begin());
    raise<InvalidError>(
        "[{}] call: expected a function of one output, got one of {}: use f({{&x, ...}}) or "
        "forward()",
        name(), n);
}

}  // namespace catena
