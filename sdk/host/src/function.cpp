// UserFunction: names for messages, and where arrays are. Function: a FunctionNode around gradients on
// arrays.
#include "support.hpp"

#include <catena/core/config.hpp>
#include <catena/cuda/device.hpp>
#include <catena/function.hpp>
#include <catena/function_node.hpp>

#include <boost/core/demangle.hpp>

#include <algorithm>
#include <numeric>

namespace catena {

void throw_count(const char* where, std::size_t expected, std::size_t got) {
    fail<InvalidError>("[{}] values: expected {}, got {}", where, expected, got);
}

std::string class_name(const std::type_info& type) {
    const std::string name = boost::core::demangle(type.name());
    // The last part, not looking into template arguments.
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

void UserFunction::throw_missing(const char* where) const {
    fail<UnsupportedError>(
        "[{0}] forward_{1}: expected a class that overrides forward() or forward_{1}(), got one "
        "that overrides neither",
        label(), where);
}

namespace {

// The place in a graph of gradients that were computed on arrays: they end here.
class FirstOrder final : public FunctionNode {
public:
    FirstOrder(std::string function, std::vector<Array> gradients)
        : function_(std::move(function)), gradients_(std::move(gradients)) {}
    std::string label() const override { return function_; }

private:
    std::vector<Array> forward(std::span<const Array>) override { return std::move(gradients_); }
    std::vector<Variable> backward(std::span<const std::size_t>,
                                   std::span<const Variable>) override {
        fail<NotDifferentiableError>(
            "[{}] backward: it has no gradient of higher order: a Function computes its gradient "
            "on arrays; derive from FunctionNode",
            function_);
    }

    std::string function_;
    std::vector<Array> gradients_;
};

}  // namespace

class ArrayFunctionNode final : public FunctionNode {
public:
    ArrayFunctionNode(std::shared_ptr<ArrayFunction> function, std::size_t n)
        : function_(std::move(function)), n_(n) {}
    std::string label() const override { return function_->label(); }

private:
    std::size_t n_given(std::size_t /*n_inputs*/) const override { return n_; }
    // After the function's inputs come its parameters: of parameter_names(), then of visit() alone.
    std::vector<Array> forward(std::span<const Array> inputs) override {
        std::vector<Array> outputs = function_->forward(inputs.first(n_));
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

    std::vector<Variable> backward(std::span<const std::size_t> targets,
                                   std::span<const Variable> gy) override {
        std::vector<Variable> seen;  // what the gradients depend on
        std::vector<Array> x(n_);
        const std::vector<Variable> kept = get_retained_inputs();
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
        std::vector<Array> gy_arrays;
        for (const Variable& g : gy) {
            gy_arrays.push_back(g ? g.data() : Array());
            if (g) seen.push_back(g);
        }
        std::vector<Array>& outputs = function_->kept_outputs_;
        if (function_->outputs_) {
            for (const Variable& y : get_retained_outputs()) outputs.push_back(y.data());
        }
        const OnExit clear{[&] { outputs.clear(); }};
        std::vector<Array> gx = function_->backward(x, gy_arrays);
        if (gx.size() != n_)
            fail<InvalidError>("[{}] backward: expected {} gradients, got {}", label(), n_,
                               gx.size());
        for (const FunctionParameter& member : members)
            gx.push_back(std::exchange(member.gradient, Array()));
        gx.resize(n_ + kept.size() - n_kept);  // backward adds to those of visit() by itself
        std::vector<Array> found;
        for (const std::size_t i : targets) {
            if (gx[i]) found.push_back(gx[i]);
        }
        std::vector<Variable> variables;
        if (!config().enable_backprop) {
            for (Array& array : found) variables.push_back(as_variable(std::move(array)));
        } else if (!found.empty()) {
            variables = apply<FirstOrder>(seen, label(), std::move(found));
        }
        std::vector<Variable> result(gx.size());
        std::size_t next = 0;
        for (const std::size_t i : targets) {
            if (gx[i]) result[i] = std::move(variables[next++]);
        }
        return result;
    }

    std::shared_ptr<ArrayFunction> function_;
    std::size_t n_;  // inputs without parameters
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

// Sound: members get handles to the same values.
const std::vector<ArrayFunction::Learned>& ArrayFunction::shared() const {
    const_cast<ArrayFunction*>(this)->synchronize();
    return learned_;
}

void ArrayFunction::synchronize() {
    const std::vector<FunctionParameter> members = parameter_names();
    if (learned_.empty()) {
        if (members.empty()) return;  // several threads may share such a function
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

Arrays ArrayFunction::forward(ArraySpan inputs) {
    return any_on_gpu(inputs) ? forward_gpu(inputs) : forward_cpu(inputs);
}

Arrays ArrayFunction::backward(ArraySpan inputs, ArraySpan grad_outputs) {
    const bool gpu = any_on_gpu(inputs) || any_on_gpu(grad_outputs);
    return gpu ? backward_gpu(inputs, grad_outputs) : backward_cpu(inputs, grad_outputs);
}

Arrays ArrayFunction::forward_cpu(ArraySpan) { throw_missing("cpu"); }
Arrays ArrayFunction::forward_gpu(ArraySpan) { throw_missing("gpu"); }
Arrays ArrayFunction::backward_cpu(ArraySpan inputs, ArraySpan) { return Arrays(inputs.size()); }
Arrays ArrayFunction::backward_gpu(ArraySpan inputs, ArraySpan) { return Arrays(inputs.size()); }

const std::vector<Array>& ArrayFunction::get_retained_outputs() const {
    if (!outputs_)
        fail<GraphError>(
            "[{}] get_retained_outputs: expected retain_outputs() in forward(), got none", label());
    if (kept_outputs_.size() != outputs_->size())
        fail<GraphError>("[{}] get_retained_outputs: only within backward()", label());
    return kept_outputs_;
}

std::vector<Variable> ArrayFunction::apply(std::shared_ptr<ArrayFunction> function,
                                           std::span<const Variable> inputs) {
    std::vector<Variable> all(inputs.begin(), inputs.end());
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

Variable ArrayFunction::only(std::vector<Variable> outputs) const {
    if (outputs.size() != 1)
        fail<InvalidError>("[{}] call: expected one output, got {}: use apply()", label(),
                           outputs.size());
    return std::move(outputs[0]);
}

}  // namespace catena
