// FunctionNode: what its author calls; and the graph's node of such a call.
#include "support.hpp"

#include <catena/function_node.hpp>

#include <catena/core/config.hpp>
#include <catena/core/graph.hpp>

#include <algorithm>

namespace catena {
namespace {

// Of the memory's owner: in-place writes count it up.
std::uint32_t version_of(const ArrayBody& body) {
    return body.base ? body.base->version : body.version;
}

std::vector<std::uint32_t> versions_of(std::span<const Array> arrays) {
    std::vector<std::uint32_t> versions;
    for (const Array& array : arrays) versions.push_back(array ? version_of(*array.body()) : 0);
    return versions;
}

std::span<const std::size_t> or_none(const std::optional<std::vector<std::size_t>>& indexes) {
    return indexes ? std::span<const std::size_t>(*indexes) : std::span<const std::size_t>();
}

void check_indexes(const std::string& label, const char* what,
                   const std::optional<std::vector<std::size_t>>& indexes, std::size_t n) {
    for (const std::size_t i : or_none(indexes)) {
        if (i < n) continue;
        fail<InvalidError>("[{}] {}: expected indexes below {}, got {}", label, what, n, i);
    }
}

}  // namespace

// Runs forward as apply() does, and backward as the graph does.
class UserCall final : public GraphNode {
public:
    // Runs the node's forward and makes its call part of the graph.
    static std::vector<Variable> run(std::shared_ptr<FunctionNode> node,
                                     std::span<const Variable> inputs);
    ~UserCall() override;

    std::string_view label() const noexcept override;
    std::vector<Array> forward(std::span<const Array> inputs) const override;
    void unchain() override;

    using GraphNode::retained_input, GraphNode::retained_output;

private:
    explicit UserCall(std::shared_ptr<FunctionNode> node);
    const std::string& name() const;
    static std::vector<Array> run_forward(FunctionNode& node, std::span<const Array> inputs);
    std::vector<Variable> compute(std::span<const Array> x);
    void gradients(std::span<const Variable> gy, std::span<const bool> wanted,
                   std::span<Variable> gx) override;
    [[noreturn]] void throw_written(const char* method, const std::string& what) const;
    void check_versions(std::span<const Array> arrays, std::span<const std::uint32_t> versions,
                        const char* method, const char* what) const;

    std::shared_ptr<FunctionNode> node_;
    mutable std::string name_;  // once asked for
    Device device_;
    bool train_;
};

// Runs forward() of the node, which may call retain_inputs() and retain_outputs(). When it runs
// again, what the graph retains stays as the first run said.
std::vector<Array> UserCall::run_forward(FunctionNode& node, std::span<const Array> inputs) {
    const bool again = node.stage_ == FunctionNode::Stage::applied;
    const OnExit restore{
        [&, kept_inputs = node.retained_inputs_, kept_outputs = node.retained_outputs_]() mutable {
            node.stage_ = FunctionNode::Stage::applied;
            if (!again) return;
            node.retained_inputs_ = std::move(kept_inputs);
            node.retained_outputs_ = std::move(kept_outputs);
        }};
    node.stage_ = FunctionNode::Stage::forward;
    return node.forward(inputs);
}

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

std::vector<Variable> UserCall::run(std::shared_ptr<FunctionNode> node,
                                    std::span<const Variable> inputs) {
    const Ref<GraphNode> owner(new UserCall(std::move(node)));
    auto& call = static_cast<UserCall&>(*owner);
    FunctionNode& function = *call.node_;
    call.check_data(inputs);
    std::vector<Array> x;
    SmallVector<const Variable*, 6> pointers;
    for (const Variable& input : inputs) {
        pointers.push_back(&input);
        x.push_back(input ? input.data() : Array());
        if (input && !call.device_) call.device_ = input.device();
    }
    if (!call.device_) call.device_ = Device::current();
    const std::vector<Variable> outputs = call.compute(x);
    check_indexes(call.name(), "retain_inputs", function.retained_inputs_, inputs.size());
    check_indexes(call.name(), "retain_outputs", function.retained_outputs_, outputs.size());
    if (!call.record({pointers.data(), pointers.size()}, outputs)) return outputs;
    for (const std::size_t i : or_none(function.retained_inputs_)) call.retain_input(i, inputs[i]);
    for (const std::size_t i : or_none(function.retained_outputs_))
        call.retain_output(i, outputs[i]);
    function.call_ = &call;
    return outputs;
}

// Forward, and what it must not do.
std::vector<Variable> UserCall::compute(std::span<const Array> x) {
    const std::vector<std::uint32_t> versions = versions_of(x);
    std::vector<Array> y;
    try {
        const using_device device(device_);
        y = run_forward(*node_, x);
    } catch (const NanError& error) {  // in a function that forward calls
        fail<NanError>("{}\nin the forward of {}", error.what(), name());
    }
    check_versions(x, versions, "forward", "inputs");
    if (y.empty())
        fail<InvalidError>("[{}] forward: expected at least one output, got none", name());
    std::vector<Variable> outputs;
    for (std::size_t i = 0; i < y.size(); ++i) {
        if (!y[i])
            fail<InvalidError>("[{}] forward: {}: expected an array, got an empty handle", name(),
                               output_name(i));
        outputs.emplace_back(std::move(y[i]));
    }
    return outputs;
}

std::vector<Array> UserCall::forward(std::span<const Array> given) const {
    if (!node_) fail<GraphError>("[{}] forward: the graph was unchained here", name());
    const std::shared_ptr<FunctionNode> node = node_;
    const std::size_t n = inputs().size();
    if (given.size() != n && given.size() != node->n_given(n))
        fail<InvalidError>("[{}] forward: expected {} inputs, got {}", name(), node->n_given(n),
                           given.size());
    const auto first =
        std::find_if(given.begin(), given.end(), [](const Array& x) { return bool(x); });
    const using_config train(&Config::train, train_);  // as the call was made
    const using_device device(first == given.end() ? device_ : first->device());
    return run_forward(*node, given);
}

void UserCall::gradients(std::span<const Variable> gy, std::span<const bool> wanted,
                         std::span<Variable> gx) {
    std::vector<std::size_t> targets;
    for (std::size_t i = 0; i < wanted.size(); ++i)
        if (wanted[i]) targets.push_back(i);
    const using_config train(&Config::train, train_);  // as the call was made
    const using_device device(device_);
    const std::shared_ptr<FunctionNode> keep = node_;
    std::vector<Array> arrays;
    for (const Variable& g : gy) arrays.push_back(g ? g.data() : Array());
    const std::vector<std::uint32_t> versions = versions_of(arrays);
    std::vector<Variable> found = keep->backward(targets, gy);
    check_versions(arrays, versions, "backward", "grad_outputs");
    if (const std::string what = changed(); !what.empty()) throw_written("backward", what);
    if (found.size() == gx.size()) {
        std::ranges::move(found, gx.begin());
        return;
    }
    if (found.size() != targets.size()) {
        const std::string fewer =
            targets.size() == gx.size()
                ? ""
                : fmt::format(" (one for each input) or {} (for each that wants one)",
                              targets.size());
        fail<InvalidError>("[{}] backward: expected {} gradients{}, got {}", name(), gx.size(),
                           fewer, found.size());
    }
    for (std::size_t k = 0; k < targets.size(); ++k) gx[targets[k]] = std::move(found[k]);
}

void UserCall::throw_written(const char* method, const std::string& what) const {
    fail<InvalidError>(
        "[{}] {}: expected {} to be unmodified, got an in-place change (+= changes an array; x * 2 "
        "makes a new one)",
        name(), method, what);
}

void UserCall::check_versions(std::span<const Array> arrays,
                              std::span<const std::uint32_t> versions, const char* method,
                              const char* what) const {
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        if (arrays[i] && version_of(*arrays[i].body()) != versions[i])
            throw_written(method, fmt::format("{}[{}]", what, i));
    }
}

void UserCall::unchain() {
    const Ref<GraphNode> keep(this);
    name();  // while there is a node to ask
    GraphNode::unchain();
    if (node_) node_->call_ = nullptr;
    node_.reset();
}

std::vector<Variable> FunctionNode::apply(VariableList inputs) {
    std::shared_ptr<FunctionNode> self = weak_from_this().lock();
    if (!self)
        fail<InvalidError>(
            "[{}] apply: expected a node in a std::shared_ptr, which apply<>() makes, got one "
            "outside",
            label());
    if (stage_ != Stage::fresh)
        fail<GraphError>(
            "[{}] apply: expected a new node for each call, got one that was applied before",
            label());
    return UserCall::run(std::move(self), inputs.view());
}

Arrays FunctionNode::forward(ArraySpan inputs) {
    return any_on_gpu(inputs) ? forward_gpu(inputs) : forward_cpu(inputs);
}
Arrays FunctionNode::forward_cpu(ArraySpan) { throw_missing("cpu"); }
Arrays FunctionNode::forward_gpu(ArraySpan) { throw_missing("gpu"); }

Variables FunctionNode::backward(Targets target_input_indexes, VariableSpan) {
    return Variables(target_input_indexes.size());
}

void FunctionNode::retain_inputs(std::vector<std::size_t> indexes) {
    if (stage_ != Stage::forward)
        fail<InvalidError>("[{}] retain_inputs: only within forward()", label());
    retained_inputs_ = std::move(indexes);
}

void FunctionNode::retain_outputs(std::vector<std::size_t> indexes) {
    if (stage_ != Stage::forward)
        fail<InvalidError>("[{}] retain_outputs: only within forward()", label());
    retained_outputs_ = std::move(indexes);
}

void FunctionNode::check_retained(const char* what, bool said) const {
    if (!call_) fail<GraphError>("[{}] get_retained_{}: only within backward()", label(), what);
    if (!said)
        fail<GraphError>("[{}] get_retained_{}: expected retain_{}() in forward(), got none",
                         label(), what, what);
}

std::vector<Variable> FunctionNode::get_retained_inputs() const {
    check_retained("inputs", retained_inputs_.has_value());
    std::vector<Variable> result;
    for (const std::size_t i : *retained_inputs_) result.push_back(call_->retained_input(i));
    return result;
}

std::vector<Variable> FunctionNode::get_retained_outputs() const {
    check_retained("outputs", retained_outputs_.has_value());
    std::vector<Variable> result;
    for (const std::size_t i : *retained_outputs_) result.push_back(call_->retained_output(i));
    return result;
}

}  // namespace catena
