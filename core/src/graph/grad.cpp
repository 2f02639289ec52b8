// grad(): finds the calls between outputs and inputs, and walks them alone.
#include "graph/backward_pass.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {

// Marks the variables around the paths, and takes the marks away again. A pass within a pass finds
// variables already marked: what they were comes back, their gradient on its way too.
class Routes {
public:
    explicit Routes(const std::vector<Variable>& inputs) : inputs_(inputs) {}
    ~Routes() {
        for (GraphNode* call : calls_) call->mark_ = unseen;
        for (auto it = before_.rbegin(); it != before_.rend(); ++it) {
            VariableNode& node = *it->node;
            drop_pending(node);
            node.route = it->route;
            node.pending = std::move(it->pending);
            node.pending_node = std::move(it->pending_node);
        }
    }
    Routes(const Routes&) = delete;
    Routes& operator=(const Routes&) = delete;

    // Returns the rank that no path goes below.
    int find(const std::vector<Variable>& outputs) {
        int least = inputs_.empty() ? 0 : inputs_.front().rank();
        for (const Variable& input : inputs_) {
            least = std::min(least, input.rank());
            if (!is_wanted(input.node())) mark(input.node(), Route::wanted);
            n_wanted_ = before_.size();
        }
        const auto see = [&](GraphNode* call) {
            if (!call || call->mark_ != unseen || call->rank() <= least) return;
            check_graph(*call);
            calls_.push_back(call);
            call->mark_ = seen;
        };
        for (const Variable& output : outputs) see(output.creator());
        for (std::size_t i = 0; i < calls_.size(); ++i) {
            for (const Ref<VariableNode>& input : calls_[i]->inputs()) {
                if (input && input->requires_grad) see(input->creator.get());
            }
        }
        std::sort(calls_.begin(), calls_.end(),
                  [](const GraphNode* a, const GraphNode* b) { return a->rank() < b->rank(); });
        for (GraphNode* call : calls_) {  // those that made its inputs have been here
            for (const Ref<VariableNode>& input : call->inputs()) {
                if (!input || !input->requires_grad) continue;
                const bool wanted = is_wanted(*input);
                const bool on = wanted || (input->creator && input->creator->mark_ == on_path);
                const Route route = wanted ? Route::wanted : on ? Route::plain : Route::off;
                if (on) call->mark_ = on_path;
                if (input->route != route) mark(*input, route);
            }
        }
        return least;
    }

private:
    enum : std::uint8_t { unseen, seen, on_path };
    struct Before {
        Ref<VariableNode> node;
        Route route;
        Array pending;
        Ref<VariableNode> pending_node;
    };

    void mark(VariableNode& node, Route route) {
        before_.push_back({Ref<VariableNode>(&node), node.route, std::move(node.pending),
                           std::move(node.pending_node)});
        node.pending = Array();
        node.route = route;
    }

    // By this pass: another around it may have marked it too.
    bool is_wanted(const VariableNode& node) const {
        if (node.route != Route::wanted) return false;
        return std::any_of(before_.begin(),
                           before_.begin() + static_cast<std::ptrdiff_t>(n_wanted_),
                           [&](const Before& b) { return b.node.get() == &node; });
    }

    const std::vector<Variable>& inputs_;
    std::vector<Before> before_;
    std::size_t n_wanted_ = 0;
    std::vector<GraphNode*> calls_;
};

namespace {

void check(const char* what, const std::vector<Variable>& variables,
           const std::vector<Variable>& of) {
    if (!variables.empty() && variables.size() != of.size()) {
        throw InvalidError(fmt::format("[grad] {}: expected {} or none, got {}", what, of.size(),
                                       variables.size()));
    }
    for (std::size_t i = 0; i < variables.size(); ++i) {
        if (!variables[i]) continue;
        check_gradient(of[i].node(), variables[i].data(), fmt::format("[grad] {}[{}]", what, i));
    }
}

void check_present(const char* what, const std::vector<Variable>& variables) {
    for (std::size_t i = 0; i < variables.size(); ++i) {
        if (variables[i]) continue;
        throw InvalidError(
            fmt::format("[grad] {}[{}]: expected a variable, got an empty handle", what, i));
    }
}

Variable ones_like(const Variable& y, std::size_t i) {
    if (!is_floating(y.dtype())) {
        throw DtypeError(fmt::format("[grad] outputs[{}]: expected a floating dtype, got {}", i,
                                     name(y.dtype())));
    }
    return as_variable(Array::ones(y.shape(), y.dtype(), y.device()));
}

}  // namespace

std::vector<Variable> grad(const std::vector<Variable>& outputs,
                           const std::vector<Variable>& inputs,
                           const std::vector<Variable>& grad_outputs,
                           const std::vector<Variable>& grad_inputs, GradOptions options) {
    check_present("outputs", outputs);
    check_present("inputs", inputs);
    check("grad_outputs", grad_outputs, outputs);
    check("grad_inputs", grad_inputs, inputs);
    const bool record = options.enable_double_backprop;
    Routes routes(inputs);
    const int least = routes.find(outputs);
    BackwardPass pass({.retain_grad = options.retain_grad,
                       .on_variables = record,
                       .selective = true,
                       .above = least});
    const auto start = [&](const Variable& at, const Variable& gradient) {
        if (record) pass.start(at.node(), gradient);
        else pass.start(at.node(), gradient.data());
    };
    for (std::size_t i = 0; i < grad_inputs.size(); ++i) {
        if (grad_inputs[i]) start(inputs[i], grad_inputs[i]);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (!pass.useful(outputs[i].node())) continue;
        const bool given = !grad_outputs.empty() && grad_outputs[i];
        start(outputs[i], given ? grad_outputs[i] : ones_like(outputs[i], i));
    }
    pass.run();
    std::vector<Variable> results;
    for (const Variable& input : inputs) {
        const VariableNode& node = input.node();
        if (node.pending_node) results.emplace_back(node.pending_node);
        else results.push_back(node.pending ? as_variable(node.pending) : Variable());
    }
    if (options.set_grad) {
        for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].set_grad(results[i]);
    }
    return results;
}

}  // namespace catena
