// Tests of links divided over ranks, compared with those of one process.
#include "ranks.hpp"

using namespace catena;
using namespace catena::distributed;

namespace {

// Two layers: the output of one is the input of the other.
struct Whole : Chain {
    links::Linear l1{6, 7}, l2{7, 5};
    Variable operator()(const Variable& x) const override { return l2(F::tanh(l1(x))); }
    void visit(Visitor& visitor) override { visitor("l1", l1)("l2", l2); }
};
struct Divided : Chain {
    ColumnParallelLinear l1;
    RowParallelLinear l2;
    explicit Divided(const Communicator& comm, const Whole& whole, bool at_borders)
        : l1(comm, whole.l1, at_borders), l2(comm, whole.l2, at_borders) {}
    Variable operator()(const Variable& x) const override { return l2(F::tanh(l1(x))); }
    void visit(Visitor& visitor) override { visitor("l1", l1)("l2", l2); }
};

Variable loss_of(const Variable& y) {
    return F::sum(y * y * as_variable(numbers(y.shape(), 3, y.dtype())));
}

Array columns_of(const Array& x, std::int64_t r, std::int64_t n) {
    const Range own = part_of(x.shape()[1], r, n);
    return F::get_item(x, {slice(), slice(own.begin, own.end)});
}

}  // namespace

TEST_CASE("a net divided over ranks computes what it computes in one process") {
    for (const Dtype dtype : {Dtype::float64, Dtype::float32})
        for (int n = 1; n <= 4; ++n)
            for (const bool at_borders : {false, true}) {
                CAPTURE(n);
                CAPTURE(at_borders);
                const double bound = dtype == Dtype::float64 ? 1e-10 : 1e-5;
                Whole whole;
                whole.l1.b.data().copy_from(numbers({7}, 4, Dtype::float32));
                whole.l2.b.data().copy_from(numbers({5}, 5, Dtype::float32));
                whole.to(dtype);
                const Array data = numbers({4, 6}, 1, dtype);
                const Variable x(data);
                const Variable y = whole(x);
                loss_of(y).backward();
                const Variable gx =
                    grad({loss_of(whole(x))}, {x}, {}, {}, {.enable_double_backprop = true})[0];
                const Array ggx = grad({F::sum(gx * gx * gx)}, {x})[0].data();
                run_ranks(
                    n,
                    [&](const Communicator& comm) {
                        Divided part(comm, whole, at_borders);
                        const Variable own(data);
                        const Variable z = part(own);
                        loss_of(z).backward();
                        const int r = comm.rank();
                        check_close(z.data(), y.data(), bound);
                        check_close(own.grad(), x.grad(), bound);
                        check_close(part.l1.W.grad(), rows_of(whole.l1.W.grad(), r, n), bound);
                        check_close(part.l1.b.grad(), rows_of(whole.l1.b.grad(), r, n), bound);
                        check_close(part.l2.W.grad(), columns_of(whole.l2.W.grad(), r, n), bound);
                        check_close(part.l2.b.grad(), whole.l2.b.grad(), bound);
                        const Variable g = grad({loss_of(part(own))}, {own}, {}, {},
                                                {.enable_double_backprop = true})[0];
                        check_close(grad({F::sum(g * g * g)}, {own})[0].data(), ggx, bound);
                    },
                    {}, 20);
            }
}

TEST_CASE("new links have the values of rank 0's Linear") {
    std::vector<Device> devices;  // each has its own random numbers
    for (int r = 0; r < 3; ++r) devices.push_back(Device::get("cpu:" + std::to_string(r)));
    seed(5);
    const links::Linear first(4, 7, 2, 0.5), second(7, 4, 1, 0, true);
    seed(5);
    run_ranks(
        3,
        [&](const Communicator& comm) {
            const ColumnParallelLinear column(comm, 4, 7, false, 2, 0.5);
            const RowParallelLinear row(comm, 7, 4, false, 1, 0, true);
            check_close(column.W.data(), rows_of(first.W.data(), comm.rank(), 3), 0);
            check_close(column.b.data(), rows_of(first.b.data(), comm.rank(), 3), 0);
            check_close(row.W.data(), columns_of(second.W.data(), comm.rank(), 3), 0);
            CHECK_FALSE(row.b);
            const Variable x(Array::zeros({2, 3, 4}));
            CHECK(row(column(x)).shape() == Shape{2, 3, 4});
        },
        devices, 20);
}

TEST_CASE("links with fewer outputs or inputs than ranks are refused") {
    CHECK_THROWS_WITH_AS(
        on_ranks(
            3, [](const Communicator& comm) { return ColumnParallelLinear(comm, 4, 2).W.data(); }),
        "[ColumnParallelLinear] out_size: expected at least one for each of 3 ranks, got 2",
        ShapeError);
    CHECK_THROWS_WITH_AS(
        on_ranks(3,
                 [](const Communicator& comm) { return RowParallelLinear(comm, 2, 4).W.data(); }),
        "[RowParallelLinear] in_size: expected at least one for each of 3 ranks, got 2",
        ShapeError);
}
