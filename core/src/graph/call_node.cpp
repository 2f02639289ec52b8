// Calls on variables, and their gradients, computed by kernels or as compositions of functions.
#include "graph/backward_pass.hpp"
#include "graph/call.hpp"

#include <catena/core/grad.hpp>

namespace catena {
namespace {

bool retains(std::uint64_t set, std::uint32_t i, const FunctionEntry& f) {
    const std::uint32_t rest = f.variadic ? f.descriptor.n_inputs - 1 : 63;
    return i >= rest ? set & CATENA_RETAIN_REST : set >> i & 1;
}

bool has_kernel(const catena_plugin& plugin, const catena_kernel& kernel) {
    return std::ranges::count(std::span(plugin.kernels, plugin.n_kernels), &kernel) > 0;
}

bool contains(std::span<const std::uint64_t> targets, std::size_t i) {
    return targets[i / 64] >> (i % 64) & 1;
}

// Returns a variable without a graph that is volatile if x is.
Variable leaf_like(const Variable& x, const Array& data) {
    Variable leaf = as_variable(data);
    leaf.set_volatile(x.is_volatile());
    return leaf;
}

// Calls the function with converted inputs. Returns false if no input needs that.
bool call_promoted(FunctionEntry& f, const BoundAttributes& attributes,
                   std::span<const Variable* const> given, std::span<ArrayBody* const> x,
                   Results& results) {
    SmallVector<Array, 6> numbers;
    if (!promote(f, x, numbers)) return false;
    SmallVector<Variable, 6> variables(given.size());
    SmallVector<const Variable*, 6> inputs(given.begin(), given.end());
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (!numbers[i]) continue;
        variables[i] = leaf_like(*given[i], numbers[i]);
        inputs[i] = &variables[i];
    }
    results = call_function(f, attributes, inputs);
    return true;
}

// Whether gradients are those of the composition, which needs all inputs.
bool has_gradient_of_composition(const catena_function& d) {
    return d.compose && !d.gradient && !d.grad_function;
}

}  // namespace

// The graph node of a call to a registered function.
class CallNode final : public GraphNode {
public:
    static void record(FunctionEntry& f, const BoundAttributes& attributes,
                       std::span<const Variable* const> inputs, ForwardResult& forward,
                       std::span<const Variable> outputs, const Config& now) {
        const catena_function& d = f.descriptor;
        const catena_kernel* const paired = forward.paired;
        const std::uint64_t retain_x = has_gradient_of_composition(d)
                                           ? ~std::uint64_t{0}
                                           : d.retain_x | (paired ? paired->retain_x : 0);
        const std::uint64_t retain_y = d.retain_y | (paired ? paired->retain_y : 0);
        const Ref node(new CallNode(f, attributes, forward));
        for (std::uint32_t i = 0; i < inputs.size(); ++i)
            if (inputs[i] && retains(retain_x, i, f)) node->retain_input(i, *inputs[i]);
        for (std::uint32_t i = 0; i < outputs.size(); ++i)
            if (retain_y >> i & 1) node->retain_output(i, outputs[i]);
        node->connect(inputs, outputs, now);
        while (node->inputs_.size() < d.n_inputs) node->inputs_.push_back({});
    }

    std::string_view label() const noexcept override { return function_.descriptor.name; }
    std::string input_name(std::size_t i) const override { return function_.input_name(i); }
    std::string output_name(std::size_t i) const override {
        return function_.descriptor.outputs[i]->name;
    }
    std::vector<Array> forward(std::span<const Array> inputs) const override {
        SmallVector<Array, 2> all = forward_arrays(function_, *attributes_, inputs).y;
        std::vector<Array> y;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!(function_.descriptor.outputs[i]->flags & CATENA_PORT_HIDDEN))
                y.push_back(std::move(all[i]));
        }
        return y;
    }
    void unchain() override {
        const Ref<GraphNode> keep(this);
        GraphNode::unchain();
        forward_.saved.clear();
    }

private:
    using Words = SmallVector<std::uint64_t, 1>;

    // Computes the gradients of a call with backward kernels of one device. Arrays of other devices are
    // copied to this device, and their gradients are copied back.
    class KernelGradients {
    public:
        KernelGradients(CallNode& node, Queue& queue, std::span<const Array> gy,
                        std::span<const std::uint64_t> targets, BackwardPass& pass)
            : node_(node),
              queue_(queue),
              pass_(pass),
              targets_(targets),
              tensors_(2 * node.inputs_.size() + 2 * gy.size() + node.forward_.saved.size(),
                       nullptr),
              gx_tensors_(tensors_.data() + node.inputs_.size()),
              gx_(node.inputs_.size()),
              req_(node.inputs_.size(), CATENA_REQ_NONE),
              run_(node.function_, *node.attributes_, queue, CATENA_PHASE_BACKWARD,
                   node.forward_.flags | (call_flags(config()) & CATENA_CALL_DETERMINISTIC)) {
            catena_tensor** const x = tensors_.data();
            catena_tensor** const y = gx_tensors_ + gx_.size();
            catena_tensor** const all_gy = y + gy.size();
            catena_tensor** const saved = all_gy + gy.size();
            for (const Retained& kept : node.retained_x_) x[kept.index] = read(kept.array);
            for (const Retained& kept : node.retained_y_) y[kept.index] = read(kept.array);
            for (std::size_t i = 0; i < gy.size(); ++i)
                if (gy[i]) all_gy[i] = read(gy[i]);
            for (std::size_t i = 0; i < node.forward_.saved.size(); ++i) {
                // Not copied: only kernels of the tensor's own device read it.
                ArrayBody& body = *node.forward_.saved[i].body();
                if (body.device == &queue.device) before_read(body, queue);
                saved[i] = &body.tensor;
            }
            catena_call& call = run_.call;
            call.n_saved = static_cast<std::uint32_t>(node.forward_.saved.size());
            call.n_x = static_cast<std::uint32_t>(gx_.size());
            call.n_y = static_cast<std::uint32_t>(gy.size());
            call.x = x;
            call.y = y;
            call.gy = all_gy;
            call.saved = saved;
            call.targets = targets.data();
            call.gx = gx_tensors_;
            call.req = req_.data();
        }
        // Returns false if the kernel declines.
        bool attempt(const catena_kernel& kernel) {
            run_.writes.clear();
            for (std::size_t i = 0; i < gx_.size(); ++i)
                if (contains(targets_, i)) place(i, kernel.flags & CATENA_KERNEL_ADDS);
            if (!run_.attempt(kernel)) return false;
            for (std::size_t i = 0; i < gx_.size(); ++i) {
                if (req_[i] != CATENA_REQ_ADD) continue;
                gx_[i] = Array();  // the handle to the sum
                pass_.note_scale(*node_.inputs_[i]);
            }
            for (std::size_t i = 0; i < gx_.size(); ++i) {
                if (req_[i] != CATENA_REQ_WRITE) continue;
                VariableNode& input = *node_.inputs_[i];
                DeviceState* const home = input.data.body()->device;
                pass_.add(input,
                          home == &queue_.device ? std::move(gx_[i]) : gx_[i].to(Device(home)));
            }
            return true;
        }
        std::uint32_t flags() const { return run_.call.flags; }

    private:
        catena_tensor* read(const Array& array) {
            if (array.body()->device != &queue_.device)
                return &copies_.emplace_back(array.to(Device(&queue_.device))).body()->tensor;
            before_read(*array.body(), queue_);
            return &array.body()->tensor;
        }
        // Sets the destination of gradient i: the sum so far if the kernel can add to it, else new memory.
        void place(std::size_t i, bool adds) {
            const VariableNode& input = *node_.inputs_[i];
            if (req_[i] == CATENA_REQ_ADD) gx_[i] = Array();  // left by a kernel that declined
            const Array* const there = adds ? pass_.so_far(input) : nullptr;
            if (there && can_add_to(i, *there)) {
                gx_[i] = *there;
                req_[i] = CATENA_REQ_ADD;
                run_.writes.add(*there->body());
            } else {
                if (!gx_[i]) gx_[i] = empty_like(*input.data.body(), queue_);
                req_[i] = CATENA_REQ_WRITE;
                run_.writes.add_new(*gx_[i].body());
            }
            gx_tensors_[i] = &gx_[i].body()->tensor;
        }
        // Whether a kernel may add to the sum: no other handle, graph or earlier input refers to it.
        bool can_add_to(std::size_t i, const Array& there) const {
            const auto& inputs = node_.inputs_;
            return there.body()->device == &queue_.device && there.body()->exclusive() &&
                   !inputs[i]->grad_node &&
                   std::find(inputs.begin(), inputs.begin() + i, inputs[i]) == inputs.begin() + i;
        }

        CallNode& node_;
        Queue& queue_;
        BackwardPass& pass_;
        const std::span<const std::uint64_t> targets_;
        SmallVector<Array, 2> copies_;
        SmallVector<catena_tensor*, 18> tensors_;  // of x, gx, y, gy and saved, in this order
        catena_tensor** const gx_tensors_;
        SmallVector<Array, 4> gx_;
        SmallVector<std::uint8_t, 6> req_;
        KernelRun run_;
    };

    CallNode(FunctionEntry& function, const BoundAttributes& attributes, ForwardResult& forward)
        : function_(function), attributes_(&attributes), forward_(std::move(forward)) {}
    // Returns a bit set of the inputs that are differentiable and wanted.
    template <class Wanted>
    Words targets_of(const Wanted& wanted) const {
        Words targets((inputs_.size() + 63) / 64, 0);
        for (std::size_t i = 0; i < inputs_.size(); ++i)
            if (function_.is_differentiable(i) && wanted(i))
                targets[i / 64] |= std::uint64_t{1} << (i % 64);
        return targets;
    }
    // Returns false if no kernel of the device accepts the call.
    bool run_kernel(DeviceState& device, std::span<const Array> gy, BackwardPass& pass) {
        const Words targets =
            targets_of([&](std::size_t i) { return pass.wants(inputs_[i].get()); });
        if (std::ranges::count(targets, 0u) == std::ssize(targets)) return true;
        KernelGradients call(*this, current_queue(device), gy, targets, pass);
        const std::uint64_t key = selection_key(device.index, call.flags(), forward_.key & 0xffff);
        std::size_t tried = 0;
        if (forward_.paired && &device == forward_.device) {
            // A pin that was set after the forward call takes precedence over the variant of that call.
            const Selection* wish = function_.pinned ? &function_.select(key, device) : nullptr;
            if (wish && wish->n_pinned && !has_kernel(*wish->pin->table, *forward_.paired)) {
                for (; tried < wish->n_pinned; ++tried)
                    if (call.attempt(*wish->backward[tried])) return true;
            }
            if (call.attempt(*forward_.paired)) return true;
        }
        const auto& others = function_.select(key, device).backward;
        for (; tried < others.size(); ++tried)
            if (call.attempt(*others[tried])) return true;
        return false;
    }
    void backward(std::span<const Array> gy, BackwardPass& pass) override {
        check_retained();
        if (run_kernel(*forward_.device, gy, pass)) return;
        const catena_function& d = function_.descriptor;
        DeviceState* other =
            d.gradient || d.grad_function || d.compose ? nullptr : Device::fallback().state();
        if (other && other != forward_.device && run_kernel(*other, gy, pass)) return;
        GraphNode::backward(gy, pass);
    }
    void gradients(std::span<const Variable> gy, std::span<const bool> wanted,
                   std::span<Variable> gx) override {
        const catena_function& d = function_.descriptor;
        // As in the forward call.
        constexpr std::uint32_t rounded = CATENA_CALL_BFLOAT16 | CATENA_CALL_FLOAT16;
        const using_config train(&Config::train, forward_.flags & CATENA_CALL_TRAIN);
        const using_config products(&Config::products, Products(forward_.flags & rounded));
        SmallVector<Variable, 4> x(gx.size());
        SmallVector<Variable, 2> y(gy.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            x[i] = retained_input(i);
            if (x[i] && !function_.is_differentiable(i)) x[i] = as_variable(x[i].data());
        }
        for (std::size_t i = 0; i < y.size(); ++i) y[i] = retained_output(i);
        if (d.grad_function) return call_grad_function(x, y, gy, wanted, gx);
        if (has_gradient_of_composition(d)) return run_composition(x, gy, wanted, gx);
        if (!d.gradient) {
            throw NotDifferentiableError(
                config().enable_backprop
                    ? fmt::format("[{}] backward: it has no gradient of higher order: neither "
                                  "gradient() nor grad_function",
                                  d.name)
                    : fmt::format("[{}] backward: no kernel for it on {} and no gradient()", d.name,
                                  forward_.device->name));
        }
        call_gradient(x, y, gy, targets_of([&](std::size_t i) { return wanted[i]; }), gx);
    }
    void call_grad_function(std::span<const Variable> x, std::span<const Variable> y,
                            std::span<const Variable> gy, std::span<const bool> wanted,
                            std::span<Variable> gx) {
        const catena_function& d = function_.descriptor;
        SmallVector<const Variable*, 6> inputs;
        for (std::uint32_t i = 0; i < x.size(); ++i)
            if (retains(d.retain_x, i, function_)) inputs.push_back(&x[i]);
        for (std::uint32_t i = 0; i < y.size(); ++i)
            if (d.retain_y >> i & 1) inputs.push_back(&y[i]);
        for (const Variable& g : gy) inputs.push_back(&g);
        const Results results = call_function(function_.gradient(), *attributes_, inputs);
        std::size_t next = 0;
        for (std::size_t i = 0; i < gx.size() && next < results.size(); ++i) {
            if (!function_.is_differentiable(i)) continue;
            if (wanted[i]) gx[i] = results[next];
            ++next;
        }
    }
    // Runs the composition, and computes the gradients of its results.
    void run_composition(std::span<const Variable> x, std::span<const Variable> gy,
                         std::span<const bool> wanted, std::span<Variable> gx) {
        const bool higher_order = config().enable_backprop;
        std::vector<Variable> inputs(x.begin(), x.end());
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (!x[i]) continue;
            if (!higher_order) {
                inputs[i] = as_variable(x[i].data());
                inputs[i].set_requires_grad(wanted[i]);
            } else if (wanted[i]) {
                inputs[i] = copy_in_graph(x[i]);
            }
        }
        const force_backprop_mode scope;
        const using_draws again(forward_.draws.get(), true);
        SmallVector<const Variable*, 6> given;
        for (const Variable& input : inputs) given.push_back(&input);
        const Results y = compose(function_, *attributes_, given, *forward_.device, forward_.flags);
        std::vector<Variable> outputs, grad_outputs, of;
        for (std::size_t i = 0; i < gy.size(); ++i) {
            if (!gy[i] || !y[i].requires_grad()) continue;
            outputs.push_back(y[i]);
            grad_outputs.push_back(gy[i]);
        }
        for (std::size_t i = 0; i < inputs.size(); ++i)
            if (wanted[i]) of.push_back(inputs[i]);
        if (outputs.empty()) return;
        const auto results =
            grad(outputs, of, grad_outputs, {}, {.enable_double_backprop = higher_order});
        std::size_t next = 0;
        for (std::size_t i = 0; i < gx.size(); ++i)
            if (wanted[i]) gx[i] = results[next++];
    }
    void call_gradient(std::span<const Variable> x, std::span<const Variable> y,
                       std::span<const Variable> gy, const Words& targets, std::span<Variable> gx) {
        const catena_function& d = function_.descriptor;
        const auto handles = [](std::span<const Variable> of) {
            SmallVector<catena_var*, 6> all;
            for (const Variable& variable : of) all.push_back(handle(&variable));
            return all;
        };
        const auto x_vars = handles(x), y_vars = handles(y), gy_vars = handles(gy);
        SmallVector<catena_var*, 6> gx_vars(gx.size(), nullptr);
        SmallVector<Variable, 8> made;
        catena_ctx ctx;
        ctx.device = forward_.device;
        ctx.variables = &made;
        SmallVector<const catena_meta*, 6> x_metas;
        for (const auto& input : inputs_)
            x_metas.push_back(input ? &input->data.body()->meta : nullptr);
        const catena_gradient_call call{.struct_size = sizeof(catena_gradient_call),
                                        .flags = forward_.flags,
                                        .function = &d,
                                        .attrs = attributes_->values(),
                                        .n_x = static_cast<std::uint32_t>(x.size()),
                                        .n_y = static_cast<std::uint32_t>(y.size()),
                                        .x = x_vars.data(),
                                        .y = y_vars.data(),
                                        .gy = gy_vars.data(),
                                        .gx = gx_vars.data(),
                                        .targets = targets.data(),
                                        .x_meta = x_metas.data()};
        const catena_status status = d.gradient(&ctx, &call);
        bool complete = true;
        for (std::size_t i = 0; i < gx.size(); ++i) {
            if (!contains(targets, i)) continue;
            complete = complete && gx_vars[i];
            gx[i] = Variable(Ref<VariableNode>(reinterpret_cast<VariableNode*>(gx_vars[i])));
        }
        // If a host call failed, a missing gradient is an error, not zero, even if the plugin returns OK.
        if (status != CATENA_OK || (!complete && ctx.status != CATENA_OK)) {
            throw_failure(ctx, status != CATENA_OK ? status : ctx.status,
                          std::string(d.name) + " gradient");
        }
    }

    FunctionEntry& function_;
    const Ref<const BoundAttributes> attributes_;
    ForwardState forward_;
};

namespace {

// Makes the results of a call, and records it if `graph` is set.
Results record(FunctionEntry& f, const BoundAttributes& attributes,
               std::span<const Variable* const> given, ForwardResult& forward, bool graph,
               bool is_volatile, const Config& now) {
    const catena_function& d = f.descriptor;
    Results results;
    for (std::uint32_t i = 0; i < d.n_outputs; ++i) {
        Ref<VariableNode> node(new VariableNode(forward.y[i]));
        node->is_volatile = node->volatile_result = is_volatile;
        node->requires_grad =
            graph &&
            !(d.outputs[i]->flags & (CATENA_PORT_NON_DIFFERENTIABLE | CATENA_PORT_HIDDEN)) &&
            is_floating(static_cast<Dtype>(dtype_index(forward.y[i].body()->meta.dtype)));
        results.push_back(Variable(std::move(node)));
    }
    if (graph) CallNode::record(f, attributes, given, forward, results, now);
    return results;
}

// Whether calls do not ask for kernels.
bool prefers_composition(const FunctionEntry& f, const Config& now) {
    if (!f.descriptor.compose) return false;
    return shapes_only ? !f.descriptor.infer : now.compositions || !f.has_kernels;
}

// Returns arrays like the results of a function without infer() that has kernels; none for others.
SmallVector<Array, 2> like_results(FunctionEntry& f, const BoundAttributes& attributes,
                                   std::span<ArrayBody* const> x) {
    if (f.descriptor.infer) [[likely]]
        return {};
    SmallVector<Array, 6> inputs;
    for (ArrayBody* body : x) inputs.push_back(Array(Ref(body)));
    return infer_arrays(f, attributes, inputs);
}

// Runs a call as a composition. x: the arrays of `given`, and null for each missing port.
Results call_composition(FunctionEntry& f, const BoundAttributes& attributes,
                         std::span<const Variable* const> given, std::span<ArrayBody* const> x,
                         const Config& now, bool graph) {
    const catena_function& d = f.descriptor;
    ForwardInputs in(f, x);
    bool is_volatile = false;
    SmallVector<const Variable*, 6> inputs(x.size());
    SmallVector<Variable, 1> constants;  // for inputs that get no gradient
    constants.reserve(x.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (!x[i]) continue;
        inputs[i] = given[i];
        is_volatile = is_volatile || given[i]->is_volatile();
        if (!f.is_differentiable(i) && given[i]->requires_grad() && !given[i]->is_volatile())
            inputs[i] = &constants.emplace_back(as_variable(given[i]->data()));
    }
    const bool recomputed = graph && d.flags & CATENA_FUNCTION_RECOMPUTED;
    const bool is_node = recomputed || d.gradient || d.grad_function;
    ForwardResult forward;
    forward.flags = call_flags(now);
    if (recomputed) forward.draws = std::make_unique<std::vector<RandomState>>();
    const bool parts = !is_node && !(d.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE);
    Results results = [&] {
        const using_draws kept(forward.draws.get(), false);
        const using_config recorded(&Config::enable_backprop, parts && now.enable_backprop);
        return compose(f, attributes, inputs, *in.device, forward.flags);
    }();
    for (std::uint32_t i = 0; i < d.n_outputs; ++i) {
        const catena_port_spec& port = *d.outputs[i];
        in.key.add(f.output_type[i], results[i].data().body()->meta.dtype,
                   [&] { return std::string(port.name); });
        if (is_node) forward.y.push_back(results[i].data());
        else if (port.flags & (CATENA_PORT_NON_DIFFERENTIABLE | CATENA_PORT_HIDDEN))
            results[i] = leaf_like(results[i], results[i].data());  // others may need its graph
    }
    if (!is_node) return results;
    forward.device = in.device;
    forward.key = selection_key(in.device->index, forward.flags, in.key.bits());
    return record(f, attributes, given, forward, graph, is_volatile, now);
}

// The same for arrays, without a graph.
ForwardResult composed_arrays(FunctionEntry& f, const BoundAttributes& attributes,
                              std::span<ArrayBody* const> x, const Config& now) {
    SmallVector<Variable, 4> inputs(x.size());
    SmallVector<const Variable*, 4> given;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i]) inputs[i] = as_variable(Array(Ref(x[i])));
        given.push_back(&inputs[i]);
    }
    ForwardResult result;
    for (const Variable& y : call_composition(f, attributes, given, x, now, false))
        result.y.push_back(y.data());
    return result;
}

}  // namespace

Results call_function(FunctionEntry& f, const BoundAttributes& attributes,
                      std::span<const Variable* const> given) {
    const catena_function& d = f.descriptor;
    check_arity(f, given.size());
    SmallVector<ArrayBody*, 6> x;
    bool wanted = false;
    bool is_volatile = false;
    bool may_convert = d.flags & CATENA_FUNCTION_PROMOTES;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const Variable* input = given[i];
        const bool present = input && *input;
        x.push_back(present ? input->data().body() : nullptr);
        if (!present) continue;
        if (!has_memory(*x.back()) && !shapes_only) throw_released(d.name, f.input_name(i));
        is_volatile = is_volatile || input->is_volatile();
        may_convert = may_convert || x.back()->meta.dtype.code == CATENA_CODE_BOOL;
        wanted = wanted || (input->requires_grad() && f.is_differentiable(i));
    }
    while (x.size() < d.n_inputs) x.push_back(nullptr);
    Results results;
    if (may_convert && call_promoted(f, attributes, given, x, results)) return results;
    if (is_volatile) check_volatile(given, d.name, [&](std::size_t i) { return f.input_name(i); });
    const Config& now = config();
    const bool graph = wanted && !is_volatile && now.enable_backprop &&
                       !(d.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE);

    if (prefers_composition(f, now)) return call_composition(f, attributes, given, x, now, graph);
    ForwardResult forward =
        run_forward(f, attributes, x, now, graph, like_results(f, attributes, x));
    if (forward.composed) return call_composition(f, attributes, given, x, now, graph);
    if (now.debug) [[unlikely]]
        diagnostics().check_forward(f, x, forward.y);
    return record(f, attributes, given, forward, graph, is_volatile, now);
}

ForwardResult forward_arrays(FunctionEntry& f, const BoundAttributes& attributes,
                             std::span<const Array> inputs) {
    check_arity(f, inputs.size());
    SmallVector<ArrayBody*, 6> x;
    bool may_convert = f.descriptor.flags & CATENA_FUNCTION_PROMOTES;
    for (const Array& input : inputs) {
        x.push_back(input.body());
        may_convert = may_convert || (input && input.body()->meta.dtype.code == CATENA_CODE_BOOL);
    }
    while (x.size() < f.descriptor.n_inputs) x.push_back(nullptr);
    SmallVector<Array, 6> numbers;
    if (may_convert && promote(f, x, numbers)) [[unlikely]] {
        for (std::size_t i = 0; i < x.size(); ++i)
            if (numbers[i]) x[i] = numbers[i].body();
    }
    const Config& now = config();
    if (prefers_composition(f, now)) return composed_arrays(f, attributes, x, now);
    ForwardResult result =
        run_forward(f, attributes, x, now, false, like_results(f, attributes, x));
    if (result.composed) return composed_arrays(f, attributes, x, now);
    if (now.debug) [[unlikely]]
        diagnostics().check_forward(f, x, result.y);
    return result;
}

SmallVector<Array, 2> infer_arrays(FunctionEntry& f, const BoundAttributes& attributes,
                                   std::span<const Array> inputs) {
    const using_value scope(shapes_only, true);
    return forward_arrays(f, attributes, inputs).y;
}

}  // namespace catena
