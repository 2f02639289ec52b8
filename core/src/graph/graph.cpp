// Variables and graph nodes: edges, lifetime, retained arrays, accumulation of gradients.
#include "graph/backward_pass.hpp"
#include "graph/call.hpp"

#include <thread>

namespace catena {

// ---- variables

Variable::Variable(Array data, bool is_volatile) {
    if (!data) raise<InvalidError>("[variable] data: expected an array, got an empty handle");
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
    raise<DtypeError>("[Parameter] data: expected a floating array, got {}",
                      data ? name(data.dtype()) : "none");
}

constexpr auto is_changed = [](const auto& kept) {
    return version_of(*kept.array.body()) != kept.version;
};

// Returns a + b, computed by the function that a plugin declared as the addition.
Variable sum(const Variable& a, const Variable& b) {
    FunctionEntry* addition = Registry::get().addition();
    if (!addition) {
        throw PluginError(
            with_plugin_report("[backward] gradients meet: expected a plugin with an addition "
                               "(CATENA_FUNCTION_ADDITION), got none"));
    }
    const Variable* const inputs[2] = {&a, &b};
    return std::move(call_function(*addition, *addition->defaults, inputs)[0]);
}

Array sum(const Array& a, const Array& b) {
    const no_backprop_mode scope;
    return sum(as_variable(a), as_variable(b)).data();
}

}  // namespace

Variable as_variable(Array data) {
    Variable variable(std::move(data));
    variable.set_requires_grad(false);
    return variable;
}

VariableNode& Variable::node() const {
    if (!node_) raise<InvalidError>("[variable] expected a variable, got an empty handle");
    return *node_;
}

void Variable::set_data(Array data) const {
    if (!data) raise<InvalidError>("[variable] data: expected an array, got an empty handle");
    VariableNode& n = node();
    if (!(data.shape() == shape()) || data.dtype() != dtype() || !(data.device() == device())) {
        if (n.in_graph()) {
            raise<GraphError>(
                "[variable] data: expected {} {} on {} while a graph refers to it, got {} {} on {}",
                shape(), dtype(), device().name(), data.shape(), data.dtype(),
                data.device().name());
        }
        n.set_grad_node({});
        n.grad = Array();  // it has the old shape, dtype or device
    }
    n.data = std::move(data);
}

void check_gradient(const VariableNode& node, const Array& grad, std::string_view what) {
    const Array& data = node.data;
    if (!(grad.shape() == data.shape()))
        raise<ShapeError>("{}: expected shape {}, got {}", what, data.shape(), grad.shape());
    if (grad.dtype() != data.dtype())
        raise<DtypeError>("{}: expected {}, got {}", what, data.dtype(), grad.dtype());
    if (!(grad.device() == data.device())) {
        raise<DeviceError>("{}: expected {}, got {}", what, data.device().name(),
                           grad.device().name());
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
    set_grad(grad ? grad.data() : Array());
    node().set_grad_node(grad.node_ref());
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

const std::string& Variable::name() const& {
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
        if (variable.creator->outputs().empty()) variable.creator.reset();  // consumed by a pass
        else todo.push_back(variable.creator);
    };
    add(node());
    while (!todo.empty()) {
        const Ref<GraphNode> call = std::move(todo.back());
        todo.pop_back();
        for (const Ref<VariableNode>& input : call->inputs())
            if (input) add(*input);
        call->unchain();
    }
}

// ---- parameters that nobody has listed

namespace {

// Never destroyed, because static parameters may outlive it.
struct Unlisted {
    std::mutex mutex;
    std::unordered_map<const VariableNode*, std::thread::id> made_in;
    std::atomic<std::size_t> count{0};  // of made_in, to be read without the mutex
};
Unlisted& unlisted() {
    static Unlisted& object = *new Unlisted;
    return object;
}

void drop_unlisted(const VariableNode& node) noexcept {
    Unlisted& list = unlisted();
    if (list.count == 0) return;
    const std::lock_guard lock(list.mutex);
    list.count -= list.made_in.erase(&node);
}

}  // namespace

Parameter::Parameter(Array data) : Variable(require_floating(std::move(data))) {
    Unlisted& list = unlisted();
    const std::lock_guard lock(list.mutex);
    list.made_in.emplace(&node(), std::this_thread::get_id());
    ++list.count;
    node().is_parameter = true;
}

void note_listed(const Variable& parameter) noexcept {
    if (parameter) drop_unlisted(parameter.node());
}

void report_unlisted() {
    std::string shapes;
    {
        const std::lock_guard lock(unlisted().mutex);
        for (const auto& [node, thread] : unlisted().made_in) {
            if (thread != std::this_thread::get_id() || !node->requires_grad || !node->grad)
                continue;
            shapes += fmt::format("{}{}", shapes.empty() ? "" : ", ", node->data.shape());
        }
    }
    if (shapes.empty()) return;
    const std::string text =
        "[update] parameters: expected visit() of a link to list each parameter that has a "
        "gradient, got parameters of the shapes " +
        shapes +
        " that none lists: they are neither trained nor saved; set_requires_grad(false) excludes "
        "a parameter";
    if (config().debug) throw GraphError(text);
    tell(CATENA_LOG_WARNING, text);
}

// ---- nodes

VariableNode::VariableNode(Array array) : data(std::move(array)) {}

namespace {
std::atomic<std::int64_t> grad_hooks = 0;
}

bool VariableNode::any_grad_hooks() noexcept {
    return grad_hooks.load(std::memory_order_relaxed) != 0;
}

void Variable::set_grad_hook(std::function<void()> hook) const {
    auto next = hook ? std::make_unique<const std::function<void()>>(std::move(hook)) : nullptr;
    grad_hooks += (next ? 1 : 0) - (node().grad_hook ? 1 : 0);
    node().grad_hook = std::move(next);
}

VariableNode::~VariableNode() {
    if (is_parameter) drop_unlisted(*this);
    if (grad_hook) --grad_hooks;
    // A gradient may itself have a gradient, and so on. The loop avoids recursion for long chains.
    for (Ref<VariableNode> next = std::move(grad_node); next;) {
        next->drop_user();
        Ref<VariableNode> after;
        if (next->unique()) after = std::move(next->grad_node);
        next = std::move(after);
    }
    unchain();
}

void VariableNode::unchain() noexcept {
    if (!creator) return;
    if (!creator->outputs_.empty())
        creator->outputs_[static_cast<std::size_t>(output_index)] = nullptr;
    creator.reset();
}

int VariableNode::rank() const noexcept { return creator ? creator->rank() : 0; }

void VariableNode::write_grad(Array gradient) {
    if (!grad_in_place || !grad) grad = std::move(gradient);
    else if (grad.body() != gradient.body()) grad.copy_from(gradient);
}

// Called when the user's last handle is gone: keeps the shape, which backward needs, and frees the rest.
void VariableNode::forget() noexcept {
    if (unique()) return;  // the destructor frees everything
    users_.reset();        // RefCount::drop() leaves the count at 1
    if (data) make_shell(data);
    grad = Array();
    set_grad_node({});
}

std::vector<Array> GraphNode::forward(std::span<const Array>) const {
    raise<UnsupportedError>(
        "[{}] forward: expected a call that can be computed anew, got one of a class without "
        "forward()",
        label());
}

// Deletes a node without recursion: nodes released while another is deleted wait in a list. The list links
// the nodes themselves, so that it also works during the destruction of static objects.
void GraphNode::destroy(GraphNode* node) noexcept {
    static thread_local constinit GraphNode* waiting = nullptr;
    static thread_local constinit bool busy = false;
    node->next_dead_ = waiting;
    waiting = node;
    if (busy) return;
    busy = true;
    while (waiting) {
        GraphNode* next = waiting;
        waiting = next->next_dead_;
        delete next;
    }
    busy = false;
}

std::string GraphNode::input_name(std::size_t i) const { return fmt::format("input {}", i); }
std::string GraphNode::output_name(std::size_t i) const { return fmt::format("output {}", i); }

std::string GraphNode::created_at() const { return trace_ ? diagnostics().to_string(*trace_) : ""; }

void throw_released(std::string_view label, const std::string& input) {
    raise<GraphError>(
        "[{}] {}: expected data, got only a shape: the graph does not keep the data of a variable "
        "without handles",
        label, input);
}

void GraphNode::check_data(std::span<const Variable> inputs) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] && !has_memory(*inputs[i].data().body()))
            throw_released(label(), input_name(i));
    }
}

// In a call with volatile variables, other variables would silently lose their graph.
void check_volatile(std::span<const Variable* const> inputs, std::string_view label,
                    const std::function<std::string(std::size_t)>& name_of) {
    for (std::size_t i = inputs.size(); i-- > 0;) {
        if (!inputs[i] || !*inputs[i] || !inputs[i]->node().opposes_volatile()) continue;
        raise<GraphError>(
            "[{}] {}: expected a volatile variable as another input is, or a Parameter (what a "
            "link learns, named in its visit()), got neither",
            label, name_of(i));
    }
}

bool GraphNode::record(std::span<const Variable* const> inputs, std::span<const Variable> outputs) {
    bool any = false;
    bool any_volatile = false;
    bool wanted = false;
    for (const Variable* input : inputs) {
        if (!input || !*input) continue;
        any = true;
        any_volatile = any_volatile || input->is_volatile();
        wanted = wanted || input->requires_grad();
    }
    if (any_volatile) check_volatile(inputs, label(), [&](std::size_t i) { return input_name(i); });
    if (config().debug) {
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            if (!outputs[i]) continue;
            diagnostics().check(outputs[i].data(), label(), "forward: " + output_name(i),
                                diagnostics().stack());
        }
    }
    const bool graph = (wanted || !any) && !any_volatile && config().enable_backprop;
    for (const Variable& output : outputs) {
        if (!output) continue;
        output.set_volatile(any_volatile);
        output.set_requires_grad(graph && output.requires_grad());
        output.node().volatile_result = any_volatile;
    }
    if (graph) connect(inputs, outputs, config());
    return graph;
}

void GraphNode::connect(std::span<const Variable* const> inputs, std::span<const Variable> outputs,
                        const Config& now) {
    if (!now.named.empty()) [[unlikely]]
        named_ = keep_named(now);
    if (current_group) group_ = Ref(current_group);
    if (now.debug) trace_ = std::make_unique<std::vector<void*>>(diagnostics().stack());
    inputs_.reserve(inputs.size());
    outputs_.reserve(outputs.size());
    // Nothing below may throw: ~VariableNode() clears outputs_[output_index], which has to exist by then.
    for (const Variable* input : inputs) {
        inputs_.push_back(input ? input->node_ref() : nullptr);
        if (inputs_.back()) rank_ = std::max(rank_, inputs_.back()->rank());
    }
    ++rank_;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        VariableNode* const node = outputs_.emplace_back(outputs[i].node_ref().get());
        if (!node) continue;
        node->creator = Ref<GraphNode>(this);
        node->output_index = static_cast<std::int32_t>(i);
    }
}

void GraphNode::unchain() {
    const Ref<GraphNode> keep(this);
    for (VariableNode* output : outputs_) {
        if (!output) continue;
        output->creator.reset();
        output->unchained = true;
    }
    outputs_.clear();
    inputs_.clear();
    retained_x_.clear();
    retained_y_.clear();
}

void GraphNode::keep(RetainedArrays& list, std::size_t i, const Variable& variable) {
    if (!variable) return;
    const Array& array = variable.data();
    list.push_back({array, version_of(*array.body()), static_cast<std::uint32_t>(i) & 0x7fffffff,
                    variable.requires_grad()});
}

std::string GraphNode::changed() const {
    for (const Retained& kept : retained_x_)
        if (is_changed(kept)) return input_name(kept.index);
    for (const Retained& kept : retained_y_)
        if (is_changed(kept)) return output_name(kept.index);
    return {};
}

void GraphNode::check_retained() const {
    if (outputs_.empty()) raise<GraphError>("[{}] backward: the graph was unchained here", label());
    const std::string name = changed();
    if (name.empty()) return;
    raise<GraphError>(
        "[{}] backward: expected {} unmodified since the call, got one that was changed in place; "
        "host<T>() counts as a change unless T is const",
        label(), name);
}

const GraphNode::Retained* GraphNode::find(const RetainedArrays& list, std::size_t i) {
    if (i < list.size() && list[i].index == i) return &list[i];  // common case: all are retained
    const auto found = std::ranges::find_if(list, [&](const Retained& r) { return r.index == i; });
    return found == list.end() ? nullptr : found;
}

Variable GraphNode::retained_input(std::size_t i) const {
    const Retained* const kept = find(retained_x_, i);
    if (!kept) return {};
    if (!config().enable_backprop) return as_variable(kept->array);
    VariableNode& node = *inputs_[i];
    if (!has_memory(*node.data.body())) node.data = kept->array;
    if (node.data.body() != kept->array.body()) {
        raise<GraphError>("[{}] backward: the data of {} was replaced after the call", label(),
                          input_name(i));
    }
    return Variable(inputs_[i]);
}

Variable GraphNode::retained_output(std::size_t i) {
    const Retained* const kept = find(retained_y_, i);
    if (!kept) return {};
    if (!config().enable_backprop) return as_variable(kept->array);
    if (VariableNode* node = outputs_[i]) {
        if (!has_memory(*node->data.body())) node->data = kept->array;
        return Variable(Ref<VariableNode>(node));
    }
    // The output's node no longer exists: a new node replaces it in the graph.
    Ref<VariableNode> node(new VariableNode(kept->array));
    node->requires_grad = kept->requires_grad;
    node->creator = Ref<GraphNode>(this);
    node->output_index = static_cast<std::int32_t>(i);
    outputs_[i] = node.get();
    return Variable(std::move(node));
}

void GraphNode::backward(std::span<const Array> gy, BackwardPass& pass) {
    const no_backprop_mode scope;
    SmallVector<Variable, 2> variables;
    for (const Array& array : gy) variables.push_back(array ? as_variable(array) : Variable());
    pass.compose(*this, variables);
}

void BackwardPass::add(VariableNode& input, Array gradient) {
    Gradient* const there = slot(input);
    if (!there) {
        note_scale(input);
        return accumulate(input, std::move(gradient));
    }
    Array& array = there->array;
    if (!array) array = std::move(gradient);
    else if (!array.body()->exclusive() || !add_in_place(array, gradient))
        array = sum(array, gradient);
}

void BackwardPass::add(VariableNode& input, const Variable& gradient) {
    Gradient* const there = slot(input);
    if (!there) {
        note_scale(input);
        return accumulate(input, gradient);
    }
    there->variable = there->variable ? sum(there->variable, gradient) : gradient;
}

void accumulate(VariableNode& node, Array gradient) {
    Array& there = node.grad;
    if (!there) {
        // node.grad is written in place later, so no other handle and no recording may share its memory.
        const ArrayBody& body = *gradient.body();
        const bool shared = !body.unique() || (body.base && !body.base->unique());
        there = shared ? gradient.copy() : std::move(gradient);
        return;
    }
    // If other handles exist, the old gradient may be part of a graph or of another sum.
    const bool in_place = node.grad_in_place || there.body()->exclusive();
    if (!in_place) there = sum(there, gradient);
    else if (!add_in_place(there, gradient)) there.copy_from(sum(there, gradient));
    node.set_grad_node({});
}

void accumulate(VariableNode& node, const Variable& gradient) {
    if (node.grad && !node.grad_node) node.set_grad_node(as_variable(node.grad).node_ref());
    const Variable total = node.grad_node ? sum(Variable(node.grad_node), gradient) : gradient;
    node.set_grad_node(total.node_ref());
    node.write_grad(total.data());
}

}  // namespace catena
