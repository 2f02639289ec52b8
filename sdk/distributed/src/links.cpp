// Linear links divided over ranks, and batch normalization over the minibatches of all ranks.
#include <catena/distributed/functions.hpp>
#include <catena/distributed/links.hpp>
#include <catena/fail.hpp>
#include <catena/function_node.hpp>
#include <catena/functions/indexing.hpp>
#include <catena/share.hpp>

#include <numeric>

namespace catena::distributed {
namespace {

namespace F = catena::functions;

// This rank's part of the outputs (axis 0) or inputs (axis 1) of rank 0's W.
Parameter own_weights(const Communicator& comm, const char* link, const Array& W, int axis) {
    const std::int64_t size = W.shape()[axis];
    if (size < comm.size())
        fail<ShapeError>("[{}] {}: expected at least one for each of {} ranks, got {}", link,
                         axis == 0 ? "out_size" : "in_size", comm.size(), size);
    const Array whole = W.copy();
    comm.bcast(whole, 0, {.label = "W"}).wait();
    const Range own = part_of(size, comm.rank(), comm.size());
    const Slice slice{own.begin, own.end};
    return Parameter(axis == 0 ? F::get_item(whole, {slice, Slice()})
                               : F::get_item(whole, {Slice(), slice}));
}
Parameter rank_0s(const Communicator& comm, const Parameter& b) {
    if (!b) return {};
    const Array values = b.data().copy();
    comm.bcast(values, 0, {.label = "b"}).wait();
    return Parameter(values);
}

Variable linear(const Variable& x, const Variable& W, const Variable& b) {
    return F::linear(x, W, b, std::max(x.ndim() - 1, 1));
}

}  // namespace

ColumnParallelLinear::ColumnParallelLinear(const Communicator& comm, std::int64_t in_size,
                                           std::int64_t out_size, bool gather_output, double wscale,
                                           double bias, bool nobias)
    : ColumnParallelLinear(comm, links::Linear(in_size, out_size, wscale, bias, nobias),
                           gather_output) {}
ColumnParallelLinear::ColumnParallelLinear(const Communicator& comm, const links::Linear& whole,
                                           bool gather_output)
    : comm_(comm), out_size_(whole.W.shape()[0]), gather_output_(gather_output) {
    W = own_weights(comm, "ColumnParallelLinear", whole.W.data(), 0);
    const Range own = part_of(out_size_, comm.rank(), comm.size());
    if (whole.b)
        b = Parameter(F::get_item(rank_0s(comm, whole.b).data(), {Slice{own.begin, own.end}}));
}
Variable ColumnParallelLinear::operator()(const Variable& x) const {
    const Variable y = linear(copy_to_ranks(comm_, x), W, b);
    return gather_output_ ? gather_from_ranks(comm_, y, out_size_) : y;
}

RowParallelLinear::RowParallelLinear(const Communicator& comm, std::int64_t in_size,
                                     std::int64_t out_size, bool split_input, double wscale,
                                     double bias, bool nobias)
    : RowParallelLinear(comm, links::Linear(in_size, out_size, wscale, bias, nobias), split_input) {
}
RowParallelLinear::RowParallelLinear(const Communicator& comm, const links::Linear& whole,
                                     bool split_input)
    : comm_(comm), split_input_(split_input) {
    W = own_weights(comm, "RowParallelLinear", whole.W.data(), 1);
    b = rank_0s(comm, whole.b);
}
Variable RowParallelLinear::operator()(const Variable& x) const {
    const Variable part = split_input_ ? scatter_to_ranks(comm_, x) : x;
    const Variable y = reduce_from_ranks(comm_, linear(part, W, {}));
    return b ? y + b : y;
}

// ---- batch normalization

namespace {

// The mean and the biased variance of each channel of x (N, C, ...): (1, 2, C), float32 for halves.
class Moments final : public FunctionNode {
public:
    explicit Moments(std::int64_t count) : count_(std::max<std::int64_t>(count, 1)) {}

private:
    Arrays forward(ArraySpan inputs) override {
        const Array& x = inputs[0];
        const std::int64_t channels = x.shape()[1];
        const Array gamma = Array::ones({channels}, x.dtype(), x.device());
        static const PluginFunction normalize("catena.batch_normalization");
        const Array given[] = {x, gamma, gamma};
        const Arrays y = normalize.forward(given);
        const Array moments = Array::empty({1, 2, channels}, y[1].dtype(), x.device());
        moments.view(0, {channels}).copy_from(y[1]);
        moments.view(channels, {channels}).copy_from(y[2]);
        retain_inputs({0});
        retain_outputs({0});
        return {moments};
    }
    // gx = (gmean + 2 gvar (x - mean)) / count, in one call.
    Variables backward(Targets, VariableSpan gy) override {
        const Variable x = get_retained_inputs()[0], moments = get_retained_outputs()[0];
        const auto as_x = [&](const Variable& g) {
            return g.dtype() == x.dtype() ? g : F::cast(g, x.dtype());
        };
        const Variable g = gy[0] * (1 / static_cast<double>(count_));
        const Variable one =
            as_variable(Array::ones({x.shape()[1]}, moments.dtype(), moments.device()));
        return {F::fixed_batch_normalization(x, as_x(F::get_item(g, {0, 1}) * 2.0),
                                             as_x(F::get_item(g, {0, 0})),
                                             F::get_item(moments, {0, 0}), one, 0)};
    }

    std::int64_t count_;
};

// Moments of all ranks from those of each (Chan et al., "Computing the sample variance", 1983).
links::BatchNormalization::Normalized normalize_over_ranks(const Communicator& comm,
                                                           const Variable& x, const Variable& gamma,
                                                           const Variable& beta, double eps) {
    if (x.ndim() < 2 || x.shape()[1] != gamma.size())
        fail<ShapeError>("[MultiNodeBatchNormalization] x: expected (N, {}, ...), got {}",
                         gamma.size(), to_string(x.shape()));
    const std::int64_t count = x.size() / gamma.size();
    const Array counts = Array::zeros({comm.size()}, Dtype::int64, cuda::host());
    comm.allgather(Array::from({count}, {1}, cuda::host()), counts, {},
                   {.label = "examples of batch normalization"})
        .wait();
    const auto of_ranks = counts.host<const std::int64_t>();
    const std::int64_t total = std::accumulate(of_ranks.begin(), of_ranks.end(), std::int64_t{0});
    std::vector<double> shares;
    for (const std::int64_t each : of_ranks)
        shares.push_back(static_cast<double>(each) /
                         static_cast<double>(std::max<std::int64_t>(total, 1)));

    const Variable moments = allgather(comm, FunctionNode::apply<Moments>({x}, count)[0]);
    const Variable share =
        as_variable(Array::from(std::span<const double>(shares), {comm.size(), 1}, cuda::host())
                        .astype(moments.dtype())
                        .to(x.device()));
    const Variable means = F::get_item(moments, {Slice(), 0});
    const Variable mean = F::sum(means * share, 0);
    const Variable distance = means - mean;
    const Variable var =
        F::sum((F::get_item(moments, {Slice(), 1}) + distance * distance) * share, 0);
    return {F::fixed_batch_normalization(x, gamma, beta, mean, var, eps), mean.data(), var.data(),
            total};
}

void use_all_ranks(const Communicator& comm, links::BatchNormalization& link) {
    if (comm.size() == 1) link.normalize_minibatch = {};
    else
        link.normalize_minibatch = [comm](const Variable& x, const Variable& gamma,
                                          const Variable& beta, double eps) {
            return normalize_over_ranks(comm, x, gamma, beta, eps);
        };
}

}  // namespace

MultiNodeBatchNormalization::MultiNodeBatchNormalization(const Communicator& comm, const Ints& size,
                                                         double share_kept, double epsilon)
    : BatchNormalization(size, share_kept, epsilon) {
    use_all_ranks(comm, *this);
}

int create_multi_node_bn(const Communicator& comm, Link& net) {
    struct Convert final : Visitor {
        const Communicator& comm;
        int found = 0;

        explicit Convert(const Communicator& c) : comm(c) {}
        void nested(Visitable& part) override {
            if (auto* link = dynamic_cast<links::BatchNormalization*>(&part)) {
                use_all_ranks(comm, *link);
                ++found;
            }
            Visitor::nested(part);
        }
    } convert(comm);
    convert.nested(net);
    return convert.found;
}

}  // namespace catena::distributed
