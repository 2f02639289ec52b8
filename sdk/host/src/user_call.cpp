// UserCall: forward as apply() runs it, backward as the graph does.
#include "user_call.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace catena {
namespace {

bool has_elements(const ArrayBody& body) { return body.block || body.base; }
// Of the memory's owner: in-place writes count it up.
std::uint32_t version_of(const ArrayBody& body) {
    return body.base ? body.base->version : body.version;
}

[[noreturn]] void throw_written(const std::string& label, const char* method,
                                const std::string& what) {
    throw InvalidError(
        fmt::format("[{}] {}: expected {} to be unmodified, got an in-place change (+= changes an "
                    "array; x * 2 makes a new one)",
                    label, method, what));
}

void check_indexes(const std::string& label, const char* what,
                   const std::optional<std::vector<std::size_t>>& indexes, std::size_t n) {
    if (!indexes) return;
    for (const std::size_t i : *indexes) {
        if (i < n) continue;
        throw InvalidError(
            fmt::format("[{}] {}: expected indexes below {}, got {}", label, what, n, i));
    }
}

}  // namespace

// While it lives, forward() of the node may call retain_inputs() and retain_outputs(). When
// forward() runs again, what the graph retains stays as the first run said.
class UserCall::InForward {
public:
    explicit InForward(FunctionNode& node)
        : node_(node),
          again_(node.stage_ == FunctionNode::Stage::applied),
          inputs_(node.retained_inputs_),
          outputs_(node.retained_outputs_) {
        node_.stage_ = FunctionNode::Stage::forward;
    }
    InForward(const InForward&) = delete;
    InForward& operator=(const InForward&) = delete;
    ~InForward() {
        node_.stage_ = FunctionNode::Stage::applied;
        if (!again_) return;
        node_.retained_inputs_ = std::move(inputs_);
        node_.retained_outputs_ = std::move(outputs_);
    }

private:
    FunctionNode& node_;
    bool again_;
    std::optional<std::vector<std::size_t>> inputs_;
    std::optional<std::vector<std::size_t>> outputs_;
};

UserCall::UserCall(std::shared_ptr<FunctionNode> node)
    : node_(std::move(node)), train_(config().train) {}

UserCall::~UserCall() {
    if (node_) node_->call_ = nullptr;
}

const std::string& UserCall::name() const {
    if (name_.empty() && node_) name_ = node_->label();
    return name_;
}

std::string_view UserCall::label() const noexcept {
    try {
        return name();
    } catch (...) {  // from a label() of the user's
        return "function";
    }
}

std::vector<UserCall::Kept> UserCall::keep(const std::optional<std::vector<std::size_t>>& indexes,
                                           std::span<const Variable> from) {
    std::vector<Kept> kept;
    if (!indexes) return kept;
    for (const std::size_t i : *indexes) {
        const Variable& v = from[i];
        if (!v) kept.push_back({i, {}, 0, false});
        else kept.push_back({i, v.data(), version_of(*v.data().body()), v.requires_grad()});
    }
    return kept;
}

std::vector<Variable> UserCall::run(std::shared_ptr<FunctionNode> node,
                                    std::span<const Variable> inputs) {
    const Ref<GraphNode> owner(new UserCall(std::move(node)));
    auto& call = static_cast<UserCall&>(*owner);
    FunctionNode& function = *call.node_;
    std::vector<Array> x;
    SmallVector<const Variable*, 6> pointers;
    for (const Variable& input : inputs) {
        pointers.push_back(&input);
        x.push_back(input ? input.data() : Array());
        if (!input) continue;
        if (!has_elements(*x.back().body())) {
            throw GraphError(
                fmt::format("[{}] {}: expected data, got a variable without handles, of which the "
                            "graph kept only the shape",
                            call.name(), call.input_name(x.size() - 1)));
        }
        if (!call.device_) call.device_ = input.device();
    }
    if (!call.device_) call.device_ = Device::current();

    SmallVector<std::uint32_t, 6> versions;
    for (const Array& array : x) versions.push_back(array ? version_of(*array.body()) : 0);
    std::vector<Array> y;
    try {
        const InForward scope(function);
        const using_device device(call.device_);
        y = function.forward(x);
    } catch (const NanError& error) {  // in a function that forward calls
        throw NanError(fmt::format("{}\nin the forward of {}", error.what(), call.name()));
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] && version_of(*x[i].body()) != versions[i])
            throw_written(call.name(), "forward", fmt::format("inputs[{}]", i));
    }
    if (y.empty()) {
        throw InvalidError(
            fmt::format("[{}] forward: expected at least one output, got none", call.name()));
    }
    std::vector<Variable> outputs;
    for (std::size_t i = 0; i < y.size(); ++i) {
        if (!y[i]) {
            throw InvalidError(
                fmt::format("[{}] forward: {}: expected an array, got an empty handle", call.name(),
                            call.output_name(i)));
        }
        outputs.emplace_back(std::move(y[i]));
    }
    check_indexes(call.name(), "retain_inputs", function.retained_inputs_, inputs.size());
    check_indexes(call.name(), "retain_outputs", function.retained_outputs_, outputs.size());
    if (!call.record({pointers.data(), pointers.size()}, outputs)) return outputs;
    call.n_inputs_ = inputs.size();
    call.x_ = keep(function.retained_inputs_, inputs);
    call.y_ = keep(function.retained_outputs_, outputs);
    function.call_ = &call;
    return outputs;
}

std::vector<Array> UserCall::forward(std::span<const Array> inputs) const {
    if (!node_) {
        throw GraphError(fmt::format("[{}] forward: the graph was unchained here", name()));
    }
    const std::shared_ptr<FunctionNode> node = node_;
    if (inputs.size() != n_inputs_ && inputs.size() != node->n_given(n_inputs_)) {
        throw InvalidError(fmt::format("[{}] forward: expected {} inputs, got {}", name(),
                                       node->n_given(n_inputs_), inputs.size()));
    }
    const auto first =
        std::find_if(inputs.begin(), inputs.end(), [](const Array& x) { return bool(x); });
    const using_config train(&Config::train, train_);  // as the call was made
    const using_device device(first == inputs.end() ? device_ : first->device());
    const InForward scope(*node);
    return node->forward(inputs);
}

// Backward needs the graph, and the values that forward saw.
void UserCall::check_kept() const {
    if (!node_) {
        throw GraphError(fmt::format("[{}] backward: the graph was unchained here", name()));
    }
    if (const auto what = changed()) {
        throw GraphError(
            fmt::format("[{}] backward: expected {} as it was at the call, got one that was "
                        "written in place since; host<T>() is a write unless T is const",
                        name(), *what));
    }
}

std::optional<std::string> UserCall::changed() const {
    const auto is_changed = [](const Kept& kept) {
        return kept.array && version_of(*kept.array.body()) != kept.version;
    };
    for (const Kept& kept : x_) {
        if (is_changed(kept)) return input_name(kept.index);
    }
    for (const Kept& kept : y_) {
        if (is_changed(kept)) return output_name(kept.index);
    }
    return std::nullopt;
}

std::vector<Variable> UserCall::retained_inputs() {
    std::vector<Variable> result;
    for (const Kept& kept : x_) {
        if (!kept.array) {
            result.emplace_back();
            continue;
        }
        if (!config().enable_backprop) {
            result.push_back(as_variable(kept.array));
            continue;
        }
        VariableNode& node = *inputs_[kept.index];
        if (!has_elements(*node.data.body())) node.data = kept.array;
        if (node.data.body() != kept.array.body()) {
            throw GraphError(
                fmt::format("[{}] backward: the data of {} was replaced after the call", name(),
                            input_name(kept.index)));
        }
        result.emplace_back(inputs_[kept.index]);
    }
    return result;
}

std::vector<Variable> UserCall::retained_outputs() {
    std::vector<Variable> result;
    for (const Kept& kept : y_) {
        if (!config().enable_backprop) {
            result.push_back(as_variable(kept.array));
            continue;
        }
        if (VariableNode* node = outputs_[kept.index]) {
            if (!has_elements(*node->data.body())) node->data = kept.array;
            result.emplace_back(Ref<VariableNode>(node));
            continue;
        }
        // The user let it go: a new node takes its place in the graph.
        Ref<VariableNode> node(new VariableNode(kept.array));
        node->requires_grad = kept.requires_grad;
        node->creator = Ref<GraphNode>(this);
        node->output_index = static_cast<std::int32_t>(kept.index);
        outputs_[kept.index] = node.get();
        result.emplace_back(std::move(node));
    }
    return result;
}

void UserCall::check_gradient(std::size_t i, const Array& gradient) const {
    const Array& x = inputs_[i]->data;
    const auto say = [&](const std::string& expected, const std::string& got) {
        return fmt::format("[{}] backward: gradient of {}: expected {}, got {}", name(),
                           input_name(i), expected, got);
    };
    if (gradient.shape() != x.shape()) {
        throw ShapeError(
            say("shape " + to_string(x.shape()), "shape " + to_string(gradient.shape())));
    }
    if (gradient.dtype() != x.dtype()) {
        throw DtypeError(
            say(std::string(catena::name(x.dtype())), std::string(catena::name(gradient.dtype()))));
    }
    if (gradient.device() != x.device()) {
        throw DeviceError(say(x.device().name(), gradient.device().name()));
    }
}

// One for each input.
std::vector<Variable> UserCall::gradients(std::span<const Variable> gy) {
    check_kept();
    std::vector<std::size_t> targets;
    for (std::size_t i = 0; i < n_inputs_; ++i) {
        if (wants(i)) targets.push_back(i);
    }
    if (targets.empty() && n_inputs_ != 0) return {};
    const using_config train(&Config::train, train_);  // as the call was made
    const using_device device(device_);
    const std::shared_ptr<FunctionNode> keep = node_;
    SmallVector<std::uint32_t, 4> versions;
    for (const Variable& g : gy) versions.push_back(g ? version_of(*g.data().body()) : 0);
    std::vector<Variable> gx = keep->backward(targets, gy);
    for (std::size_t i = 0; i < gy.size(); ++i) {
        if (gy[i] && version_of(*gy[i].data().body()) != versions[i])
            throw_written(name(), "backward", fmt::format("grad_outputs[{}]", i));
    }
    if (const auto kept = changed()) throw_written(name(), "backward", *kept);
    if (gx.size() != n_inputs_) {
        if (gx.size() != targets.size()) {
            const std::string fewer =
                targets.size() == n_inputs_
                    ? ""
                    : fmt::format(" (one for each input) or {} (for each that wants one)",
                                  targets.size());
            throw InvalidError(fmt::format("[{}] backward: expected {} gradients{}, got {}", name(),
                                           n_inputs_, fewer, gx.size()));
        }
        std::vector<Variable> all(n_inputs_);
        for (std::size_t k = 0; k < targets.size(); ++k) all[targets[k]] = std::move(gx[k]);
        gx = std::move(all);
    }
    for (std::size_t i = 0; i < n_inputs_; ++i) {
        if (!gx[i]) continue;
        if (wants(i)) check_gradient(i, gx[i].data());
        else gx[i] = Variable();
    }
    return gx;
}

void UserCall::backward(std::span<const Array> gy) {
    const no_backprop_mode scope;
    std::vector<Variable> variables;
    for (const Array& array : gy) variables.push_back(array ? as_variable(array) : Variable());
    std::vector<Variable> gx = gradients(variables);
    variables.clear();
    for (std::size_t i = 0; i < gx.size(); ++i) {
        if (!gx[i]) continue;
        Array gradient = gx[i].data();
        gx[i] = Variable();  // who holds a gradient alone may write into it
        accumulate(*inputs_[i], std::move(gradient));
    }
}

void UserCall::backward(std::span<const Variable> gy) {
    const force_backprop_mode scope;
    const std::vector<Variable> gx = gradients(gy);
    for (std::size_t i = 0; i < gx.size(); ++i) {
        if (gx[i]) accumulate(*inputs_[i], gx[i]);
    }
}

void UserCall::unchain() {
    const Ref<GraphNode> keep(this);
    name();  // while there is a node to ask
    GraphNode::unchain();
    x_.clear();
    y_.clear();
    if (node_) node_->call_ = nullptr;
    node_.reset();
}

}  // namespace catena
