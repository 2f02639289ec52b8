// Tests of MultiNodeBatchNormalization, compared with BatchNormalization of the whole minibatch.
#include "ranks.hpp"

#include <filesystem>

using namespace catena;
using namespace catena::distributed;

namespace {

// The rows of each rank: equal, different, and none on one rank.
std::vector<Rows> divisions(int n) {
    std::vector<Rows> result(n > 1 ? 3 : 1);
    for (int r = 0; r < n; ++r) {
        result[0].push_back(3);
        if (n == 1) continue;
        result[1].push_back(r + 1);
        result[2].push_back(r == 1 ? 0 : 2 + r);
    }
    return result;
}

template <class Bn>
void set_parameters(Bn& link, Dtype dtype) {
    link.to(dtype);
    link.gamma.data().copy_from(numbers({3}, 6, link.gamma.dtype()));
    link.beta.data().copy_from(numbers({3}, 7, link.beta.dtype()));
}

Variable loss_of(const Variable& y, const Array& weights) {
    return F::sum(y * y * as_variable(weights));
}

struct Results {
    Array y, gx, ggx, gamma, beta, mean, var;
};

// weights: of the loss. The second loss is sum(gx^3).
template <class Bn>
Results results_of(const Bn& link, const Array& data, const Array& weights) {
    const Variable x(data), loss = loss_of(link(x), weights);
    loss.backward();
    Results r;
    r.mean = link.avg_mean.copy();
    r.var = link.avg_var.copy();
    r.gx = x.grad();
    r.gamma = link.gamma.grad();
    r.beta = link.beta.grad();
    const Variable y = link(x);
    r.y = y.data();
    const Variable gx =
        grad({loss_of(y, weights)}, {x}, {}, {}, {.enable_double_backprop = true})[0];
    r.ggx = grad({F::sum(gx * gx * gx)}, {x})[0].data();
    return r;
}

Array part(const Array& x, const Rows& rows, int rank) {
    std::int64_t begin = 0;
    for (int r = 0; r < rank; ++r) begin += rows[static_cast<std::size_t>(r)];
    return F::get_item(x, {slice(begin, begin + rows[static_cast<std::size_t>(rank)])});
}

}  // namespace

TEST_CASE("values, gradients and running averages are those of the whole minibatch") {
    for (const Dtype dtype : {Dtype::float64, Dtype::float32})
        for (int n = 1; n <= 4; ++n)
            for (const Rows& rows : divisions(n))
                for (const bool image : {false, true}) {
                    CAPTURE(n);
                    CAPTURE(image);
                    const double bound = dtype == Dtype::float64 ? 1e-10 : 1e-5;
                    std::int64_t total = 0;
                    for (const std::int64_t each : rows) total += each;
                    const Shape shape = image ? Shape{total, 3, 2, 2} : Shape{total, 3};
                    const Array data = numbers(shape, 1, dtype) * 2.0 + 1.0;
                    const Array weights = numbers(shape, 2, dtype);
                    links::BatchNormalization whole(3, 0.8, 1e-3);
                    set_parameters(whole, dtype);
                    const Results expected = results_of(whole, data, weights);
                    std::vector<Results> all(rows.size());
                    run_ranks(
                        n,
                        [&](const Communicator& comm) {
                            MultiNodeBatchNormalization link(comm, 3, 0.8, 1e-3);
                            set_parameters(link, dtype);
                            all[static_cast<std::size_t>(comm.rank())] =
                                results_of(link, part(data, rows, comm.rank()),
                                           part(weights, rows, comm.rank()));
                        },
                        {}, 20);
                    Array gamma = Array::zeros({3}, dtype), beta = gamma.copy();
                    for (int r = 0; r < n; ++r) {
                        const Results& own = all[static_cast<std::size_t>(r)];
                        check_close(own.y, part(expected.y, rows, r), bound);
                        check_close(own.gx, part(expected.gx, rows, r), bound);
                        check_close(own.ggx, part(expected.ggx, rows, r), 10 * bound);
                        check_close(own.mean, expected.mean, bound);
                        check_close(own.var, expected.var, bound);
                        CHECK(own.var.to_vector<double>() == all[0].var.to_vector<double>());
                        gamma = gamma + own.gamma;
                        beta = beta + own.beta;
                    }
                    check_close(gamma, expected.gamma, bound);
                    check_close(beta, expected.beta, bound);
                }
}

TEST_CASE("gradients are those of finite differences") {
    run_ranks(
        2,
        [](const Communicator& comm) {
            // Each rank computes the same function: of its own x, and of a constant on the other rank.
            MultiNodeBatchNormalization link(comm, 2);
            link.to(Dtype::float64);
            for (const int owner : {0, 1}) {
                const Array weights = numbers({3, 2}, 2);
                const auto loss = [&](const Array& mine) {
                    const Variable x(comm.rank() == owner ? mine : numbers({4, 2}, 9));
                    const Variable y = link(x, false);
                    Variable own = comm.rank() == owner ? loss_of(y, weights) : F::sum(y * y * y);
                    own.backward();
                    const Array total = own.data().copy();
                    comm.allreduce(total).wait();
                    return std::pair(total.item(), x.grad());
                };
                const Array data = numbers({3, 2}, 1);
                const Array gradient = loss(data).second;
                constexpr double eps = 1e-5;
                for (std::int64_t i = 0; i < data.size(); ++i) {
                    std::vector<double> up = data.to_vector<double>(), down = up;
                    up[static_cast<std::size_t>(i)] += eps;
                    down[static_cast<std::size_t>(i)] -= eps;
                    const auto at = [&](const std::vector<double>& v) {
                        return loss(Array::from(std::span<const double>(v), {3, 2})).first;
                    };
                    const double slope = (at(up) - at(down)) / (2 * eps);
                    if (comm.rank() == owner)
                        CHECK(gradient.to_vector<double>()[static_cast<std::size_t>(i)] ==
                              doctest::Approx(slope).epsilon(1e-6));
                }
            }
        },
        {}, 20);
}

TEST_CASE("the variance is accurate far from zero, also if the ranks' means differ") {
    const Array data = F::concat({numbers({20, 2}, 1) + 1000.0, numbers({20, 2}, 2) + 1010.0}, 0);
    links::BatchNormalization whole(2);
    whole.to(Dtype::float64);
    const Array expected = whole(Variable(data)).data().astype(Dtype::float32);
    const auto y = on_ranks(2, [&](const Communicator& comm) {
        const MultiNodeBatchNormalization link(comm, 2);
        return link(Variable(rows_of(data, comm.rank(), 2).astype(Dtype::float32))).data();
    });
    for (int r = 0; r < 2; ++r)
        check_close(y[static_cast<std::size_t>(r)], rows_of(expected, r, 2), 2e-4);
}

TEST_CASE("halves, a shape as size, fine-tuning, and tests with running averages") {
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16}) {
        const Array data = numbers({6, 3}, 1, dtype);
        links::BatchNormalization whole(3);
        whole.to(dtype);
        const Variable x(data);
        const Variable expected = whole(x);
        loss_of(expected, numbers({6, 3}, 2, dtype)).backward();
        const double bound = dtype == Dtype::float16 ? 5e-3 : 4e-2;
        run_ranks(
            2,
            [&](const Communicator& comm) {
                MultiNodeBatchNormalization link(comm, 3);
                link.to(dtype);
                const Variable own(rows_of(data, comm.rank(), 2));
                const Variable y = link(own);
                loss_of(y, rows_of(numbers({6, 3}, 2, dtype), comm.rank(), 2)).backward();
                check_close(y.data(), rows_of(expected.data(), comm.rank(), 2), bound);
                check_close(own.grad(), rows_of(x.grad(), comm.rank(), 2), bound);
                check_close(link.avg_var, whole.avg_var, 1e-5);
            },
            {}, 20);
    }
    const Array data = numbers({4, 2, 3}, 1, Dtype::float32);
    links::BatchNormalization whole(Shape{2, 3});
    const Array expected = whole(Variable(data), false, true).data();
    run_ranks(
        3,
        [&](const Communicator& comm) {
            MultiNodeBatchNormalization link(comm, Shape{2, 3});
            // Rank 2 has no examples, but counts the minibatch.
            const Array own =
                comm.rank() == 2 ? F::get_item(data, {slice(0, 0)}) : rows_of(data, comm.rank(), 2);
            const Array y = link(Variable(own), false, true).data();
            if (comm.rank() < 2) check_close(y, rows_of(expected, comm.rank(), 2), 1e-5);
            CHECK(link.N == 1);
            check_close(link.avg_mean, whole.avg_mean, 1e-5);
            check_close(link.avg_var, whole.avg_var, 1e-5);
            if (comm.rank() > 0) return;  // without other ranks
            check_close(link(Variable(data), true).data(), whole(Variable(data), true).data(),
                        1e-5);
        },
        {}, 20);
}

TEST_CASE("the links of a net are converted, and files stay the same") {
    struct Net : Chain {
        links::BatchNormalization first{3};
        Sequential rest{links::Linear(3, 3), links::BatchNormalization(3)};
        Variable operator()(const Variable& x) const override { return rest(first(x)); }
        void visit(Visitor& visitor) override { visitor("first", first)("rest", rest); }
    };
    Net whole;
    const Array data = numbers({8, 3}, 1, Dtype::float32);
    const Net start = deep_copy(whole);
    const Array expected = whole(Variable(data)).data();
    const auto names = [](Link& link) {
        struct Names : Visitor {
            std::vector<std::string> paths;
            void parameter(const std::string& path, Variable&) override { paths.push_back(path); }
            void array(const std::string& path, Array&) override { paths.push_back(path); }
            void integer(const std::string& path, std::int64_t&) override { paths.push_back(path); }
        } visitor;
        link.visit(visitor);
        return visitor.paths;
    };
    run_ranks(
        2,
        [&](const Communicator& comm) {
            Net net = deep_copy(start);
            CHECK(create_multi_node_bn(comm, net) == 2);
            const Net copy = deep_copy(net);
            const Array own = rows_of(data, comm.rank(), 2);
            check_close(net(Variable(own)).data(), rows_of(expected, comm.rank(), 2), 1e-5);
            check_close(copy(Variable(own)).data(), rows_of(expected, comm.rank(), 2), 1e-5);
            links::BatchNormalization single(3);
            CHECK(create_multi_node_bn(comm, single) == 1);
            CHECK(create_multi_node_bn(Communicator(), single) == 1);
            CHECK_FALSE(single.normalize_minibatch);
            CHECK(names(net) == names(whole));
        },
        {}, 20);
}

TEST_CASE("an x that does not fit is refused") {
    CHECK_THROWS_WITH_AS(
        on_ranks(
            2,
            [](const Communicator& comm) {
                return MultiNodeBatchNormalization(comm, 3)(Variable(Array::zeros({2, 4}))).data();
            }),
        "[MultiNodeBatchNormalization] x: expected (N, 3, ...), got (2, 4)", ShapeError);
}
