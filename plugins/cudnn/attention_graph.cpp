// Builds the graphs of attention: the operations and their order are those of NVIDIA's cudnn-frontend,
// which cuDNN recognizes and computes in one or few kernels that do not store the scores.
#include "graph.hpp"

namespace catena_cudnn {
namespace {

class AttentionGraph {
public:
    AttentionGraph(Graph& graph, const Problem& p, const Attention& a)
        : graph_(graph), a_(a), dtype_(p.dtype) {}

    void forward() {
        const Tensor raw = inner(scores);
        multiply(heads(tensor_q, a_.h, a_.t, a_.d), swapped(tensor_k, a_.d), raw);
        const Tensor s = seen(scaled(raw));
        const Tensor most = reduce(CUDNN_REDUCE_TENSOR_MAX, s, inner(rows));
        const Tensor e = exp(pointwise(CUDNN_POINTWISE_SUB, s, &most, inner(scores)));
        const Tensor sum = reduce(CUDNN_REDUCE_TENSOR_ADD, e, inner(rows));
        const Tensor log = pointwise(CUDNN_POINTWISE_LOG, sum, nullptr, inner(rows));
        pointwise(CUDNN_POINTWISE_ADD, most, &log, of_rows(tensor_lse));
        const Tensor weights = pointwise(CUDNN_POINTWISE_DIV, e, &sum, inner(scores, dtype_));
        multiply(weights, heads(tensor_v, a_.hk, a_.s, a_.e),
                 heads(tensor_attended, a_.h, a_.t, a_.e));
    }
    void backward() {
        const Tensor q = heads(tensor_q, a_.h, a_.t, a_.d);
        const Tensor k = swapped(tensor_k, a_.d);
        const Tensor gy = heads(tensor_gy, a_.h, a_.t, a_.e);
        const Tensor y = heads(tensor_attended, a_.h, a_.t, a_.e);
        const Tensor dot = reduce(
            CUDNN_REDUCE_TENSOR_ADD,
            pointwise(CUDNN_POINTWISE_MUL, gy, &y, inner({a_.b, a_.h, a_.t, a_.e})), inner(rows));
        const Tensor one = number(number_one);
        const Tensor mean = pointwise(CUDNN_POINTWISE_MUL, dot, &one, of_rows(tensor_mean));

        const Tensor raw = inner(scores), lse = of_rows(tensor_lse);
        multiply(q, k, raw);
        const Tensor weights =
            exp(seen(pointwise(CUDNN_POINTWISE_SUB, scaled(raw), &lse, inner(scores))));
        sum_over_queries(weights, gy, a_.e, tensor_gv);

        const Tensor of_weights = inner(scores);
        multiply(gy, swapped(tensor_v, a_.e), of_weights);
        const Tensor gs = pointwise(
            CUDNN_POINTWISE_MUL, pointwise(CUDNN_POINTWISE_SUB, of_weights, &mean, inner(scores)),
            &weights, inner(scores));
        const Tensor scale = number(number_scale);
        const Tensor ds = pointwise(CUDNN_POINTWISE_MUL, gs, &scale, inner(scores, dtype_));
        sum_over_queries(ds, q, a_.d, tensor_gk);

        const Shape4 shape = {a_.b, a_.hk, a_.s, a_.d};
        const Tensor keys = reshape(k, shape, strides(shape));
        const Tensor gq = heads(tensor_gq, a_.h, a_.t, a_.d);
        // Without memory for the sum, cuDNN stores the gradients of all scores, and is deterministic.
        if (!a_.accumulate) return multiply(ds, keys, gq);
        const Shape4 q_shape = {a_.b, a_.h, a_.t, a_.d};
        const Tensor sum = graph_.tensor(tensor_gq_sum, q_shape, packed(q_shape), CUDNN_DATA_FLOAT);
        multiply(ds, keys, sum);
        pointwise(CUDNN_POINTWISE_IDENTITY, sum, nullptr, gq);
    }

private:
    using Tensor = const Descriptor&;

    Tensor inner(const Shape4& shape, cudnnDataType_t dtype = CUDNN_DATA_FLOAT) {
        return graph_.tensor(next_++, shape, packed(shape), dtype, Graph::Place::within);
    }
    Tensor number(Role role) {
        constexpr Shape4 one = {1, 1, 1, 1};
        return graph_.tensor(role, one, one, CUDNN_DATA_FLOAT, Graph::Place::by_value);
    }
    Tensor of_rows(Role role) { return graph_.tensor(role, rows, packed(rows), CUDNN_DATA_FLOAT); }
    // shape: (b, heads, rows, size)
    Shape4 strides(const Shape4& shape) const {
        const auto [b, heads, n, size] = shape;
        return a_.heads_last ? Shape4{n * heads * size, size, heads * size, 1} : packed(shape);
    }
    Tensor heads(Role role, std::int64_t heads, std::int64_t n, std::int64_t size) {
        const Shape4 shape = {a_.b, heads, n, size};
        return graph_.tensor(role, shape, strides(shape), dtype_);
    }
    // Returns keys or values (b, hk, size, s).
    Tensor swapped(Role role, std::int64_t size) {
        Shape4 shape = {a_.b, a_.hk, a_.s, size}, steps = strides(shape);
        std::swap(shape[2], shape[3]);
        std::swap(steps[2], steps[3]);
        return graph_.tensor(role, shape, steps, dtype_);
    }
    // Writes m^T x, with a row for each key, summed over the heads that share it.
    void sum_over_queries(Tensor m, Tensor x, std::int64_t size, Role to) {
        const std::int64_t n = a_.s * a_.t;
        const Tensor turned = reshape(m, {a_.b, a_.h, a_.s, a_.t}, {a_.h * n, n, 1, a_.s});
        const Tensor result = heads(to, a_.hk, a_.s, size);
        if (a_.h == a_.hk) return multiply(turned, x, result);
        const Tensor of_each = inner({a_.b, a_.h, a_.s, size}, dtype_);
        multiply(turned, x, of_each);
        reduce(CUDNN_REDUCE_TENSOR_ADD, of_each, result);
    }
    Tensor scaled(Tensor s) {
        const Tensor scale = number(number_scale);
        return pointwise(CUDNN_POINTWISE_MUL, s, &scale, inner(scores));
    }
    Tensor exp(Tensor x) { return pointwise(CUDNN_POINTWISE_EXP, x, nullptr, inner(scores)); }
    // Hides the keys that queries do not see.
    Tensor seen(Tensor s) {
        if (!a_.causal) return s;
        const Tensor row = index(s, 2), column = index(s, 3);
        const Tensor mask = pointwise(CUDNN_POINTWISE_CMP_GE, row, &column,
                                      inner(scores, CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN);
        const Tensor hidden = number(number_hidden);
        return pointwise(CUDNN_POINTWISE_BINARY_SELECT, s, &hidden, inner(scores), CUDNN_DATA_FLOAT,
                         &mask);
    }
    Tensor index(Tensor s, std::int64_t axis) {
        return pointwise(CUDNN_POINTWISE_GEN_INDEX, s, nullptr, inner(scores, CUDNN_DATA_INT32),
                         CUDNN_DATA_FLOAT, nullptr, axis);
    }

    // Each adds an operation, and those below return its result y.
    void multiply(Tensor a, Tensor b, Tensor c) {
        Descriptor& product = graph_.part(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
        product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
        product.finalize();
        Descriptor& o = graph_.operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
        o.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
        o.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
        o.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
        o.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
        o.finalize();
    }
    Tensor pointwise(cudnnPointwiseMode_t mode, Tensor x, const Descriptor* b, Tensor y,
                     cudnnDataType_t computed = CUDNN_DATA_FLOAT, const Descriptor* mask = nullptr,
                     std::int64_t axis = -1) {
        graph_.pointwise(mode, computed, x, b, y, mask, axis);
        return y;
    }
    Tensor reduce(cudnnReduceTensorOp_t by, Tensor x, Tensor y) {
        Descriptor& rule = graph_.part(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
        rule.set(CUDNN_ATTR_REDUCTION_OPERATOR, by);
        rule.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
        rule.finalize();
        Descriptor& o = graph_.operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
        o.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
        o.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
        o.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, rule);
        o.finalize();
        return y;
    }
    // Returns the transposed matrices of x.
    Tensor reshape(Tensor x, const Shape4& shape, const Shape4& steps) {
        const Tensor y = graph_.tensor(next_++, shape, steps, dtype_, Graph::Place::within);
        Descriptor& o = graph_.operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
        o.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
        o.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
        o.finalize();
        return y;
    }

    Graph& graph_;
    const Attention a_;
    const cudnnDataType_t dtype_;
    const Shape4 scores = {a_.b, a_.h, a_.t, a_.s};
    const Shape4 rows = {a_.b, a_.h, a_.t, 1};
    std::int64_t next_ = n_roles;  // IDs of the tensors that are not in memory
};

}  // namespace

void build(Graph& graph, const Problem& p, const Attention& a) {
    AttentionGraph all(graph, p, a);
    a.backward ? all.backward() : all.forward();
}

}  // namespace catena_cudnn
