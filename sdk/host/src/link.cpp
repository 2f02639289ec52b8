// Link: everything that follows from a link's visit().
#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/link.hpp>

#include <fmt/format.h>

#include <map>
#include <utility>

namespace catena {
namespace {

class Collector final : public Visitor {
public:
    std::vector<NamedParameter> found;

private:
    void parameter(const std::string& path, Variable& value) override {
        found.push_back({path, value});
    }
};

// Arrays by what they become: those that were one stay one.
class Replaced {
public:
    template <class Make>
    const Array& operator()(const Array& original, const Make& make) {
        const auto [place, is_new] = known_.try_emplace(original.body(), original, Array());
        if (is_new) place->second.second = make();
        return place->second.second;
    }

private:
    std::map<const ArrayBody*, std::pair<Array, Array>> known_;  // the first keeps the key's life
};

class Mover final : public Visitor {
public:
    explicit Mover(Device device) : device_(device) {}

private:
    void parameter(const std::string&, Variable& value) override {
        const Array grad = value.grad();
        value.set_data(value.data().to(device_));
        if (grad && !value.grad()) value.set_grad(grad.to(device_));
    }
    void array(const std::string&, Array& value) override {
        value = replaced_(value, [&] { return value.to(device_); });
    }

    Device device_;
    Replaced replaced_;
};

class Unsharer final : public Visitor {
private:
    void parameter(const std::string&, Variable& value) override {
        Variable& copy = copies_[&value.node()];  // tied parameters stay tied
        if (!copy) copy = copy_of(value);
        value = copy;
    }
    void array(const std::string&, Array& value) override {
        value = replaced_(value, [&] { return value.copy(); });
    }
    static Variable copy_of(const Variable& value) {
        Variable copy(value.data().copy(), value.is_volatile());
        copy.node().is_parameter = value.node().is_parameter;
        copy.set_requires_grad(value.requires_grad());
        if (!value.name().empty()) copy.set_name(value.name());
        return copy;
    }

    std::map<const VariableNode*, Variable> copies_;
    Replaced replaced_;
};

void require_same_number(std::string_view what, std::size_t expected, std::size_t got) {
    if (expected != got) {
        throw ShapeError(fmt::format("[{}] parameters: expected {}, got {}", what, expected, got));
    }
}

void require_same(std::string_view what, const NamedParameter& parameter, const Array& got) {
    const Array& data = parameter.variable.data();
    if (data.shape() == got.shape() && data.dtype() == got.dtype()) return;
    throw ShapeError(fmt::format("[{}] {}: expected {} {}, got {} {}", what, parameter.name,
                                 to_string(data.shape()), name(data.dtype()),
                                 to_string(got.shape()), name(got.dtype())));
}

}  // namespace

Variable Link::operator()(const Variable&) {
    throw UnsupportedError("[Link] call: expected a link that takes one variable, got another");
}

std::vector<NamedParameter> Link::collect_parameters() const {
    Collector collector;
    // Sound: the collector copies handles and writes nothing.
    const_cast<Link*>(this)->visit(collector);
    return std::move(collector.found);
}

std::vector<Variable> Link::parameters() const {
    std::vector<Variable> result;
    for (auto& parameter : collect_parameters()) result.push_back(std::move(parameter.variable));
    return result;
}

std::vector<Array> Link::gradients() const {
    std::vector<Array> result;
    for (const auto& variable : parameters()) result.push_back(variable.grad());
    return result;
}

std::int64_t Link::count_parameters() const {
    std::int64_t count = 0;
    for (const auto& variable : parameters()) count += variable.size();
    return count;
}

void Link::cleargrads() const {
    for (const auto& variable : parameters()) variable.cleargrad();
}

void Link::zerograds() const {
    for (const auto& variable : parameters()) variable.zerograd();
}

void Link::add_gradients(const Link& source) const {
    const auto targets = collect_parameters();
    const auto gradients = source.gradients();
    require_same_number("add_gradients", targets.size(), gradients.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (gradients[i]) require_same("add_gradients", targets[i], gradients[i]);
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const Variable& to = targets[i].variable;
        if (gradients[i]) accumulate(to.node(), gradients[i].to(to.device()).copy());
    }
}

void Link::copy_parameters_from(const Link& source) const {
    const auto variables = source.parameters();
    copy_parameters_from(variables);
}

void Link::copy_parameters_from(std::span<const Variable> source) const {
    const auto targets = collect_parameters();
    require_same_number("copy_parameters_from", targets.size(), source.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
        require_same("copy_parameters_from", targets[i], source[i].data());
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
        targets[i].variable.data().copy_from(source[i].data());
    }
}

void Link::to(Device device) {
    for (const auto& [path, variable] : collect_parameters()) {
        if (variable.device() == device || !variable.node().in_graph()) continue;
        throw GraphError(fmt::format(
            "[to] {}: expected a parameter that no graph refers to, got one in use", path));
    }
    Mover mover(device);
    visit(mover);
}

void Link::unshare() {
    Unsharer unsharer;
    visit(unsharer);
}

}  // namespace catena
