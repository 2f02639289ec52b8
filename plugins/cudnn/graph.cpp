// Builds graphs, queries cuDNN's heuristics, and makes plans of the engines that they propose.
#include "graph.hpp"

#include <algorithm>

namespace catena_cudnn {
namespace {

cudnnDataType_t computed_in(cudnnDataType_t dtype) {
    return dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

// The cuDNN operation of a direction, and the names of its attributes.
struct Names {
    cudnnBackendDescriptorType_t operation;
    Descriptor::Name alpha, beta, convolution, x, w, y;
};
constexpr Names names[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

bool is_half(cudnnDataType_t dtype) {
    return dtype == CUDNN_DATA_HALF || dtype == CUDNN_DATA_BFLOAT16;
}

}  // namespace

// Sets a handle, which determines the device. Only graphs and plans have an attribute for it.
Teller teller_of(cudnnHandle_t handle) {
    return [handle](Descriptor& descriptor) {
        if (descriptor.type() == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
            descriptor.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
        if (descriptor.type() == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
            descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
    };
}

Shape4 packed(const Shape4& shape) {
    return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
}

const Descriptor& Graph::tensor(std::int64_t id, const Shape4& shape, const Shape4& strides,
                                cudnnDataType_t dtype, Place place) {
    Descriptor& d = part(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, dtype);
    d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(shape));
    d.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(strides));
    d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
    d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, place == Place::stored ? alignment_ : std::int64_t{16});
    if (place == Place::within) d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    if (place == Place::by_value) d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    d.finalize();
    return d;
}

Graph::Graph(const Library& cudnn, const Problem& p, const Teller& teller)
    : cudnn_(cudnn), alignment_(p.alignment) {
    std::visit([&](const auto& operation) { build(*this, p, operation); }, p.operation);
    Descriptor& graph = part(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    teller(graph);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
    graph.finalize();
}

void Graph::pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t computed, const Descriptor& x,
                      const Descriptor* b, const Descriptor& y, const Descriptor* mask,
                      std::int64_t axis) {
    Descriptor& rule = part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    rule.set(CUDNN_ATTR_POINTWISE_MODE, mode);
    rule.set(CUDNN_ATTR_POINTWISE_MATH_PREC, computed);
    if (axis >= 0) rule.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
    rule.finalize();
    Descriptor& o = operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, rule);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != nullptr) o.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    if (mask != nullptr) o.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *mask);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    o.finalize();
}

void build(Graph& graph, const Problem& p, const Convolution& c) {
    const Geometry& g = c.g;
    const Names& name = names[static_cast<std::size_t>(c.direction)];
    const cudnnDataType_t computed = computed_in(p.dtype);
    const auto tensor = [&](Role role, const Shape4& shape) -> const Descriptor& {
        return graph.tensor(role, shape, packed(shape), p.dtype);
    };
    const Shape4 y_shape = {g.n, g.outputs, g.oh, g.ow};
    const Descriptor& x = tensor(tensor_x, {g.n, g.channels, g.height, g.width});
    const Descriptor& w = tensor(tensor_w, {g.outputs, g.group_channels(), g.kh, g.kw});
    const Descriptor& y =
        c.bias ? graph.tensor(tensor_sum, y_shape, packed(y_shape), computed, Graph::Place::within)
               : tensor(tensor_y, y_shape);

    Descriptor& convolution = graph.part(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, computed);
    convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
    convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
    convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {g.dilate_y, g.dilate_x});
    convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {g.stride_y, g.stride_x});
    convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {g.pad_y, g.pad_x});
    convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {g.pad_y, g.pad_x});
    convolution.finalize();

    Descriptor& operation = graph.operation(name.operation);
    operation.set(name.convolution, convolution);
    operation.set(name.x, x);
    operation.set(name.w, w);
    operation.set(name.y, y);
    if (computed == CUDNN_DATA_DOUBLE) {
        operation.set(name.alpha, 1.0);
        operation.set(name.beta, p.add ? 1.0 : 0.0);
    } else {
        operation.set(name.alpha, 1.0f);
        operation.set(name.beta, p.add ? 1.0f : 0.0f);
    }
    operation.finalize();
    if (!c.bias) return;
    graph.pointwise(CUDNN_POINTWISE_ADD, computed, y, &tensor(tensor_b, {1, g.outputs, 1, 1}),
                    tensor(tensor_y, y_shape));
}

bool allowed(const Problem& p, bool tf32, std::span<const cudnnBackendNumericalNote_t> notes) {
    const bool float32 = p.dtype == CUDNN_DATA_FLOAT;
    return std::ranges::none_of(notes, [&](cudnnBackendNumericalNote_t note) {
        switch (note) {
            // In float32, tensor cores round the inputs to 10 bits.
            case CUDNN_NUMERICAL_NOTE_TENSOR_CORE: return float32 && !tf32 && !p.half;
            case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
            case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: return true;
            case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: return p.deterministic;
            // Winograd and FFT engines would round the transformed input to half precision again.
            case CUDNN_NUMERICAL_NOTE_FFT:
            case CUDNN_NUMERICAL_NOTE_WINOGRAD:
            case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
            case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
            case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return is_half(p.dtype);
            default: return false;
        }
    });
}

std::vector<Plan> plans_for(const Library& cudnn, const Problem& p, const Teller& teller, bool tf32,
                            std::int64_t limit, std::size_t most) {
    const auto graph = std::make_shared<const Graph>(cudnn, p, teller);
    std::vector<Plan> plans;
    // First the engines with the best estimated speed, then the fallback engines.
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
        Descriptor heuristics(cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph->descriptor());
        heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
        teller(heuristics);
        if (const cudnnStatus_t status = heuristics.try_finalize(); is_no_memory(status))
            check(cudnn, "cudnnBackendFinalize", status);
        else if (status != CUDNN_STATUS_SUCCESS) continue;
        for (Descriptor& config : heuristics.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                             CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)) {
            if (plans.size() == most) return plans;
            const Descriptor engine =
                config.get_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
            if (!allowed(p, tf32,
                         engine.get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT)))
                continue;
            Descriptor plan(cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
            teller(plan);
            plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
            if (const cudnnStatus_t status = plan.try_finalize(); is_no_memory(status))
                check(cudnn, "cudnnBackendFinalize", status);
            else if (status != CUDNN_STATUS_SUCCESS) continue;
            const auto workspace = plan.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
            if (workspace > limit) continue;
            plans.push_back({graph, std::move(config), std::move(plan), workspace});
        }
    }
    return plans;
}

void execute(const Library& cudnn, cudnnHandle_t handle, const Plan& plan, const Pointers& data,
             void* workspace) {
    std::array<void*, std::tuple_size_v<Pointers>> pointers;
    std::array<std::int64_t, std::tuple_size_v<Pointers>> numbers;
    std::size_t n = 0;
    for (std::size_t i = 0; i < data.size(); ++i) {
        if (data[i] == nullptr) continue;
        pointers[n] = data[i];
        numbers[n++] = static_cast<std::int64_t>(i);
    }
    Descriptor pack(cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(numbers.data(), n));
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(pointers.data(), n));
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
    pack.finalize();
    check(cudnn, "cudnnBackendExecute", cudnn.execute(handle, plan.plan.raw(), pack.raw()));
}

}  // namespace catena_cudnn
