// UserFunction, the base of functions that programs define; FunctionNode, and UserCall, the node of its
// call in the graph; Function, which is called by a FunctionNode and computes gradients on arrays.
#include "../support.hpp"

#include <catena/function.hpp>
#include <catena/function_node.hpp>

#include <catena/core/config.hpp>

#include <boost/core/demangle.hpp>

#include <numeric>

namespace catena {

void throw_count(const char* where, std::size_t expected, std::size_t got) {
    fail<InvalidError>("[{}] values: expected {}, got {}", where, expected, got);
}

std::string class_name(const std::type_info& type) {
    const std::string name = boost::core::demangle(type.name());
    // Keeps the part after the last "::" in front of template arguments.
    const std::size_t colon = name.rfind("::", name.find('<'));
    return colon == name.npos ? name : name.substr(colon + 2);
}

std::string UserFunction::label() const { return class_name(typeid(*this)); }

void UserFunction::throw_count(const char* what, std::size_t expected, std::size_t got) const {
    fail<InvalidError>("[{}] {}: expected {}, got {}", label(), what, expected, got);
}

bool UserFunction::any_on_gpu(ArraySpan arrays) {
    return std::any_of(arrays.begin(), arrays.end(),
                       [](const Array& array) { return array && cuda::is_gpu(array.device()); });
}

Arrays UserFunction::forward(ArraySpan inputs) {
    return any_on_gpu(inputs) ? forward_gpu(inputs) : forward_cpu(inputs);
}

namespace {

[[noreturn]] void throw_missing(const UserFunction& function, const char* where) {
    fail<UnsupportedError>(
        "[{0}] forward_{1}: expected a class that overrides forward() or forward_{1}(), got one "
        "that overrides neither",
        function.label(), where);
}

// Returns the version of the array's memory, which in-place writes increment.
std::uint32_t version_of(const ArrayBody& body) {
    return body.base ? body.base->version : body.version;
}

std::vector<std::uint32_t> versions_of(ArraySpan arrays) {
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

// The graph node of gradients that were computed on arrays. They have no gradients themselves.
class FirstOrder final : public FunctionNode {
public:
    FirstOrder(std::string function, Arrays gradients)
        : function_(std::move(function)), gradients_(std::move(gradients)) {}
    std::string label() const override { return function_; }

private:
    Arrays forward(ArraySpan) override { return std::move(gradients_); }
    Variables backward(Targets, VariableSpan) override {
        fail<NotDifferentiableError>(
            "[{}] backward: it has no gradient of higher order: a Function computes its gradient "
            "on arrays; derive from FunctionNode",
            function_);
    }

    std::string function_;
    Arrays gradients_;
};

}  // namespace

Arrays UserFunction::forward_cpu(ArraySpan) { throw_missing(*this, "cpu"); }
Arrays UserFunction::forward_gpu(ArraySpan) { throw_missing(*this, "gpu"); }

// The graph node of a call of a FunctionNode. Runs its forward() and backward().
class UserCall final : public GraphNode {
public:
    // Runs the node's forward() and records the call in the graph.
    static Variables run(std::shared_ptr<FunctionNode> node, VariableSpan inputs) {
        const Ref<GraphNode> owner(new UserCall(std::move(node)));
        auto& call = static_cast<UserCall&>(*owner);
        FunctionNode& function = *call.node_;
        call.check_data(inputs);
        Arrays x;
        SmallVector<const Variable*, 6> pointers;
        for (const Variable& input : inputs) {
            pointers.push_back(&input);
            x.push_back(input ? input.data() : Array());
            if (input && !call.device_) call.device_ = input.device();
        }
        if (!call.device_) call.device_ = Device::current();
        const Variables outputs = call.compute(x);
        check_indexes(call.name(), "retain_inputs", function.retained_inputs_, inputs.size());
        check_indexes(call.name(), "retain_outputs", function.retained_outputs_, outputs.size());
        if (!call.record({pointers.data(), pointers.size()}, outputs)) return outputs;
        for (const std::size_t i : or_none(function.retained_inputs_))
            call.retain_input(i, inputs[i]);
        for (const std::size_t i : or_none(function.retained_outputs_))
            call.retain_output(i, outputs[i]);
        function.call_ = &call;
        return outputs;
    }
    ~UserCall() override {
        if (node_) node_->call_ = nullptr;
    }

    std::string_view label() const noexcept override {
        try {
            return name();
        } catch (...) {  // thrown by an overridden label()
            return "function";
        }
    }
    Arrays forward(ArraySpan given) const override {
        if (!node_) fail<GraphError>("[{}] forward: the graph was unchained here", name());
        const std::shared_ptr<FunctionNode> node = node_;
        const std::size_t n = inputs().size();
        if (given.size() != n && given.size() != node->n_given(n))
            fail<InvalidError>("[{}] forward: expected {} inputs, got {}", name(), node->n_given(n),
                               given.size());
        const auto first =
            std::find_if(given.begin(), given.end(), [](const Array& x) { return bool(x); });
        const using_config train(&Config::train, train_);  // the mode of the call
        const using_device device(first == given.end() ? device_ : first->device());
        return run_forward(*node, given);
    }
    void unchain() override {
        const Ref<GraphNode> keep(this);
        name();  // caches the name while the node exists
        GraphNode::unchain();
        if (node_) node_->call_ = nullptr;
        node_.reset();
    }

    using GraphNode::retained_input, GraphNode::retained_output;

private:
    explicit UserCall(std::shared_ptr<FunctionNode> node)
        : node_(std::move(node)), train_(config().train) {}
    const std::string& name() const {
        if (name_.empty() && node_) name_ = node_->label();
        return name_;
    }
    // Runs forward() of the node. Only retain_inputs() and retain_outputs() of the first run count.
    static Arrays run_forward(FunctionNode& node, ArraySpan inputs) {
        const bool again = node.stage_ == FunctionNode::Stage::applied;
        const OnExit restore{[&, kept_inputs = node.retained_inputs_,
                              kept_outputs = node.retained_outputs_]() mutable {
            node.stage_ = FunctionNode::Stage::applied;
            if (!again) return;
            node.retained_inputs_ = std::move(kept_inputs);
            node.retained_outputs_ = std::move(kept_outputs);
        }};
        node.stage_ = FunctionNode::Stage::forward;
        return node.forward(inputs);
    }
    // Runs forward(). Throws if it changes its inputs, returns no output or an empty array.
    Variables compute(ArraySpan x) {
        const std::vector<std::uint32_t> versions = versions_of(x);
        Arrays y;
        try {
            const using_device device(device_);
            y = run_forward(*node_, x);
        } catch (const NanError& error) {  // from a function that forward() calls
            fail<NanError>("{}\nin the forward of {}", error.what(), name());
        }
        check_versions(x, versions, "forward", "inputs");
        if (y.empty())
            fail<InvalidError>("[{}] forward: expected at least one output, got none", name());
        Variables outputs;
        for (Array& each : y) outputs.push_back(each ? Variable(std::move(each)) : Variable());
        return outputs;
    }
    void gradients(VariableSpan gy, std::span<const bool> wanted, std::span<Variable> gx) override {
        std::vector<std::size_t> targets;
        for (std::size_t i = 0; i < wanted.size(); ++i)
            if (wanted[i]) targets.push_back(i);
        const using_config train(&Config::train, train_);  // the mode of the call
        const using_device device(device_);
        const std::shared_ptr<FunctionNode> keep = node_;
        Arrays arrays;
        for (const Variable& g : gy) arrays.push_back(g ? g.data() : Array());
        const std::vector<std::uint32_t> versions = versions_of(arrays);
        Variables found = keep->backward(targets, gy);
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
    [[noreturn]] void throw_written(const char* method, const std::string& what) const {
        fail<InvalidError>(
            "[{}] {}: expected {} to be unmodified, got an in-place change (+= changes an array; "
            "x * 2 makes a new one)",
            name(), method, what);
    }
    void check_versions(ArraySpan arrays, std::span<const std::uint32_t> versions,
                        const char* method, const char* what) const {
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            if (arrays[i] && version_of(*arrays[i].body()) != versions[i])
                throw_written(method, fmt::format("{}[{}]", what, i));
        }
    }

    std::shared_ptr<FunctionNode> node_;
    mutable std::string name_;  // cached by name()
    Device device_;
    bool train_;
};

Variables FunctionNode::apply(VariableList inputs) {
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

Variables FunctionNode::get_retained_inputs() const {
    check_retained("inputs", retained_inputs_.has_value());
    Variables result;
    for (const std::size_t i : *retained_inputs_) result.push_back(call_->retained_input(i));
    return result;
}

Variables FunctionNode::get_retained_outputs() const {
    check_retained("outputs", retained_outputs_.has_value());
    Variables result;
    for (const std::size_t i : *retained_outputs_) result.push_back(call_->retained_output(i));
    return result;
}

// ---- Function

class ArrayFunctionNode final : public FunctionNode {
public:
    ArrayFunctionNode(std::shared_ptr<ArrayFunction> function, std::size_t n)
        : function_(std::move(function)), n_(n) {}
    std::string label() const override { return function_->label(); }

private:
    std::size_t n_given(std::size_t /*n_inputs*/) const override { return n_; }
    // inputs: the function's inputs, parameters of parameter_names(), other parameters of visit().
    Arrays forward(ArraySpan inputs) override {
        Arrays outputs = function_->forward(inputs.first(n_));
        if (!function_->inputs_) {
            function_->inputs_.emplace(n_);
            std::iota(function_->inputs_->begin(), function_->inputs_->end(), 0);
        }
        std::vector<std::size_t> indexes = *function_->inputs_;
        for (std::size_t i = n_; i < inputs.size(); ++i) indexes.push_back(i);
        retain_inputs(indexes);
        if (function_->outputs_) retain_outputs(*function_->outputs_);
        return outputs;
    }

    Variables backward(Targets targets, VariableSpan gy) override {
        Variables seen;  // variables that the gradients depend on
        Arrays x(n_);
        const Variables kept = get_retained_inputs();
        const std::size_t n_kept = function_->inputs_->size();
        for (std::size_t k = 0; k < kept.size(); ++k) {
            if (!kept[k]) continue;
            if (k < n_kept) x[(*function_->inputs_)[k]] = kept[k].data();
            seen.push_back(kept[k]);
        }
        const std::vector<FunctionParameter> members = function_->parameter_names();
        for (std::size_t i = 0; i < members.size(); ++i) {
            const Array& w = kept[n_kept + i].data();
            members[i].parameter = w;
            members[i].gradient = Array::zeros(w.shape(), w.dtype(), w.device());
        }
        Arrays gy_arrays;
        for (const Variable& g : gy) {
            gy_arrays.push_back(g ? g.data() : Array());
            if (g) seen.push_back(g);
        }
        Arrays& outputs = function_->kept_outputs_;
        if (function_->outputs_) {
            for (const Variable& y : get_retained_outputs()) outputs.push_back(y.data());
        }
        const OnExit clear{[&] { outputs.clear(); }};
        Arrays gx = function_->backward(x, gy_arrays);
        if (gx.size() != n_)
            fail<InvalidError>("[{}] backward: expected {} gradients, got {}", label(), n_,
                               gx.size());
        for (const FunctionParameter& member : members)
            gx.push_back(std::exchange(member.gradient, Array()));
        gx.resize(n_ + kept.size() - n_kept);  // empty for visit(): backward() adds those itself
        Arrays found;
        for (const std::size_t i : targets) {
            if (gx[i]) found.push_back(gx[i]);
        }
        Variables variables;
        if (!config().enable_backprop) {
            for (Array& array : found) variables.push_back(as_variable(std::move(array)));
        } else if (!found.empty()) {
            variables = apply<FirstOrder>(seen, label(), std::move(found));
        }
        Variables result(gx.size());
        std::size_t next = 0;
        for (const std::size_t i : targets) {
            if (gx[i]) result[i] = std::move(variables[next++]);
        }
        return result;
    }

    std::shared_ptr<ArrayFunction> function_;
    std::size_t n_;  // number of inputs without parameters
};

ArrayFunction::ArrayFunction(const ArrayFunction& other)
    : UserFunction(other),
      Link(other),
      inputs_(other.inputs_),
      outputs_(other.outputs_),
      learned_(other.shared()) {}

ArrayFunction& ArrayFunction::operator=(const ArrayFunction& other) {
    inputs_ = other.inputs_;
    outputs_ = other.outputs_;
    learned_ = other.shared();
    return *this;
}

// The const_cast is safe: synchronize() lets members and variables refer to the same arrays.
const std::vector<ArrayFunction::Learned>& ArrayFunction::shared() const {
    const_cast<ArrayFunction*>(this)->synchronize();
    return learned_;
}

void ArrayFunction::synchronize() {
    const std::vector<FunctionParameter> members = parameter_names();
    if (learned_.empty()) {
        if (members.empty()) return;  // writes nothing: threads may share this function
        std::vector<Learned> all;
        for (const auto& [name, parameter, gradient] : members) {
            if (!parameter)
                fail<InvalidError>(
                    "[{}] parameter_names: {}: expected an array, got an empty handle", label(),
                    name);
            all.push_back({Parameter(parameter), parameter, {}});
        }
        learned_ = std::move(all);
    }
    if (members.size() != learned_.size())
        fail<InvalidError>("[{}] parameter_names: expected {} as before, got {}", label(),
                           learned_.size(), members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
        const auto& [name, parameter, gradient] = members[i];
        auto& [variable, known, known_gradient] = learned_[i];
        if (parameter.body() != known.body()) variable.set_data(parameter);
        if (gradient.body() != known_gradient.body()) variable.set_grad(gradient);
        if (!variable.grad())
            variable.set_grad(Array::zeros(variable.shape(), variable.dtype(), variable.device()));
        variable.node().grad_in_place = true;
        parameter = known = variable.data();
        gradient = known_gradient = variable.grad();
    }
}

void ArrayFunction::visit(Visitor& visitor) {
    synchronize();
    const std::vector<FunctionParameter> members = parameter_names();
    for (std::size_t i = 0; i < members.size(); ++i) visitor(members[i].name, learned_[i].variable);
    synchronize();
}

Arrays ArrayFunction::backward(ArraySpan inputs, ArraySpan grad_outputs) {
    const bool gpu = any_on_gpu(inputs) || any_on_gpu(grad_outputs);
    return gpu ? backward_gpu(inputs, grad_outputs) : backward_cpu(inputs, grad_outputs);
}

Arrays ArrayFunction::backward_cpu(ArraySpan inputs, ArraySpan) { return Arrays(inputs.size()); }
Arrays ArrayFunction::backward_gpu(ArraySpan inputs, ArraySpan) { return Arrays(inputs.size()); }

const Arrays& ArrayFunction::get_retained_outputs() const {
    if (!outputs_)
        fail<GraphError>(
            "[{}] get_retained_outputs: expected retain_outputs() in forward(), got none", label());
    if (kept_outputs_.size() != outputs_->size())
        fail<GraphError>("[{}] get_retained_outputs: only within backward()", label());
    return kept_outputs_;
}

Variables ArrayFunction::apply(std::shared_ptr<ArrayFunction> function, VariableSpan inputs) {
    Variables all(inputs.begin(), inputs.end());
    for (const Learned& each : function->shared()) all.push_back(each.variable);
    for (auto& [path, each] : listed_parameters(*function)) {
        const auto same = [node = &each.node()](const Variable& other) {
            return &other.node() == node;
        };
        if (std::none_of(all.begin() + static_cast<std::ptrdiff_t>(inputs.size()), all.end(), same))
            all.push_back(std::move(each));
    }
    return catena::apply<ArrayFunctionNode>(all, std::move(function), inputs.size());
}

Variable ArrayFunction::only(Variables outputs) const {
    if (outputs.size() != 1)
        fail<InvalidError>("[{}] call: expected one output, got {}: use apply()", label(),
                           outputs.size());
    return std::move(outputs[0]);
}

}  // namespace catena
