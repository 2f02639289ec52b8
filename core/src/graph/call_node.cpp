// Backward of a call: its kernel, or its gradient as a composition of functions.
#include "graph/call_node.hpp"

#include "array/array_ops.hpp"
#include "device/context.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {
namespace {

bool retains(std::uint64_t set, std::uint32_t i, std::uint32_t rest) {
    return i >= rest ? set & CATENA_RETAIN_REST : set >> i & 1;
}

std::uint32_t variadic_from(const FunctionEntry& f) {
    return f.variadic ? f.descriptor.n_inputs - 1 : 63;
}

[[noreturn]] void throw_changed(std::string_view function, std::string_view port) {
    throw GraphError(
        fmt::format("[{}] backward: expected {} as it was at the call, got one that was "
                    "written in place since; host<T>() is a write unless T is const",
                    function, port));
}

bool has_kernel(const catena_plugin& plugin, const catena_kernel& kernel) {
    return std::find(plugin.kernels, plugin.kernels + plugin.n_kernels, &kernel) !=
           plugin.kernels + plugin.n_kernels;
}

catena_var* handle(const Variable& variable) {
    return variable ? reinterpret_cast<catena_var*>(&variable.node()) : nullptr;
}

}  // namespace

CallNode::CallNode(FunctionEntry& function, const BoundAttributes& attributes)
    : function_(function), attributes_(&attributes) {}

void CallNode::record(FunctionEntry& f, const BoundAttributes& attributes,
                      std::span<const Variable* const> inputs, ForwardResult forward,
                      const Config& now, CallResult& result) {
    const Ref<GraphNode> owner(new CallNode(f, attributes));
    auto& node = static_cast<CallNode&>(*owner);
    node.device_ = forward.device;
    node.paired_ = forward.paired;
    node.key_ = forward.key;
    node.flags_ = forward.flags;
    const catena_function& d = f.descriptor;
    const std::uint64_t retain_x = d.retain_x | (node.paired_ ? node.paired_->retain_x : 0);
    const std::uint64_t retain_y = d.retain_y | (node.paired_ ? node.paired_->retain_y : 0);
    const std::size_t n_x = std::max<std::size_t>(inputs.size(), d.n_inputs);
    node.x_.resize(n_x);
    for (std::uint32_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] && *inputs[i] && retains(retain_x, i, variadic_from(f))) {
            node.x_[i] = inputs[i]->data();
        }
    }
    node.y_.resize(d.n_outputs);
    for (std::uint32_t i = 0; i < d.n_outputs; ++i) {
        if (retain_y >> i & 1) node.y_[i] = forward.y[i];
    }
    node.versions_.resize_for_overwrite(n_x + d.n_outputs);
    std::uint32_t* version = node.versions_.data();
    for (const Array& x : node.x_) *version++ = x ? version_of(*x.body()) : 0;
    for (const Array& y : node.y_) *version++ = y ? version_of(*y.body()) : 0;
    node.saved_ = std::move(forward.saved);
    node.connect(inputs, std::span(result.y.data(), result.y.size()), now);
    while (node.inputs_.size() < n_x) node.inputs_.push_back({});
}

std::vector<Array> CallNode::forward(std::span<const Array> inputs) const {
    std::vector<Array> y = forward_arrays(function_, *attributes_, inputs);
    for (std::size_t i = y.size(); i-- > 0;) {
        if (function_.descriptor.outputs[i]->flags & CATENA_PORT_HIDDEN)
            y.erase(y.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return y;
}

// Backward needs the graph, and the values that forward saw.
void CallNode::check_retained() const {
    if (inputs_.empty() && !x_.empty()) {
        throw GraphError(fmt::format("[{}] backward: the graph was unchained here", label()));
    }
    const auto changed = [&](const Array& array, std::uint32_t version) {
        return array && version_of(*array.body()) != version;
    };
    for (std::uint32_t i = 0; i < x_.size(); ++i) {
        if (changed(x_[i], versions_[i])) throw_changed(label(), function_.input_name(i));
    }
    for (std::uint32_t i = 0; i < y_.size(); ++i) {
        if (changed(y_[i], versions_[x_.size() + i])) {
            throw_changed(label(), function_.descriptor.outputs[i]->name);
        }
    }
}

CallNode::Words CallNode::targets() const {
    Words words((inputs_.size() + 63) / 64, 0);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const auto port = function_.port(static_cast<std::uint32_t>(i));
        const bool differentiable =
            !(function_.descriptor.inputs[port]->flags & CATENA_PORT_NON_DIFFERENTIABLE);
        if (differentiable && wants(i)) words[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    return words;
}

// False if there is no kernel for it. Arrays of other devices are copied to this one, and gradients
// back.
bool CallNode::run_kernel(DeviceState& device, std::uint64_t call_key, std::span<const Array> gy,
                          const Words& targets) {
    Queue& queue = current_queue(device);
    const std::size_t n_x = inputs_.size();
    const std::size_t n_y = y_.size();
    SmallVector<const catena_tensor*, 6> x(n_x, nullptr);
    SmallVector<catena_tensor*, 3> y(n_y, nullptr);
    SmallVector<const catena_tensor*, 3> gy_tensors(n_y, nullptr);
    SmallVector<catena_tensor*, 3> saved;
    SmallVector<Array, 2> copies;
    const auto tensor_of = [&](const Array& array) {
        if (array.body()->device == &device) {
            before_read(*array.body(), queue);
            return &array.body()->tensor;
        }
        return &copies.emplace_back(array.to(Device(&device))).body()->tensor;
    };
    for (std::size_t i = 0; i < n_x; ++i) {
        if (x_[i]) x[i] = tensor_of(x_[i]);
    }
    for (std::size_t i = 0; i < n_y; ++i) {
        if (y_[i]) y[i] = tensor_of(y_[i]);
        if (gy[i]) gy_tensors[i] = tensor_of(gy[i]);
    }
    for (const Array& array : saved_) {  // of use to a kernel on its own device alone
        if (array.body()->device == &device) before_read(*array.body(), queue);
        saved.push_back(&array.body()->tensor);
    }

    catena_call call{};
    call.struct_size = sizeof(catena_call);
    call.flags = flags_ | (call_flags(config()) & CATENA_CALL_DETERMINISTIC);
    call.phase = CATENA_PHASE_BACKWARD;
    call.n_saved = static_cast<std::uint32_t>(saved.size());
    call.function = &function_.descriptor;
    call.attrs = attributes_->values();
    call.n_x = static_cast<std::uint32_t>(n_x);
    call.n_y = static_cast<std::uint32_t>(n_y);
    call.x = x.data();
    call.y = y.data();
    call.gy = gy_tensors.data();
    call.saved = saved.data();
    call.targets = targets.data();
    call.stream = queue.native;
    call.dev = device.dev;
    call.device_id = device.ordinal;

    // Where each gradient goes: straight into what is there, or into new memory.
    SmallVector<Array, 4> gx(n_x);
    SmallVector<catena_tensor*, 6> gx_tensors(n_x, nullptr);
    SmallVector<std::uint8_t, 6> req(n_x, CATENA_REQ_NONE);
    const auto place = [&](bool adds) {
        for (std::size_t i = 0; i < n_x; ++i) {
            if (!(targets[i / 64] >> (i % 64) & 1)) continue;
            VariableNode& input = *inputs_[i];
            const Array& there = input.gathers() ? input.pending : input.grad;
            if (req[i] == CATENA_REQ_ADD) {  // of a kernel that declined
                seal(*gx[i].body());
                gx[i] = Array();
            }
            bool first = true;
            for (std::size_t j = 0; j < i; ++j) first = first && !(inputs_[j] == inputs_[i]);
            // A gradient that others see may be an input of this call, or part of a graph.
            const bool own = there && there.body()->device == &device &&
                             there.body()->exclusive() && (input.gathers() || !input.grad_node);
            if (adds && first && own) {
                gx[i] = there;
                before_write(*gx[i].body(), queue);
                unseal(*gx[i].body());
                req[i] = CATENA_REQ_ADD;
            } else {
                if (!gx[i]) gx[i] = empty_like(*input.data.body(), queue);
                req[i] = CATENA_REQ_WRITE;
            }
            gx_tensors[i] = &gx[i].body()->tensor;
        }
        call.gx = gx_tensors.data();
        call.req = req.data();
    };

    catena_ctx ctx;
    ctx.device = &device;
    const auto attempt = [&](const catena_kernel& kernel) {
        place(kernel.flags & CATENA_KERNEL_ADDS);
        if (kernel.supports && !kernel.supports(&ctx, &call)) {
            forget_failure(ctx);
            return false;
        }
        catena_plan plan{sizeof(catena_plan), 0, 0, nullptr};
        if (kernel.plan) {
            const catena_status status = kernel.plan(&ctx, &call, &plan);
            if (status == CATENA_E_UNSUPPORTED) {
                forget_failure(ctx);
                return false;
            }
            if (status != CATENA_OK) throw_failure(ctx, status, std::string(label()) + " backward");
        }
        const Scratch scratch(function_.descriptor, queue, plan.scratch_bytes);
        call.scratch = scratch.get();
        call.scratch_bytes = plan.scratch_bytes;
        note_call(queue, function_.descriptor, CATENA_PHASE_BACKWARD);
        const catena_status status = run_with_room(kernel, ctx, call, queue);
        const std::uint64_t ticket = queue.advance();
        for (const Array& array : gx) {
            if (!array) continue;
            after_write(*array.body(), queue, ticket);
            seal(*array.body());
        }
        if (status != CATENA_OK) throw_failure(ctx, status, std::string(label()) + " backward");
        for (std::size_t i = 0; i < n_x; ++i) {  // these are done; the node holds them alone again
            if (req[i] == CATENA_REQ_ADD) gx[i] = Array();
        }
        for (std::size_t i = 0; i < n_x; ++i) {
            if (req[i] != CATENA_REQ_WRITE) continue;
            DeviceState* home = inputs_[i]->data.body()->device;
            accumulate(*inputs_[i], home == &device ? std::move(gx[i]) : gx[i].to(Device(home)));
        }
        return true;
    };

    const bool deterministic = call.flags & CATENA_CALL_DETERMINISTIC;
    const std::uint64_t key =
        (call_key & ~(std::uint64_t{1} << 16)) | static_cast<std::uint64_t>(deterministic) << 16;
    std::size_t tried = 0;
    if (paired_ && &device == device_) {
        // The wish of now goes before the variant that the call was made with.
        const Selection* wish = function_.pinned() ? &function_.select(key, device) : nullptr;
        if (wish && wish->n_pinned && !has_kernel(*wish->pin->table, *paired_)) {
            for (; tried < wish->n_pinned; ++tried) {
                if (attempt(*wish->backward[tried])) return true;
            }
        }
        if (attempt(*paired_)) return true;
    }
    const auto& others = function_.select(key, device).backward;
    for (; tried < others.size(); ++tried) {
        if (attempt(*others[tried])) return true;
    }
    return false;
}

void CallNode::backward(std::span<const Array> gy) {
    check_retained();
    const Words wanted = targets();
    if (run_kernel(*device_, key_, gy, wanted)) return;
    const catena_function& d = function_.descriptor;
    DeviceState* other = d.gradient || d.grad_function ? nullptr : Device::fallback().state();
    const std::uint64_t dtypes = key_ & 0xffff;
    if (other && other != device_ &&
        run_kernel(*other, selection_key(other->index, false, dtypes), gy, wanted))
        return;
    const no_backprop_mode scope;
    SmallVector<Variable, 2> variables;
    for (const Array& array : gy) variables.push_back(array ? as_variable(array) : Variable());
    SmallVector<Variable, 4> gx =
        compose(std::span(variables.data(), variables.size()), wanted, false);
    variables.clear();
    for (std::size_t i = 0; i < gx.size(); ++i) {
        if (!gx[i]) continue;
        Array gradient = gx[i].data();
        gx[i] = Variable();
        accumulate(*inputs_[i], std::move(gradient));
    }
}

void CallNode::backward(std::span<const Variable> gy) {
    check_retained();
    const force_backprop_mode scope;
    const SmallVector<Variable, 4> gx = compose(gy, targets(), true);
    for (std::size_t i = 0; i < gx.size(); ++i) {
        if (gx[i]) accumulate(*inputs_[i], gx[i]);
    }
}

Variable CallNode::retained_input(std::size_t i, bool record) {
    if (!x_[i]) return {};
    if (!record) return as_variable(x_[i]);
    VariableNode& node = *inputs_[i];
    if (!has_memory(*node.data.body())) node.data = x_[i];
    if (node.data.body() != x_[i].body()) {
        throw GraphError(fmt::format("[{}] backward: the data of {} was replaced after the call",
                                     label(), function_.input_name(static_cast<std::uint32_t>(i))));
    }
    return Variable(inputs_[i]);
}

Variable CallNode::retained_output(std::size_t i, bool record) {
    if (!y_[i]) return {};
    if (!record) return as_variable(y_[i]);
    if (VariableNode* node = outputs_[i]) {
        if (!has_memory(*node->data.body())) node->data = y_[i];
        return Variable(Ref<VariableNode>(node));
    }
    // The user let it go: a new node takes its place in the graph.
    Ref<VariableNode> node(new VariableNode(y_[i]));
    node->requires_grad = !(function_.descriptor.outputs[i]->flags &
                            (CATENA_PORT_NON_DIFFERENTIABLE | CATENA_PORT_HIDDEN));
    node->creator = Ref<GraphNode>(this);
    node->output_index = static_cast<std::int32_t>(i);
    outputs_[i] = node.get();
    return Variable(std::move(node));
}

SmallVector<Variable, 4> CallNode::compose(std::span<const Variable> gy, const Words& wanted,
                                           bool record) {
    const catena_function& d = function_.descriptor;
    const using_config train(&Config::train, flags_ & CATENA_CALL_TRAIN);  // as the call was made
    const std::size_t n_x = inputs_.size();
    SmallVector<Variable, 4> gx(n_x);
    SmallVector<Variable, 4> x(n_x);
    SmallVector<Variable, 2> y(y_.size());
    for (std::size_t i = 0; i < n_x; ++i) x[i] = retained_input(i, record);
    for (std::size_t i = 0; i < y_.size(); ++i) y[i] = retained_output(i, record);
    if (d.grad_function) {
        FunctionEntry& gradient = function_.gradient();
        SmallVector<const Variable*, 6> inputs;
        for (std::uint32_t i = 0; i < n_x; ++i) {
            if (retains(d.retain_x, i, variadic_from(function_))) inputs.push_back(&x[i]);
        }
        for (std::uint32_t i = 0; i < y.size(); ++i) {
            if (d.retain_y >> i & 1) inputs.push_back(&y[i]);
        }
        for (const Variable& g : gy) inputs.push_back(&g);
        CallResult result;
        call_function(gradient, *attributes_, std::span(inputs.data(), inputs.size()), result);
        std::size_t output = 0;
        for (std::uint32_t i = 0; i < n_x; ++i) {
            if (d.inputs[function_.port(i)]->flags & CATENA_PORT_NON_DIFFERENTIABLE) continue;
            if (output >= result.y.size()) break;
            if (wanted[i / 64] >> (i % 64) & 1) gx[i] = result.y[output];
            ++output;
        }
        return gx;
    }
    if (!d.gradient) {
        throw NotDifferentiableError(
            record ? fmt::format("[{}] backward: it has no gradient of higher order: neither "
                                 "gradient() nor grad_function",
                                 d.name)
                   : fmt::format("[{}] backward: no kernel for it on {} and no gradient()", d.name,
                                 device_->name));
    }
    SmallVector<catena_var*, 6> x_vars;
    SmallVector<catena_var*, 3> y_vars;
    SmallVector<catena_var*, 3> gy_vars;
    SmallVector<catena_var*, 6> gx_vars(n_x, nullptr);
    for (const Variable& v : x) x_vars.push_back(handle(v));
    for (const Variable& v : y) y_vars.push_back(handle(v));
    for (const Variable& v : gy) gy_vars.push_back(handle(v));
    SmallVector<Variable, 8> made;
    catena_ctx ctx;
    ctx.device = device_;
    ctx.variables = &made;
    SmallVector<const catena_meta*, 6> x_metas;
    for (const auto& input : inputs_)
        x_metas.push_back(input ? &input->data.body()->meta : nullptr);
    const catena_gradient_call call{.struct_size = sizeof(catena_gradient_call),
                                    .flags = flags_,
                                    .function = &d,
                                    .attrs = attributes_->values(),
                                    .n_x = static_cast<std::uint32_t>(n_x),
                                    .n_y = static_cast<std::uint32_t>(y.size()),
                                    .x = x_vars.data(),
                                    .y = y_vars.data(),
                                    .gy = gy_vars.data(),
                                    .gx = gx_vars.data(),
                                    .targets = wanted.data(),
                                    .x_meta = x_metas.data()};
    const catena_status status = d.gradient(&ctx, &call);
    bool complete = true;
    for (std::size_t i = 0; i < n_x; ++i) {
        complete = complete && (gx_vars[i] || !(wanted[i / 64] >> (i % 64) & 1));
    }
    // A gradient that is not there because a call failed is no zero, whatever the plugin says.
    if (status != CATENA_OK || (!complete && ctx.status != CATENA_OK)) {
        throw_failure(ctx, status != CATENA_OK ? status : ctx.status,
                      std::string(d.name) + " gradient");
    }
    for (std::size_t i = 0; i < n_x; ++i) {
        if (!gx_vars[i] || !(wanted[i / 64] >> (i % 64) & 1)) continue;
        Ref<VariableNode> node(reinterpret_cast<VariableNode*>(gx_vars[i]));
        const catena_meta& want = inputs_[i]->data.body()->meta;
        const catena_meta& got = node->data.body()->meta;
        if (!same(want.dtype, got.dtype) || want.ndim != got.ndim ||
            !std::equal(want.shape, want.shape + want.ndim, got.shape)) {
            throw ShapeError(fmt::format("[{}] gradient of {}: expected {} {}, got {} {}", d.name,
                                         function_.input_name(static_cast<std::uint32_t>(i)),
                                         shape_to_string(want.shape, want.ndim), name(want.dtype),
                                         shape_to_string(got.shape, got.ndim), name(got.dtype)));
        }
        gx[i] = Variable(std::move(node));
    }
    return gx;
}

void CallNode::unchain() {
    const Ref<GraphNode> keep(this);
    GraphNode::unchain();
    for (Array& array : x_) array = Array();
    for (Array& array : y_) array = Array();
    saved_.clear();
}

}  // namespace catena
