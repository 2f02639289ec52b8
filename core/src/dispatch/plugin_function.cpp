// Handles of functions: found by name, bound to attributes, called.
#include <catena/core/plugin_function.hpp>

#include "dispatch/dispatch.hpp"
#include "dispatch/dispatch_errors.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

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

std::vector<Variable> PluginFunction::operator()(std::span<const Variable* const> inputs) const {
    CallResult result;
    call_function(*entry_, *attributes_, inputs, result);
    return {std::make_move_iterator(result.y.begin()), std::make_move_iterator(result.y.end())};
}

Variable PluginFunction::first(std::span<const Variable* const> inputs) const {
    CallResult result;
    call_function(*entry_, *attributes_, inputs, result);
    if (result.y.empty()) {
        throw InvalidError(fmt::format("[{}] first(): expected an output, it has none", name()));
    }
    return std::move(result.y[0]);
}

// The index of the output that is not hidden.
std::size_t PluginFunction::only_output() const {
    const catena_function& d = entry_->descriptor;
    std::size_t found = d.n_outputs;
    std::size_t n = 0;
    for (std::uint32_t i = d.n_outputs; i-- > 0;) {
        if (d.outputs[i]->flags & CATENA_PORT_HIDDEN) continue;
        found = i;
        ++n;
    }
    if (n == 1) return found;
    throw InvalidError(
        fmt::format("[{}] call: expected a function of one output, got one of {}: use f({{&x, "
                    "...}}) or forward()",
                    name(), n));
}

Variable PluginFunction::only(std::span<const Variable* const> inputs) const {
    const std::size_t i = only_output();
    CallResult result;
    call_function(*entry_, *attributes_, inputs, result);
    return std::move(result.y[i]);
}

Array PluginFunction::only(std::span<const Array> inputs) const {
    const std::size_t i = only_output();
    return std::move(forward(inputs)[i]);
}

std::vector<Array> PluginFunction::forward(std::span<const Array> inputs) const {
    return forward_arrays(*entry_, *attributes_, inputs);
}

std::vector<Array> forward_arrays(FunctionEntry& function, const BoundAttributes& attributes,
                                  std::span<const Array> inputs) {
    check_arity(function, inputs.size());
    SmallVector<ArrayBody*, 6> x;
    for (const Array& input : inputs) x.push_back(input.body());
    while (x.size() < function.descriptor.n_inputs) x.push_back(nullptr);
    SmallVector<Array, 6> numbers;
    const bool any_bool = std::ranges::any_of(inputs, [](const Array& input) {
        return input && input.body()->meta.dtype.code == CATENA_CODE_BOOL;
    });
    if (any_bool && masks_as_numbers(function, {x.data(), x.size()}, numbers)) [[unlikely]] {
        for (std::size_t i = 0; i < x.size(); ++i)
            if (numbers[i]) x[i] = numbers[i].body();
    }
    ForwardResult result;
    run_forward(function, attributes, std::span(x.data(), x.size()), config(), false, result);
    if (config().debug) {
        check_forward(function, {x.data(), x.size()}, {result.y.data(), result.y.size()});
    }
    return {std::make_move_iterator(result.y.begin()), std::make_move_iterator(result.y.end())};
}

}  // namespace catena
