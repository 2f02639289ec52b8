// The hot path of every call.
#include "dispatch/dispatch.hpp"

#include "array/array_ops.hpp"
#include "device/context.hpp"
#include "dispatch/call_inputs.hpp"
#include "dispatch/debug.hpp"
#include "dispatch/dispatch_errors.hpp"
#include "dispatch/observed_call.hpp"
#include "dispatch/stack_trace.hpp"
#include "graph/call_node.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {

std::uint32_t call_flags(const Config& now) noexcept {
    std::uint32_t flags = 0;
    if (now.train) flags |= CATENA_CALL_TRAIN;
    if (now.deterministic) flags |= CATENA_CALL_DETERMINISTIC;
    return flags;
}

namespace {

// A second run gives what the first would have given.
bool can_run_again(const catena_call& call, const catena_ctx& ctx) {
    if (ctx.draws > 1) return false;  // the context knows of one
    if (call.phase == CATENA_PHASE_BACKWARD)
        return std::find(call.req, call.req + call.n_x, CATENA_REQ_ADD) == call.req + call.n_x;
    const catena_function& f = *call.function;
    return std::none_of(f.inputs, f.inputs + f.n_inputs,
                        [](const catena_port_spec* p) { return p->flags & CATENA_PORT_MUTATED; });
}

}  // namespace

catena_status run_with_room(const catena_kernel& kernel, catena_ctx& ctx, const catena_call& call,
                            Queue& queue) {
    ctx.draws = 0;  // plan() has its own
    ctx.draws_again = false;
    const ObservedCall observed(queue);
    catena_status status = kernel.run(&ctx, &call);
    if (status == CATENA_E_NOMEM && can_run_again(call, ctx) && make_room(ctx, status)) {
        ctx.draws_again = ctx.draws == 1;
        ctx.draws = 0;
        status = kernel.run(&ctx, &call);
    }
    const catena_call* const calls[] = {&call};
    observed.end(kernel, calls);
    return status;
}

namespace {

// What a kernel saves is its own, but the host has to know its size.
bool has_whole_bytes(catena_dtype dtype) {
    return dtype.lanes == 1 && dtype.bits >= 8 && dtype.bits <= 64 && dtype.bits % 8 == 0;
}

// Where this call runs instead, or null.
DeviceState* fallback_for(const DeviceState& device) {
    DeviceState* other = Device::fallback().state();
    return other == &device ? nullptr : other;
}

// On the device `other`; result.y is there already, to be filled.
void run_elsewhere(FunctionEntry& f, const BoundAttributes& attributes,
                   std::span<ArrayBody* const> x, const Config& now, bool needs_backward,
                   DeviceState& other, ForwardResult& result) {
    const catena_function& d = f.descriptor;
    host_table().log(nullptr, CATENA_LOG_DEBUG,
                     fmt::format("[{}] no kernel for {} on {}: runs on {}", d.name,
                                 describe_inputs(f, x), result.device->name, other.name)
                         .c_str());
    SmallVector<Array, 6> copies;
    SmallVector<ArrayBody*, 6> bodies;
    for (ArrayBody* body : x) {
        copies.push_back(body ? Array(Ref(body)).to(Device(&other)) : Array());
        bodies.push_back(body ? copies.back().body() : nullptr);
    }
    const using_device scope{Device(&other)};  // for a call without inputs
    const struct Draws {
        DeviceState* before = draws_from;
        explicit Draws(DeviceState* own) { draws_from = before ? before : own; }
        ~Draws() { draws_from = before; }
    } draws(result.device);
    ForwardResult there;
    run_forward(f, attributes, {bodies.data(), bodies.size()}, now, needs_backward, there);
    const auto bring = [](const Array& to, const Array& from) {
        to.copy_from(from);
        seal(*to.body());
    };
    for (std::uint32_t i = 0; i < d.n_outputs; ++i) bring(result.y[i], there.y[i]);
    for (std::uint32_t i = 0; f.mutates && i < x.size(); ++i) {
        if (x[i] && (d.inputs[f.port(i)]->flags & CATENA_PORT_MUTATED))
            bring(Array(Ref(x[i])), copies[i]);
    }
    there.y = std::move(result.y);
    result = std::move(there);
}

}  // namespace

bool masks_as_numbers(const FunctionEntry& f, std::span<ArrayBody* const> x,
                      SmallVector<Array, 6>& numbers) {
    const auto type = [&](std::size_t i) {
        return f.input_type[f.port(static_cast<std::uint32_t>(i))];
    };
    const auto is_mask = [&](std::size_t i) {
        return x[i]->meta.dtype.code == CATENA_CODE_BOOL &&
               !(f.descriptor.inputs[f.port(static_cast<std::uint32_t>(i))]->flags &
                 CATENA_PORT_MUTATED);
    };
    bool any = false;
    numbers.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t k = 0; x[i] && is_mask(i) && !numbers[i] && k < x.size(); ++k) {
            Dtype dtype;
            if (!x[k] || type(k) != type(i) || !from_abi(x[k]->meta.dtype, dtype)) continue;
            if (dtype == Dtype::bool8) continue;
            numbers[i] = Array(Ref(x[i])).astype(dtype);
            any = true;
        }
    }
    return any;
}

void run_forward(FunctionEntry& f, const BoundAttributes& attributes, std::span<ArrayBody* const> x,
                 const Config& now, bool needs_backward, ForwardResult& result) {
    const catena_function& d = f.descriptor;
    const auto n_x = static_cast<std::uint32_t>(x.size());
    const std::uint32_t n_y = d.n_outputs;
    check_present(f, x);
    DeviceState& device = common_device(f, x);
    Queue& queue = current_queue(device);
    result.device = &device;
    TypeKey key(f);
    SmallVector<const catena_meta*, 6> metas;
    SmallVector<const catena_tensor*, 6> tensors;
    for (std::uint32_t i = 0; i < n_x; ++i) {
        metas.push_back(x[i] ? &x[i]->meta : nullptr);
        tensors.push_back(x[i] ? &x[i]->tensor : nullptr);
        if (!x[i]) continue;
        key.add(f.input_type[f.port(i)], x[i]->meta, i, true);
        before_read(*x[i], queue);
    }

    catena_ctx ctx;
    ctx.device = &device;
    catena_meta* y_metas[CATENA_MAX_PORTS];
    catena_tensor* y_tensors[CATENA_MAX_PORTS];
    std::uint8_t req[CATENA_MAX_PORTS];
    for (std::uint32_t i = 0; i < n_y; ++i) {
        Ref<ArrayBody> body = new_body(device);
        y_metas[i] = &body->meta;
        y_tensors[i] = &body->tensor;
        req[i] = CATENA_REQ_WRITE;
        result.y.push_back(Array(std::move(body)));
    }
    catena_status status = d.infer(&ctx, attributes.values(), metas.data(), n_x, y_metas, n_y);
    if (status != CATENA_OK) throw_failure(ctx, status, d.name, describe_inputs(f, x));
    for (std::uint32_t i = 0; i < n_y; ++i) {
        if (!shape_known(*result.y[i].body())) throw_shape(f, d.outputs[i]->name, *y_metas[i], x);
        key.add(f.output_type[i], *y_metas[i], i, false);
    }
    const std::uint32_t flags = call_flags(now);
    result.flags = flags;
    result.key = selection_key(device.index, flags & CATENA_CALL_DETERMINISTIC, key.bits());
    if (d.flags & CATENA_FUNCTION_VIEW) {
        if (result.y[0].body()->tensor.nbytes != x[0]->tensor.nbytes) {
            throw ShapeError(
                fmt::format("[{}] {}: expected a shape of {} elements as in {}, got {}", d.name,
                            d.outputs[0]->name, Array(Ref(x[0])).size(), describe_inputs(f, x),
                            to_string(result.y[0].shape())));
        }
        alias(*result.y[0].body(), Ref<ArrayBody>(x[0]));
        seal(*result.y[0].body());
        return;
    }
    for (std::uint32_t i = 0; i < n_y; ++i) allocate(*result.y[i].body(), queue);

    catena_call call{};
    call.struct_size = sizeof(catena_call);
    call.flags = flags;
    call.phase = CATENA_PHASE_FORWARD;
    call.function = &d;
    call.attrs = attributes.values();
    call.n_x = n_x;
    call.n_y = n_y;
    call.x = tensors.data();
    call.y = y_tensors;
    call.req = req;
    call.stream = queue.native;
    call.dev = device.dev;
    call.device_id = device.ordinal;
    const auto for_mutated = [&](auto&& action) {
        for (std::uint32_t i = 0; f.mutates && i < n_x; ++i) {
            if (x[i] && (d.inputs[f.port(i)]->flags & CATENA_PORT_MUTATED)) action(*x[i]);
        }
    };
    const auto run = [&](const Candidate& candidate) {
        for_mutated([&](ArrayBody& body) {
            before_write(body, queue);
            written(body);
            unseal(body);
        });
        note_call(queue, d, CATENA_PHASE_FORWARD);
        status = run_with_room(*candidate.forward, ctx, call, queue);
        for_mutated(seal);
        if (queue.async) {
            const std::uint64_t ticket = queue.advance();
            for (const Array& y : result.y) after_write(*y.body(), queue, ticket);
            for (const Array& saved : result.saved) after_write(*saved.body(), queue, ticket);
            for_mutated([&](ArrayBody& body) { after_write(body, queue, ticket); });
        } else {
            for_mutated([&](ArrayBody& body) { after_write(body, queue, 0); });
        }
        if (status != CATENA_OK) throw_failure(ctx, status, d.name, describe_inputs(f, x));
        for (const Array& y : result.y) seal(*y.body());
        for (const Array& saved : result.saved) seal(*saved.body());
        result.paired = candidate.paired;
    };
    const Selection& selection = f.select(result.key, device);
    for (const Candidate& candidate : selection.forward) {
        const catena_kernel& kernel = *candidate.forward;
        // Without its own backward a variant serves calls that need no kernel for the gradient.
        if (kernel.variant && needs_backward && !candidate.paired) continue;
        call.n_saved = kernel.n_saved;
        if (kernel.supports && !kernel.supports(&ctx, &call)) {
            forget_failure(ctx);
            continue;
        }
        if (!kernel.plan) {
            run(candidate);
            return;
        }
        SmallVector<catena_meta*, 2> saved_metas;
        SmallVector<catena_tensor*, 2> saved_tensors;
        result.saved.clear();
        for (std::uint32_t i = 0; i < kernel.n_saved; ++i) {
            Ref<ArrayBody> body = new_body(device);
            saved_metas.push_back(&body->meta);
            saved_tensors.push_back(&body->tensor);
            result.saved.push_back(Array(std::move(body)));
        }
        catena_plan plan{sizeof(catena_plan), kernel.n_saved, 0, saved_metas.data()};
        status = kernel.plan(&ctx, &call, &plan);
        if (status == CATENA_E_UNSUPPORTED) {
            result.saved.clear();
            forget_failure(ctx);
            continue;
        }
        if (status != CATENA_OK) throw_failure(ctx, status, d.name, describe_inputs(f, x));
        for (Array& saved : result.saved) {
            if (!has_whole_bytes(saved.body()->meta.dtype)) throw_saved(f, saved.body()->meta);
            if (!shape_known(*saved.body())) throw_shape(f, "saved", saved.body()->meta, x);
            allocate(*saved.body(), queue);
        }
        const Scratch scratch(d, queue, plan.scratch_bytes);
        call.scratch = scratch.get();
        call.scratch_bytes = plan.scratch_bytes;
        call.saved = saved_tensors.data();
        run(candidate);
        return;
    }
    if (DeviceState* other = fallback_for(device)) {
        return run_elsewhere(f, attributes, x, now, needs_backward, *other, result);
    }
    throw_no_kernel(f, x, device, key.bits(), !selection.forward.empty());
}

void check_forward(const FunctionEntry& f, std::span<ArrayBody* const> x,
                   std::span<const Array> y) {
    const catena_function& d = f.descriptor;
    std::string before;
    const auto check = [&](const Array& array, std::string_view port) {
        if (count_nan(array) == 0) return;
        for (std::uint32_t i = 0; i < x.size(); ++i) {
            const bool written = d.inputs[f.port(i)]->flags & CATENA_PORT_MUTATED;
            if (!x[i] || written || count_nan(Array(Ref(x[i]))) == 0) continue;
            before += (before.empty() ? " (NaN was in " : ", ") + f.input_name(i);
        }
        if (!before.empty()) before += " already)";
        check_numbers(array, d.name, fmt::format("forward: {}{}", port, before), stack_trace());
    };
    for (std::uint32_t i = 0; i < y.size(); ++i) {
        if (!(d.outputs[i]->flags & CATENA_PORT_HIDDEN)) check(y[i], d.outputs[i]->name);
    }
    for (std::uint32_t i = 0; f.mutates && i < x.size(); ++i) {
        if (x[i] && (d.inputs[f.port(i)]->flags & CATENA_PORT_MUTATED)) {
            check(Array(Ref(x[i])), f.input_name(i));
        }
    }
}

namespace {

[[noreturn]] void throw_released(const FunctionEntry& f, std::uint32_t i) {
    throw GraphError(
        fmt::format("[{}] {}: expected data, got a variable that nobody held, of which "
                    "the graph kept the shape alone",
                    f.descriptor.name, f.input_name(i)));
}

// Volatile variables and others cannot be mixed: one would lose its graph unseen.
bool all_volatile(const FunctionEntry& f, std::span<const Variable* const> inputs) {
    bool any = false;
    std::size_t odd = inputs.size();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i] || !*inputs[i]) continue;
        any = any || inputs[i]->is_volatile();
        if (inputs[i]->node().opposes_volatile()) odd = i;
    }
    if (any && odd != inputs.size()) {
        throw GraphError(
            fmt::format("[{}] {}: expected a volatile variable as another input is, or a Parameter "
                        "(what a link learns, named in its visit()), got neither",
                        f.descriptor.name, f.input_name(static_cast<std::uint32_t>(odd))));
    }
    return any;
}

}  // namespace

void call_function(FunctionEntry& f, const BoundAttributes& attributes,
                   std::span<const Variable* const> given, CallResult& result) {
    const catena_function& d = f.descriptor;
    check_arity(f, given.size());
    const std::size_t n_x = std::max<std::size_t>(given.size(), d.n_inputs);
    SmallVector<ArrayBody*, 6> x;
    bool wanted = false;
    bool any_volatile = false;
    bool any_bool = false;
    for (std::size_t i = 0; i < n_x; ++i) {
        const Variable* input = i < given.size() ? given[i] : nullptr;
        const bool present = input && *input;
        x.push_back(present ? input->data().body() : nullptr);
        if (!present) continue;
        if (!has_memory(*x.back())) throw_released(f, static_cast<std::uint32_t>(i));
        any_volatile = any_volatile || input->is_volatile();
        any_bool = any_bool || x.back()->meta.dtype.code == CATENA_CODE_BOOL;
        wanted = wanted || (input->requires_grad() &&
                            !(d.inputs[f.port(static_cast<std::uint32_t>(i))]->flags &
                              CATENA_PORT_NON_DIFFERENTIABLE));
    }
    if (any_bool) [[unlikely]] {
        SmallVector<Array, 6> numbers;
        if (masks_as_numbers(f, {x.data(), x.size()}, numbers)) {
            SmallVector<Variable, 6> variables;
            SmallVector<const Variable*, 6> inputs;
            for (std::size_t i = 0; i < given.size(); ++i) {
                variables.push_back(numbers[i] ? as_variable(numbers[i]) : Variable());
                if (numbers[i]) variables[i].set_volatile(given[i]->is_volatile());
            }
            for (std::size_t i = 0; i < given.size(); ++i)
                inputs.push_back(numbers[i] ? &variables[i] : given[i]);
            return call_function(f, attributes, {inputs.data(), inputs.size()}, result);
        }
    }
    const bool is_volatile = any_volatile && all_volatile(f, given);
    const Config& now = config();
    const bool graph = wanted && !is_volatile && now.enable_backprop &&
                       !(d.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE);

    ForwardResult forward;
    run_forward(f, attributes, std::span(x.data(), x.size()), now, graph, forward);
    if (now.debug) check_forward(f, {x.data(), x.size()}, {forward.y.data(), forward.y.size()});
    for (std::uint32_t i = 0; i < d.n_outputs; ++i) {
        Ref<VariableNode> node(new VariableNode(forward.y[i]));
        node->is_volatile = node->volatile_result = is_volatile;
        node->requires_grad =
            graph &&
            !(d.outputs[i]->flags & (CATENA_PORT_NON_DIFFERENTIABLE | CATENA_PORT_HIDDEN)) &&
            is_floating(static_cast<Dtype>(dtype_index(forward.y[i].body()->meta.dtype)));
        result.y.push_back(Variable(std::move(node)));
    }
    if (graph) CallNode::record(f, attributes, given, std::move(forward), now, result);
}

}  // namespace catena
