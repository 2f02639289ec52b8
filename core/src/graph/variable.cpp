// Variables: what the user holds of the graph.
#include "array/array_ops.hpp"
#include "graph/backward_pass.hpp"

#include <catena/core/error.hpp>
#include <catena/core/variable.hpp>

#include <fmt/format.h>

namespace catena {

Variable::Variable(Array data, bool is_volatile) {
    if (!data) throw InvalidError("[variable] data: expected an array, got an empty handle");
    const bool floating = is_floating(data.dtype());
    node_ = Ref<VariableNode>(new VariableNode(std::move(data)));
    node_->add_user();
    node_->requires_grad = floating;
    node_->is_volatile = is_volatile;
}

Variable::Variable(Ref<VariableNode> node) : node_(std::move(node)) {
    if (node_) node_->add_user();
}

namespace {

Array require_floating(Array data) {
    if (data && is_floating(data.dtype())) return data;
    throw DtypeError(fmt::format("[Parameter] data: expected a floating array, got {}",
                                 data ? name(data.dtype()) : "none"));
}

}  // namespace

Parameter::Parameter(Array data) : Variable(require_floating(std::move(data))) {
    node().is_parameter = true;
}

Variable as_variable(Array data) {
    Variable variable(std::move(data));
    variable.set_requires_grad(false);
    return variable;
}

VariableNode& Variable::node() const {
    if (!node_) throw InvalidError("[variable] expected a variable, got an empty handle");
    return *node_;
}

void Variable::set_data(Array data) const {
    if (!data) throw InvalidError("[variable] data: expected an array, got an empty handle");
    VariableNode& n = node();
    if (!(data.shape() == shape()) || data.dtype() != dtype() || !(data.device() == device())) {
        if (n.in_graph()) {
            throw GraphError(fmt::format(
                "[variable] data: expected {} {} on {} while a graph refers to it, got {} {} on {}",
                to_string(shape()), catena::name(dtype()), device().name(), to_string(data.shape()),
                catena::name(data.dtype()), data.device().name()));
        }
        n.set_grad_node({});
        n.grad = Array();  // it belongs to the old shape
    }
    n.data = std::move(data);
}

void check_gradient(const VariableNode& node, const Array& grad, std::string_view what) {
    const Array& data = node.data;
    if (!(grad.shape() == data.shape())) {
        throw ShapeError(fmt::format("{}: expected shape {}, got {}", what, to_string(data.shape()),
                                     to_string(grad.shape())));
    }
    if (grad.dtype() != data.dtype()) {
        throw DtypeError(
            fmt::format("{}: expected {}, got {}", what, name(data.dtype()), name(grad.dtype())));
    }
    if (!(grad.device() == data.device())) {
        throw DeviceError(fmt::format("{}: expected {}, got {}", what, data.device().name(),
                                      grad.device().name()));
    }
}

void VariableNode::set_grad_node(Ref<VariableNode> next) noexcept {
    if (next) next->add_user();
    if (grad_node) grad_node->drop_user();
    grad_node = std::move(next);
}

Variable Variable::grad_variable() const {
    VariableNode& n = node();
    if (!n.grad) return {};
    if (!n.grad_node) n.set_grad_node(as_variable(n.grad).node_ref());
    return Variable(n.grad_node);
}

void Variable::set_grad(Array grad) const {
    if (!grad) return cleargrad();
    VariableNode& n = node();
    check_gradient(n, grad, "[variable] grad");
    n.set_grad_node({});
    n.write_grad(std::move(grad));
}

void Variable::set_grad(const Variable& grad) const {
    if (!grad) return cleargrad();
    VariableNode& n = node();
    check_gradient(n, grad.data(), "[variable] grad");
    n.set_grad_node(grad.node_ref());
    n.write_grad(grad.data());
}

void Variable::cleargrad() const {
    VariableNode& n = node();
    n.set_grad_node({});
    if (n.grad_in_place && n.grad) n.grad.fill(0);
    else n.grad = Array();
}

void Variable::set_requires_grad(bool value) const {
    node().requires_grad = value;
    node().volatile_result = false;
}

void Variable::set_volatile(bool value) const {
    VariableNode& n = node();
    n.is_volatile = value;
    if (value || !n.volatile_result) return;
    n.volatile_result = false;
    n.requires_grad = is_floating(n.data.dtype());
}

void Variable::zerograd() const {
    VariableNode& n = node();
    n.set_grad_node({});
    if (n.grad && (n.grad_in_place || n.grad.body()->exclusive())) n.grad.fill(0);
    else n.grad = Array::zeros(shape(), dtype(), device());
}

const std::string& Variable::name() const {
    static const std::string none;
    return node().name ? *node().name : none;
}

void Variable::set_name(std::string name) const {
    node().name = std::make_unique<std::string>(std::move(name));
}

void Variable::unchain_backward() const {
    std::vector<Ref<GraphNode>> todo;
    const auto add = [&](VariableNode& variable) {
        if (!variable.creator) return;
        if (variable.creator->outputs().empty()) variable.creator.reset();  // consumed
        else todo.push_back(variable.creator);
    };
    add(node());
    while (!todo.empty()) {
        const Ref<GraphNode> call = std::move(todo.back());
        todo.pop_back();
        for (const Ref<VariableNode>& input : call->inputs()) {
            if (input) add(*input);
        }
        call->unchain();
    }
}

}  // namespace catena
