// Backpropagation from one or several outputs to all leaves, or to chosen inputs.
#include "graph/backward_pass.hpp"
#include "graph/call.hpp"

#include <catena/core/grad.hpp>

#include <unordered_set>

namespace catena {

void check_graph(const GraphNode& node) {
    if (!node.outputs().empty()) return;
    raise<GraphError>(
        "[{}] backward: expected its graph, got one that an earlier backward() consumed",
        node.label());
}

PassCall::PassCall(GraphNode& call, BackwardPass& of)
    : node(&call),
      pass(of),
      outer(std::exchange(call.in_pass_, this)),
      rank(call.rank()),
      gy(call.outputs_.size()) {}

// Passes may end in any order: a function of a program can let another thread compute.
PassCall::~PassCall() {
    PassCall** at = &node->in_pass_;
    while (*at != this) at = &(*at)->outer;
    *at = outer;
}

namespace {
thread_local constinit double scale_of_pass = 1;  // in the pass that runs in this thread
}

BackwardPass::BackwardPass(Mode mode)
    : mode_(mode),
      loss_scale_(mode.loss_scale != 0 ? mode.loss_scale : scale_of_pass),
      debug_(config().debug) {}

// Schedules a call. found: the call's entry from select(), or null.
PassCall& BackwardPass::enqueue(GraphNode& node, PassCall* found) {
    check_graph(node);
    if (found) heap_.push_back(std::move(paths_->calls[found->at]));
    else heap_.push_back(std::make_unique<PassCall>(node, *this));
    PassCall& call = *heap_.back();
    call.order = ++order_;
    std::push_heap(heap_.begin(), heap_.end(), Later());
    return call;
}

// Returns the place where the pass sums up node's gradient, or null for a leaf that is no input of grad():
// its sum is node.grad. Schedules the call that made node.
Gradient* BackwardPass::slot(VariableNode& node) {
    PassCall* call = nullptr;
    if (GraphNode* const creator = node.creator.get()) {
        call = call_of(*creator);
        if ((!call || !call->order) && leads(*creator)) call = &enqueue(*creator, call);
    }
    auto* const there = const_cast<Gradient*>(find(node, call));
    if (there && mode_.consume) there->held = Ref<VariableNode>(&node);  // until its call has run
    return there;
}

const Array* BackwardPass::so_far(const VariableNode& input) const noexcept {
    const Gradient* const there = find(input);
    const Array& array =
        there ? there->variable ? there->variable.data() : there->array : input.grad;
    return array && (there || !input.creator) ? &array : nullptr;
}

void BackwardPass::start(VariableNode& node, const Variable& gradient) {
    if (!useful(node) && !is_leaf_output(node)) return;
    if (debug_) diagnostics().check(gradient.data(), "backward", "grad of the start", {});
    if (!mode_.on_variables) return add(node, gradient.data());
    const force_backprop_mode scope;
    add(node, gradient);
}

namespace {

std::atomic<void (*)()> backward_check = nullptr;

void call_hook(const VariableNode& leaf) {
    if (leaf.grad && leaf.grad_hook) (*leaf.grad_hook)();
}

}  // namespace

void BackwardPass::run(VariableNode* consumed) {
    const using_value scope(scale_of_pass, loss_scale_);
    const using_value group(current_group, current_group);
    for (bool first = true; !heap_.empty(); first = false) {
        const auto check = backward_check.load(std::memory_order_relaxed);
        if (check && !first) check();
        std::pop_heap(heap_.begin(), heap_.end(), Later());
        running_ = std::move(heap_.back());
        heap_.pop_back();
        GraphNode& node = *running_->node;
        current_group = node.group_.get();
        step(node);
        if (!uses_.empty()) note_uses(node);
        if (mode_.consume) let_go(consumed);
        running_.reset();
    }
    // Calls that no gradient reached did not run.
    for (const auto& [key, uses] : uses_)
        if (uses.calls > 0) call_hook(*uses.leaf);
}

void BackwardPass::watch(std::span<const Variable> outputs) {
    if (!VariableNode::any_grad_hooks()) return;
    std::unordered_set<const GraphNode*> seen;
    std::vector<const GraphNode*> calls;
    const auto see = [&](const GraphNode* call) {
        if (call && seen.insert(call).second) calls.push_back(call);
    };
    for (const Variable& output : outputs) {
        see(output.creator());
        if (!output.creator() && output.node().grad_hook)  // its hook is called at the end
            uses_.try_emplace(&output.node(), Uses{output.node_ref(), 1});
    }
    while (!calls.empty()) {
        const GraphNode& call = *calls.back();
        calls.pop_back();
        for (const Ref<VariableNode>& input : call.inputs()) {
            if (!wants(input.get())) continue;
            if (input->creator) see(input->creator.get());
            else if (input->grad_hook)
                ++uses_.try_emplace(input.get(), Uses{input}).first->second.calls;
        }
    }
}

// Calls the hooks of leaves whose last call has run.
void BackwardPass::note_uses(const GraphNode& node) {
    for (const Ref<VariableNode>& input : node.inputs_) {
        if (!input || !input->grad_hook) continue;
        const auto found = uses_.find(input.get());
        if (found != uses_.end() && found->second.calls > 0 && --found->second.calls == 0)
            call_hook(*input);
    }
}

void BackwardPass::step(GraphNode& node) {
    std::optional<using_config<decltype(Config::named)>> settings;
    if (node.named_ && node.named_->named != config().named) [[unlikely]] {
        auto named = node.named_->named;  // of the forward call
        named.insert(config().named.begin(), config().named.end());
        settings.emplace(&Config::named, std::move(named));
    }
    const auto run_step = [&] {
        if (mode_.on_variables) step_variables(node);
        else step_arrays(node);
    };
    if (!debug_) [[likely]]
        return run_step();
    std::span<void* const> trace;
    if (node.trace_) trace = *node.trace_;
    const auto gradient = [&](std::size_t i) {
        const VariableNode* x = node.inputs_[i].get();
        const Array* const there = wants(x) ? so_far(*x) : nullptr;
        return there ? *there : Array();
    };
    diagnostics().backward(node, trace, gradient, run_step);
}

// Releases the outputs of the call that has run, and thereby the call, unless there are other references.
void BackwardPass::let_go(VariableNode* consumed) {
    GraphNode& node = *running_->node;
    for (Gradient& g : running_->gy) g.held.reset();
    if (!consumed || consumed->creator.get() != &node || !consumed->unique()) return;
    if (node.references_.get() != 2) return;  // 2: running_ and consumed
    node.unchain();
    consumed->creator = running_->node;  // has no outputs: another backward() throws
}

void BackwardPass::step_arrays(GraphNode& node) {
    SmallVector<Array, 2> gy;
    for (std::size_t i = 0; i < node.outputs_.size(); ++i) {
        VariableNode* const output = node.outputs_[i];
        const Gradient* const kept = output ? find_wanted(*output) : nullptr;
        if (kept) gy.push_back(kept->array);
        else gy.push_back(std::move(running_->gy[i].array));
        const Array& g = gy.back();
        if (mode_.retain_grad && g && output && output->has_users() &&
            g.body() != output->grad.body()) {
            output->set_grad_node({});
            output->grad = g;
        }
    }
    node.backward(gy, *this);
}

void BackwardPass::step_variables(GraphNode& node) {
    SmallVector<Variable, 2> gy;
    for (std::size_t i = 0; i < node.outputs_.size(); ++i) {
        VariableNode* const output = node.outputs_[i];
        const Gradient* there = output ? find(*output) : nullptr;
        gy.push_back(there ? there->variable : Variable());
        running_->gy[i].variable = Variable();
        if (gy.back() && mode_.retain_grad && output->has_users()) {
            output->set_grad_node(gy.back().node_ref());
            output->grad = gy.back().data();
        }
    }
    const force_backprop_mode scope;
    compose(node, gy);
}

void BackwardPass::compose(GraphNode& node, std::span<const Variable> gy) {
    node.check_retained();
    const std::size_t n = node.inputs_.size();
    SmallVector<bool, 16> wanted;
    bool any = n == 0;
    for (const Ref<VariableNode>& input : node.inputs_) {
        wanted.push_back(wants(input.get()));
        any = any || wanted.back();
    }
    if (!any) return;
    SmallVector<Variable, 4> gx(n);
    node.gradients(gy, {wanted.data(), n}, {gx.data(), n});
    node.check_retained();
    for (std::size_t i = 0; i < n; ++i) {
        if (!gx[i] || !wants(node.inputs_[i].get())) continue;
        VariableNode& input = *node.inputs_[i];
        if (!same_kind(*gx[i].data().body(), *input.data.body())) {
            check_gradient(
                input, gx[i].data(),
                fmt::format("[{}] backward: gradient of {}", node.label(), node.input_name(i)));
        }
        if (mode_.on_variables) {
            add(input, gx[i]);
        } else {
            Array gradient = gx[i].data();
            gx[i] = Variable();  // add() may write into an array without other handles
            add(input, std::move(gradient));
        }
    }
}

// ---- grad(): the calls between inputs and outputs

void BackwardPass::select(const std::vector<Variable>& outputs,
                          const std::vector<Variable>& inputs) {
    Paths& paths = paths_.emplace();
    int least = inputs.empty() ? 0 : inputs.front().rank();  // lowest rank of the inputs
    for (const Variable& input : inputs) {
        least = std::min(least, input.rank());
        paths.wanted.try_emplace(&input.node());
    }
    auto& calls = paths.calls;
    const auto see = [&](GraphNode* call) {
        if (!call || call->rank() <= least || call_of(*call)) return;
        check_graph(*call);
        calls.push_back(std::make_unique<PassCall>(*call, *this));
        calls.back()->leads = false;
    };
    for (const Variable& output : outputs) see(output.creator());
    for (std::size_t i = 0; i < calls.size(); ++i) {
        for (const Ref<VariableNode>& input : calls[i]->node->inputs())
            if (input && input->requires_grad) see(input->creator.get());
    }
    std::ranges::sort(calls, {}, [](const auto& call) { return call->rank; });
    for (std::size_t i = 0; i < calls.size(); ++i) {  // calls that made the inputs come first
        calls[i]->at = i;
        calls[i]->leads = std::ranges::any_of(
            calls[i]->node->inputs(),
            [&](const Ref<VariableNode>& x) { return x && x->requires_grad && useful(*x); });
    }
}

const Gradient* BackwardPass::find_wanted(const VariableNode& node) const noexcept {
    if (!paths_) return nullptr;
    const auto at = paths_->wanted.find(&node);
    return at == paths_->wanted.end() ? nullptr : &at->second;
}

Variable BackwardPass::gradient_of(const VariableNode& input) const {
    const Gradient& there = *find_wanted(input);
    if (there.variable || !there.array) return there.variable;
    return as_variable(there.array);
}

// ---- what users call

namespace {

// Sets the start's gradient to 1 unless it is set. Throws if there is not exactly one element.
void set_start(VariableNode& node) {
    if (node.grad) return;
    const Variable y{Ref<VariableNode>(&node)};
    if (y.size() != 1) {
        raise<GraphError>(
            "[backward] grad of the start: expected one to be set for shape {}, got none (only a "
            "variable of one element starts with 1)",
            y.shape());
    }
    if (!is_floating(y.dtype()))
        raise<DtypeError>("[backward] start: expected a floating dtype, got {}", y.dtype());
    node.grad = Array::ones(y.shape(), y.dtype(), y.device());
}

// Whether start has a graph; a leaf has none. Throws GraphError after unchain_backward().
bool has_graph(const VariableNode& start) {
    if (!start.creator && start.unchained) {
        raise<GraphError>(
            "[backward] start: expected a variable with its graph, got one whose graph "
            "unchain_backward() has freed");
    }
    return static_cast<bool>(start.creator);
}

// Starts with the given gradients; without them, with those of the outputs that have a graph.
void run_from(std::span<const Variable> outputs, std::span<const Variable> given,
              BackwardPass::Mode mode) {
    BackwardPass pass(mode);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        VariableNode& start = outputs[i].node();
        if (!given.empty() && !given[i]) continue;
        const bool graph = has_graph(start);
        if (!given.empty()) {
            pass.start(start, given[i]);
        } else if (graph) {
            set_start(start);
            pass.start(start,
                       mode.on_variables ? outputs[i].grad_variable() : as_variable(start.grad));
        }
    }
    pass.watch(outputs);
    pass.run(mode.consume ? &outputs[0].node() : nullptr);
}

void run_from(const Variable& y, BackwardPass::Mode mode) {
    VariableNode& start = y.node();
    if (has_graph(start)) return run_from({&y, 1}, {}, mode);
    if (!start.requires_grad) {
        raise<GraphError>(
            "[backward] start: expected a variable that requires a gradient, or the result of "
            "calls on one, got one with neither: as_variable() or no_backprop_mode made it, or no "
            "input of its call requires a gradient");
    }
    set_start(start);
    call_hook(start);
}

// Checks the gradients that are given for the variables `of`. what: such as "[grad] grad_inputs".
void check(const char* what, const std::vector<Variable>& variables,
           const std::vector<Variable>& of) {
    if (!variables.empty() && variables.size() != of.size())
        raise<InvalidError>("{}: expected {} or none, got {}", what, of.size(), variables.size());
    for (std::size_t i = 0; i < variables.size(); ++i) {
        if (!variables[i]) continue;
        check_gradient(of[i].node(), variables[i].data(), fmt::format("{}[{}]", what, i));
    }
}

void check_present(const char* what, const std::vector<Variable>& variables) {
    const auto empty = std::ranges::find_if(variables, [](const auto& v) { return !v; });
    if (empty == variables.end()) return;
    raise<InvalidError>("[grad] {}[{}]: expected a variable, got an empty handle", what,
                        empty - variables.begin());
}

Variable ones_like(const Variable& y, std::size_t i) {
    if (!is_floating(y.dtype()))
        raise<DtypeError>("[grad] outputs[{}]: expected a floating dtype, got {}", i, y.dtype());
    return as_variable(Array::ones(y.shape(), y.dtype(), y.device()));
}

}  // namespace

void Variable::backward(bool retain_grad, bool enable_double_backprop) const& {
    run_from(*this, {.retain_grad = retain_grad, .on_variables = enable_double_backprop});
}

// Gradients of higher order traverse the graph again, so double backprop does not consume it.
void Variable::backward(bool retain_grad, bool enable_double_backprop) && {
    run_from(*this, {.retain_grad = retain_grad,
                     .on_variables = enable_double_backprop,
                     .consume = !enable_double_backprop});
}

std::vector<Variable> grad(const std::vector<Variable>& outputs,
                           const std::vector<Variable>& inputs,
                           const std::vector<Variable>& grad_outputs,
                           const std::vector<Variable>& grad_inputs, GradOptions options) {
    check_present("outputs", outputs);
    check_present("inputs", inputs);
    check("[grad] grad_outputs", grad_outputs, outputs);
    check("[grad] grad_inputs", grad_inputs, inputs);
    BackwardPass pass(
        {.retain_grad = options.retain_grad, .on_variables = options.enable_double_backprop});
    pass.select(outputs, inputs);
    for (std::size_t i = 0; i < grad_inputs.size(); ++i) {
        if (grad_inputs[i]) pass.start(inputs[i].node(), grad_inputs[i]);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (!pass.useful(outputs[i].node())) continue;
        const bool given = !grad_outputs.empty() && grad_outputs[i];
        pass.start(outputs[i].node(), given ? grad_outputs[i] : ones_like(outputs[i], i));
    }
    pass.run();
    std::vector<Variable> results;
    for (const Variable& input : inputs) {
        const Variable& result = results.emplace_back(pass.gradient_of(input.node()));
        const bool retains = options.retain_grad && result && input.creator();
        if (options.set_grad || retains) input.set_grad(result);
    }
    return results;
}

void backward(const std::vector<Variable>& outputs, const std::vector<Variable>& grad_outputs,
              BackwardOptions options) {
    check("[backward] grad_outputs", grad_outputs, outputs);
    run_from(outputs, grad_outputs,
             {.retain_grad = options.retain_grad,
              .on_variables = options.enable_double_backprop,
              .loss_scale = options.loss_scale});
}

void set_backward_check(void (*check)()) noexcept { backward_check = check; }

}  // namespace catena
