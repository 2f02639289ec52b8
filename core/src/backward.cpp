// Backpropagation: calls in order of falling rank, ties in order of arrival.
#include "array_ops.hpp"
#include "dispatch.hpp"

#include <catena/core/error.hpp>
#include <catena/core/variable.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {

class BackwardPass {
public:
    BackwardPass(const Variable& start, bool retain_grad, bool on_variables)
        : start_(start), retain_grad_(retain_grad), on_variables_(on_variables) {}

    // Whatever ends the pass early must leave no gradient on its way behind.
    ~BackwardPass() {
        for (const Item& item : heap_) {
            item.node->queued_ = false;
            for (VariableNode* output : item.node->outputs_) drop(output);
        }
        if (running_) {
            for (const Ref<VariableNode>& input : running_->inputs_) drop(input.get());
        }
    }
    BackwardPass(const BackwardPass&) = delete;
    BackwardPass& operator=(const BackwardPass&) = delete;

    void run() {
        push(*start_.creator());
        while (!heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end());
            const Ref<GraphNode> node = std::move(heap_.back().node);
            heap_.pop_back();
            node->queued_ = false;
            running_ = node.get();
            if (on_variables_) step_variables(*node);
            else step_arrays(*node);
            for (const Ref<VariableNode>& input : node->inputs_) {
                if (!input || !input->creator || input->creator->queued_) continue;
                if (input->pending || input->pending_node) push(*input->creator);
            }
            running_ = nullptr;
        }
    }

private:
    struct Item {
        int rank;
        unsigned order;
        Ref<GraphNode> node;
        bool operator<(const Item& other) const {
            return rank != other.rank ? rank < other.rank : order > other.order;
        }
    };

    void push(GraphNode& node) {
        node.queued_ = true;
        heap_.push_back({node.rank(), order_++, Ref<GraphNode>(&node)});
        std::push_heap(heap_.begin(), heap_.end());
    }

    static void drop(VariableNode* node) {
        if (!node) return;
        node->pending = Array();
        if (node->pending_node) node->pending_node->drop_user();
        node->pending_node.reset();
    }

    void step_arrays(GraphNode& node) {
        SmallVector<Array, 2> gy;
        for (VariableNode* output : node.outputs_) {
            if (!output) gy.push_back({});
            else if (output == start_.node_ref().get()) gy.push_back(output->grad);
            else gy.push_back(std::move(output->pending));
            if (output && retain_grad_ && output->has_users() && gy.back()) {
                output->set_grad_node({});
                output->grad = gy.back();
            }
        }
        node.backward(std::span<const Array>(gy.data(), gy.size()));
    }

    void step_variables(GraphNode& node) {
        SmallVector<Variable, 2> gy;
        for (VariableNode* output : node.outputs_) {
            gy.push_back({});
            if (!output) continue;
            if (output == start_.node_ref().get()) {
                gy.back() = start_.grad_variable();
            } else if (output->pending_node) {
                gy.back() = Variable(output->pending_node);
                drop(output);
                if (retain_grad_ && output->has_users())
                    Variable(Ref<VariableNode>(output)).set_grad(gy.back());
            }
        }
        node.backward(std::span<const Variable>(gy.data(), gy.size()));
    }

    const Variable& start_;
    const bool retain_grad_;
    const bool on_variables_;
    SmallVector<Item, 16> heap_;
    unsigned order_ = 0;
    GraphNode* running_ = nullptr;
};

void Variable::backward(bool retain_grad, bool enable_double_backprop) const {
    VariableNode& start = node();
    if (!start.creator) return;
    if (!start.grad) {
        if (size() != 1) {
            throw GraphError(fmt::format(
                "[backward] grad of the start: expected one to be set for shape {}, got none "
                "(only a variable of one element starts with 1)",
                to_string(shape())));
        }
        if (!is_floating(dtype())) {
            throw DtypeError(fmt::format("[backward] start: expected a floating dtype, got {}",
                                         catena::name(dtype())));
        }
        start.grad = Array::ones(shape(), dtype(), device());
    }
    BackwardPass(*this, retain_grad, enable_double_backprop).run();
}

}  // namespace catena
