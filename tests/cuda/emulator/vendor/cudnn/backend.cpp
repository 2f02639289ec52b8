// Descriptors: the types and counts of their attributes, and what finalizing requires. Detects some
// errors earlier than cuDNN does.
#include <algorithm>
#include <mutex>
#include <set>

#include "cudnn.hpp"

namespace stand_in {
namespace {

constexpr cudnnStatus_t ok = CUDNN_STATUS_SUCCESS;
constexpr cudnnStatus_t bad = CUDNN_STATUS_BAD_PARAM;

struct Rule {
    int name;
    cudnnBackendAttributeType_t type;
    std::int64_t least, most;  // number of values
    enum Use { needed, optional, computed } use;
    int descriptor = -1;  // required type of the descriptor it links to, or -1
};
using Rules = std::vector<Rule>;

constexpr auto link = CUDNN_TYPE_BACKEND_DESCRIPTOR;
constexpr auto ints = CUDNN_TYPE_INT64;

Rule tensor(int name, Rule::Use use = Rule::needed) {
    return {name, link, 1, 1, use, CUDNN_BACKEND_TENSOR_DESCRIPTOR};
}

// Alpha and beta (float, or double if computed in double), the convolution, w, x and y.
Rules operation(int first) {
    return {{first, CUDNN_TYPE_FLOAT, 1, 1, Rule::needed},
            {first + 1, CUDNN_TYPE_FLOAT, 1, 1, Rule::needed},
            {first + 2, link, 1, 1, Rule::needed, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR},
            tensor(first + 3),
            tensor(first + 4),
            tensor(first + 5)};
}

const std::map<int, Rules>& all_rules() {
    static const std::map<int, Rules> rules = {
        {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
         {{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, Rule::needed},
          {CUDNN_ATTR_TENSOR_DIMENSIONS, ints, 1, 8, Rule::needed},
          {CUDNN_ATTR_TENSOR_STRIDES, ints, 1, 8, Rule::needed},
          {CUDNN_ATTR_TENSOR_UNIQUE_ID, ints, 1, 1, Rule::needed},
          {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ints, 1, 1, Rule::needed},
          {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 1, Rule::optional},
          {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, 1, Rule::optional}}},
        {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
         {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, Rule::needed},
          {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1, Rule::needed},
          {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, ints, 1, 1, Rule::needed},
          {CUDNN_ATTR_CONVOLUTION_DILATIONS, ints, 2, 2, Rule::needed},
          {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, ints, 2, 2, Rule::needed},
          {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, ints, 2, 2, Rule::needed},
          {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, ints, 2, 2, Rule::needed}}},
        {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
         {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, 1, Rule::needed},
          {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1, Rule::needed},
          {CUDNN_ATTR_POINTWISE_AXIS, ints, 1, 1, Rule::optional}}},
        {CUDNN_BACKEND_MATMUL_DESCRIPTOR,
         {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, Rule::needed}}},
        {CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
         {{CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, 1, Rule::needed},
          {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, Rule::needed}}},
        {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
         {tensor(CUDNN_ATTR_OPERATION_MATMUL_ADESC),
          tensor(CUDNN_ATTR_OPERATION_MATMUL_BDESC),
          tensor(CUDNN_ATTR_OPERATION_MATMUL_CDESC),
          {CUDNN_ATTR_OPERATION_MATMUL_DESC, link, 1, 1, Rule::needed,
           CUDNN_BACKEND_MATMUL_DESCRIPTOR}}},
        {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
         {tensor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC),
          tensor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC),
          {CUDNN_ATTR_OPERATION_REDUCTION_DESC, link, 1, 1, Rule::needed,
           CUDNN_BACKEND_REDUCTION_DESCRIPTOR}}},
        {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
         {tensor(CUDNN_ATTR_OPERATION_RESHAPE_XDESC), tensor(CUDNN_ATTR_OPERATION_RESHAPE_YDESC)}},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, operation(700)},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, operation(706)},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, operation(712)},
        {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
         {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, link, 1, 1, Rule::needed,
           CUDNN_BACKEND_POINTWISE_DESCRIPTOR},
          tensor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
          tensor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, Rule::optional),
          tensor(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, Rule::optional),
          tensor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)}},
        {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
         {{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, Rule::needed},
          {CUDNN_ATTR_OPERATIONGRAPH_OPS, link, 1, 32, Rule::needed}}},
        {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
         {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, link, 1, 1, Rule::needed,
           CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR},
          {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1, Rule::needed},
          {CUDNN_ATTR_ENGINEHEUR_RESULTS, link, 0, 1 << 20, Rule::computed}}},
        {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
         {{CUDNN_ATTR_ENGINECFG_ENGINE, link, 1, 1, Rule::needed,
           CUDNN_BACKEND_ENGINE_DESCRIPTOR}}},
        {CUDNN_BACKEND_ENGINE_DESCRIPTOR,
         {{CUDNN_ATTR_ENGINE_GLOBAL_INDEX, ints, 1, 1, Rule::needed},
          {CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 0, 10, Rule::computed}}},
        {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
         {{CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, Rule::needed},
          {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, link, 1, 1, Rule::needed,
           CUDNN_BACKEND_ENGINECFG_DESCRIPTOR},
          {CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, ints, 1, 1, Rule::computed}}},
        {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
         {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ints, 1, 16, Rule::needed},
          {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, 16, Rule::needed},
          {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1, Rule::needed}}},
    };
    return rules;
}
const Rule* rule_of(const Descriptor& d, int name) {
    for (const Rule& r : all_rules().at(d.type))
        if (r.name == name) return &r;
    return nullptr;
}

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
    switch (type) {
        case CUDNN_TYPE_BOOLEAN: return 1;
        case CUDNN_TYPE_HANDLE:
        case CUDNN_TYPE_INT64:
        case CUDNN_TYPE_DOUBLE:
        case CUDNN_TYPE_VOID_PTR:
        case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
        default: return 4;
    }
}
bool is_factor(int name) { return name >= 700 && name < 718 && (name - 700) % 6 < 2; }

// The existing descriptors, to detect uses of destroyed ones.
struct Living {
    std::mutex mutex;
    std::set<const void*> all;
};
Living& living() {
    static auto* const set = new Living;
    return *set;
}
Descriptor* alive(cudnnBackendDescriptor_t d) {
    const std::lock_guard lock(living().mutex);
    return living().all.contains(d) ? static_cast<Descriptor*>(d) : nullptr;
}

std::int64_t element(cudnnDataType_t type) {
    switch (type) {
        case CUDNN_DATA_DOUBLE: return 8;
        case CUDNN_DATA_FLOAT:
        case CUDNN_DATA_INT32: return 4;
        case CUDNN_DATA_BOOLEAN: return 1;
        default: return 2;
    }
}

// Whether it is dense, with its axes in their order or, if any_order, in another one.
bool is_dense(const Descriptor& tensor, bool any_order) {
    const auto shape = tensor.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    const auto strides = tensor.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // innermost first
    for (std::size_t i = shape.size(); i-- > 0;)
        if (!any_order || shape[i] > 1) axes.emplace_back(strides[i], shape[i]);
    if (any_order) std::ranges::sort(axes);
    std::int64_t step = 1;
    for (const auto& [stride, extent] : axes) {
        if (stride != step) return false;
        step *= extent;
    }
    return true;
}

cudnnStatus_t finalize_tensor(const Descriptor& d) {
    const auto shape = d.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    const auto strides = d.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    const auto alignment = d.one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    const auto type = d.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    if (shape.size() != strides.size() ||
        std::ranges::any_of(shape, [](auto s) { return s < 1; }) ||
        std::ranges::any_of(strides, [](auto s) { return s < 1; }) || alignment < 1 ||
        alignment % element(type) != 0)
        return bad;
    return is_dense(d, true) ? ok : CUDNN_STATUS_NOT_SUPPORTED;  // more than cuDNN requires
}

// Checks that y has the shape of the convolution of x with w, and the types of the factors.
cudnnStatus_t finalize_operation(const Descriptor& d) {
    const int direction = d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ? 0
                          : d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                              ? 1
                              : 2;
    const int first = 700 + 6 * direction;
    const Descriptor& c = *d.link(first + 2);
    const auto shape = [&](int name) {
        return d.link(name)->all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    };
    for (const int name : {first + 3, first + 4, first + 5})
        if (!is_dense(*d.link(name), false)) return CUDNN_STATUS_NOT_SUPPORTED;
    const auto w = shape(first + 3);
    const auto x = shape(first + 4);
    const auto y = shape(first + 5);
    if (x.size() != 4 || w.size() != 4 || y.size() != 4 || x[0] != y[0] || x[1] % w[1] != 0 ||
        y[1] != w[0] || y[1] % (x[1] / w[1]) != 0)
        return bad;
    const auto stride = c.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    const auto before = c.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    const auto after = c.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    const auto dilation = c.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    const auto computed = c.one<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
    for (std::size_t i = 0; i < 2; ++i) {
        const std::int64_t reach = (w[2 + i] - 1) * dilation[i] + 1;
        if (y[2 + i] != (x[2 + i] + before[i] + after[i] - reach) / stride[i] + 1) return bad;
    }
    const auto factor = computed == CUDNN_DATA_DOUBLE ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
    for (const int name : {first, first + 1})
        if (d.values.at(name).type != factor) return bad;
    return ok;
}

cudnnStatus_t finalize_pointwise(const Descriptor& d) {
    const auto shape = [&](int name) {
        return d.link(name)->all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    };
    const auto x = shape(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    if (x != shape(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)) return bad;
    if (!d.has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)) return ok;
    const auto b = shape(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    if (b.size() != x.size()) return bad;
    for (std::size_t i = 0; i < x.size(); ++i)
        if (b[i] != x[i] && b[i] != 1) return bad;
    return ok;
}

cudnnStatus_t finalize_convolution(const Descriptor& d) {
    const auto least = [&](int name) { return std::ranges::min(d.all<std::int64_t>(name)); };
    return d.one<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == 2 &&
                   least(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES) >= 1 &&
                   least(CUDNN_ATTR_CONVOLUTION_DILATIONS) >= 1 &&
                   least(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) >= 0 &&
                   least(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) >= 0
               ? ok
               : bad;
}

cudnnStatus_t finalize_heuristics(const Descriptor& d) {
    change(&CudnnCounts::heuristics, 1);
    Convolution c;
    const Descriptor& graph = *d.link(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    return read_graph(graph, c) || read_program(graph) != nullptr ? ok : CUDNN_STATUS_NOT_SUPPORTED;
}

// A configuration stores its graph in an attribute that cuDNN does not have.
constexpr int hidden_graph = -1;

cudnnStatus_t finalize_plan(Descriptor& d) {
    const Descriptor& config = *d.link(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const Descriptor& graph = *config.link(hidden_graph);
    if (graph.one<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE) !=
        d.one<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE))
        return bad;
    std::int64_t bytes = 0;
    Convolution c;
    if (read_graph(graph, c))
        bytes = engine_of(config.one<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)).workspace(c);
    else bytes = workspace_of(*read_program(graph));
    if (bytes < 0) return CUDNN_STATUS_NOT_SUPPORTED;
    d.put<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, ints, {bytes});
    change(&CudnnCounts::plans, 1);
    return ok;
}

cudnnStatus_t finalize(Descriptor& d) {
    if (d.finalized) return bad;
    for (const Rule& rule : all_rules().at(d.type)) {
        if (rule.use == Rule::needed && !d.has(rule.name)) return bad;
        if (rule.type != link || !d.has(rule.name)) continue;
        for (cudnnBackendDescriptor_t other : d.all<cudnnBackendDescriptor_t>(rule.name)) {
            const Descriptor* const o = alive(other);
            if (o == nullptr || !o->finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
            if (rule.descriptor >= 0 && o->type != rule.descriptor) return bad;
        }
    }
    switch (d.type) {
        case CUDNN_BACKEND_TENSOR_DESCRIPTOR: return finalize_tensor(d);
        case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: return finalize_convolution(d);
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
            return finalize_operation(d);
        case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return finalize_pointwise(d);
        case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: return finalize_heuristics(d);
        case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: return finalize_plan(d);
        case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
            return d.values.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count ==
                           d.values.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).count
                       ? ok
                       : bad;
        default: return ok;
    }
}

void fill_engine(Descriptor& to, const Engine& engine) {
    to.put<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, ints, {engine.index});
    to.put(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, engine.notes);
    to.finalized = true;
}

// Fills the caller's descriptors with as many of the engines as there is room for.
cudnnStatus_t results(const Descriptor& d, std::int64_t room, std::int64_t* count, void* values) {
    const bool fallback =
        d.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
    std::vector<std::int64_t> list = {0};
    if (read_program(*d.link(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)) != nullptr) {
        list = {fused_engine.index};
    } else if (!fallback) {
        list.clear();
        for (const Engine& e : engines()) list.push_back(e.index);
    }
    if (values == nullptr || room == 0) {
        *count = static_cast<std::int64_t>(list.size()) + 2;  // an upper bound
        return ok;
    }
    *count = std::min(room, static_cast<std::int64_t>(list.size()));
    for (std::int64_t i = 0; i < *count; ++i) {
        Descriptor* const to = alive(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
        if (to == nullptr || to->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) return bad;
        to->values[hidden_graph] = d.values.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        to->put<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, ints,
                              {list[static_cast<std::size_t>(i)]});
        to->finalized = true;
    }
    return ok;
}

std::mutex counts_mutex;

}  // namespace

CudnnCounts& counts() {
    static CudnnCounts all;
    return all;
}
void change(long CudnnCounts::*count, long by) {
    const std::lock_guard lock(counts_mutex);
    counts().*count += by;
}
void ran(long engine) {
    const std::lock_guard lock(counts_mutex);
    ++counts().runs;
    counts().engine = engine;
}

bool read_graph(const Descriptor& graph, Convolution& c) {
    const auto operations = graph.all<cudnnBackendDescriptor_t>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    if (operations.empty() || operations.size() > 2) return false;
    const auto at = [&](std::size_t i) { return static_cast<const Descriptor*>(operations[i]); };
    const Descriptor& first = *at(0);
    switch (first.type) {
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: c.direction = 0; break;
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: c.direction = 1; break;
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: c.direction = 2; break;
        default: return false;
    }
    const int name = 700 + 6 * c.direction;
    const Descriptor& convolution = *first.link(name + 2);
    const Descriptor* const w = first.link(name + 3);
    const Descriptor* const x = first.link(name + 4);
    const Descriptor* y = first.link(name + 5);
    c.dtype = x->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    const auto computed = convolution.one<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
    if (computed != (c.dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT))
        return false;
    const auto factor = [&](int which) {
        return computed == CUDNN_DATA_DOUBLE ? first.one<double>(which)
                                             : static_cast<double>(first.one<float>(which));
    };
    c.alpha = factor(name);
    c.beta = factor(name + 1);
    const auto id = [](const Descriptor* t) {
        return t->one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    };
    c.bias = operations.size() == 2;
    c.b = 0;
    if (c.bias) {
        const Descriptor& second = *at(1);
        if (second.type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR || c.direction != 0 ||
            y->one<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL) == 0 ||
            second.link(CUDNN_ATTR_OPERATION_POINTWISE_XDESC) != y || c.beta != 0)
            return false;
        // Not supported in double, so that callers need another way.
        if (c.dtype == CUDNN_DATA_DOUBLE) return false;
        c.b = id(second.link(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
        y = second.link(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    }
    const auto shape = [](const Descriptor* t) {
        return t->all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    };
    const auto xs = shape(x);
    const auto ws = shape(w);
    const auto ys = shape(y);
    c.n = xs[0], c.channels = xs[1], c.height = xs[2], c.width = xs[3];
    c.outputs = ys[1], c.oh = ys[2], c.ow = ys[3];
    c.kh = ws[2], c.kw = ws[3];
    const auto stride = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    const auto pad = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    const auto dilation = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    c.stride_y = stride[0], c.stride_x = stride[1];
    c.pad_y = pad[0], c.pad_x = pad[1];
    c.dilate_y = dilation[0], c.dilate_x = dilation[1];
    c.groups = xs[1] / ws[1];
    c.x = id(x), c.w = id(w), c.y = id(y);
    c.alignment = x->one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    return c.kh != 13;  // no engine supports filters of height 13
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

CudnnCounts catena_cudnn_counts() {
    const std::lock_guard lock(counts_mutex);
    return counts();
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
    if (!all_rules().contains(type)) return CUDNN_STATUS_NOT_SUPPORTED;
    auto* const made = new Descriptor{type, false, {}};
    const std::lock_guard lock(living().mutex);
    living().all.insert(made);
    *descriptor = made;
    change(&CudnnCounts::descriptors, 1);
    return ok;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const std::lock_guard lock(living().mutex);
    if (living().all.erase(descriptor) == 0) return bad;
    if (static_cast<Descriptor*>(descriptor)->recorded) {
        std::fputs("cuDNN: a plan is destroyed, whose code a recording launches\n", stderr);
        std::abort();
    }
    delete static_cast<Descriptor*>(descriptor);
    change(&CudnnCounts::descriptors, -1);
    return ok;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
    Descriptor* const d = alive(descriptor);
    if (d == nullptr || values == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const Rule* const rule = rule_of(*d, name);
    if (rule == nullptr || rule->use == Rule::computed || d->finalized) return bad;
    const bool factor = is_factor(name) && type == CUDNN_TYPE_DOUBLE;
    if (type != rule->type && !factor) return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    if (count < rule->least || count > rule->most) return bad;
    const auto* const begin = static_cast<const char*>(values);
    const std::size_t bytes = static_cast<std::size_t>(count) * bytes_of(type);
    d->values[name] = {type, count, std::vector<char>(begin, begin + bytes)};
    return ok;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
    Descriptor* const d = alive(descriptor);
    if (d == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const cudnnStatus_t status = finalize(*d);
    d->finalized = d->finalized || status == ok;
    return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t room,
                                       std::int64_t* count, void* values) {
    Descriptor* const d = alive(descriptor);
    if (d == nullptr || count == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!d->finalized) return CUDNN_STATUS_NOT_INITIALIZED;
    const Rule* const rule = rule_of(*d, name);
    if (rule == nullptr) return bad;
    if (type != rule->type) return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) return results(*d, room, count, values);
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
        *count = 1;
        if (room < 1 || values == nullptr) return ok;
        Descriptor* const to = alive(*static_cast<cudnnBackendDescriptor_t*>(values));
        if (to == nullptr || to->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR) return bad;
        fill_engine(*to, engine_of(d->one<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)));
        return ok;
    }
    const auto found = d->values.find(name);
    if (found == d->values.end()) return bad;
    *count = values == nullptr ? found->second.count : std::min(room, found->second.count);
    if (values != nullptr && *count > 0)
        std::memcpy(values, found->second.bytes.data(),
                    static_cast<std::size_t>(*count) * bytes_of(type));
    return ok;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
    Descriptor* const p = alive(plan);
    const Descriptor* const v = alive(pack);
    if (handle == nullptr || p == nullptr || v == nullptr)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!p->finalized || !v->finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    if (p->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
        v->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR ||
        p->one<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) != handle)
        return bad;
    const Descriptor* const config =
        alive(p->one<cudnnBackendDescriptor_t>(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
    if (config == nullptr || alive(config->one<cudnnBackendDescriptor_t>(hidden_graph)) == nullptr)
        return bad;
    const auto ids = v->all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const auto pointers = v->all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    std::map<std::int64_t, void*> data;
    for (std::size_t i = 0; i < ids.size(); ++i) data[ids[i]] = pointers[i];
    const Engine& engine = engine_of(config->one<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
    void* const workspace = v->one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    if (p->one<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) > 0 &&
        (workspace == nullptr || reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0))
        return bad;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(handle->stream, &status) == cudaSuccess &&
        status != cudaStreamCaptureStatusNone)
        p->recorded = true;
    if (&engine == &fused_engine) {
        ran(static_cast<long>(engine.index));
        return run(*read_program(*config->link(hidden_graph)), handle->stream, data, workspace);
    }
    Convolution c;
    if (!read_graph(*config->link(hidden_graph), c)) return bad;
    std::vector<std::int64_t> needed = {c.x, c.w, c.y};
    if (c.bias) needed.push_back(c.b);
    if (data.size() != needed.size()) return bad;
    for (const std::int64_t id : needed) {
        const auto found = data.find(id);
        if (found == data.end() || found->second == nullptr ||
            reinterpret_cast<std::uintptr_t>(found->second) %
                    static_cast<std::uintptr_t>(c.alignment) !=
                0)
            return bad;
    }
    ran(static_cast<long>(engine.index));
    return run(c, engine, handle->stream, data, workspace);
}
}
