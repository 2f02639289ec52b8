// Tests of differentiable operations: values and gradients of first and second order, compared with
// the same computation by one process.
#include "ranks.hpp"

using namespace catena;
using namespace catena::distributed;

namespace {

using Parallel = std::function<Variable(const Communicator&, const Variable& x)>;
using Single = std::function<Variables(const Variables& x)>;

// y, the gradient of x and that of second order.
struct Results {
    std::vector<Array> y, gx, ggx;
};

Variable weighted(const Variable& y, std::uint64_t seed) {
    return F::sum(y * as_variable(numbers(y.shape(), seed, y.dtype()).to(y.device())));
}
Variable loss_of(const Variable& y, std::size_t r) { return weighted(y * y * y, 100 + r); }
Variable second_loss_of(const Variable& gx, std::size_t r) { return weighted(gx * gx, 200 + r); }

// Ranks with an empty x get a delegate instead.
Results by_ranks(const std::vector<Array>& x, const Parallel& body) {
    Results all{std::vector<Array>(x.size()), std::vector<Array>(x.size()),
                std::vector<Array>(x.size())};
    run_ranks(
        static_cast<int>(x.size()),
        [&](const Communicator& comm) {
            const auto r = static_cast<std::size_t>(comm.rank());
            const Variable own(x[r] ? x[r] : Array::zeros({}));
            const Variable y = body(comm, own);
            const Variable loss = loss_of(y, r);
            loss.backward();
            const Variable gx = grad({loss}, {own}, {}, {}, {.enable_double_backprop = true})[0];
            CHECK(gx.data().to_vector<double>() == own.grad().to_vector<double>());
            all.y[r] = y.data();
            all.gx[r] = gx.data();
            all.ggx[r] = grad({second_loss_of(gx, r)}, {own})[0].data();
        },
        {}, 20);
    return all;
}

// y is empty for ranks that get a delegate.
Results by_one(const std::vector<Array>& data, const Single& body) {
    Variables x, given;
    for (const Array& each : data) x.push_back(each ? Variable(each) : Variable());
    const Variables y = body(x);
    Variable loss(Array::zeros({}, Dtype::float64)), second = loss;
    Results all;
    for (std::size_t r = 0; r < y.size(); ++r) {
        all.y.push_back(y[r] ? y[r].data() : Array());
        if (y[r]) loss = loss + loss_of(y[r], r);
        if (x[r]) given.push_back(x[r]);
    }
    const Variables gx = grad({loss}, given, {}, {}, {.enable_double_backprop = true});
    for (std::size_t r = 0, k = 0; r < x.size(); ++r)
        if (x[r]) second = second + second_loss_of(gx[k++], r);
    const Variables ggx = grad({second}, given);
    for (std::size_t r = 0, k = 0; r < x.size(); ++r, k += x[r - 1] ? 1 : 0) {
        all.gx.push_back(x[r] ? gx[k].data() : Array());
        all.ggx.push_back(x[r] ? ggx[k].data() : Array());
    }
    return all;
}

void compare(const std::vector<Array>& x, const Parallel& parallel, const Single& single) {
    const Results got = by_ranks(x, parallel), expected = by_one(x, single);
    const auto check = [](const std::vector<Array>& a, const std::vector<Array>& b) {
        for (std::size_t r = 0; r < a.size(); ++r) {
            if (b[r]) check_close(a[r], b[r]);
            else check_close(a[r], Array::zeros({}));  // a delegate
        }
    };
    check(got.y, expected.y);
    check(got.gx, expected.gx);
    check(got.ggx, expected.ggx);
}

std::vector<Array> inputs(int n, const std::function<Shape(int)>& shape) {
    std::vector<Array> x;
    for (int r = 0; r < n; ++r) x.push_back(numbers(shape(r), static_cast<std::uint64_t>(r)));
    return x;
}
std::vector<Array> of_root(int n, int root, const Shape& shape) {
    std::vector<Array> x(static_cast<std::size_t>(n));
    x[static_cast<std::size_t>(root)] = numbers(shape, 1);
    return x;
}

Variable sum_of(const Variables& x) {
    Variable sum = x[0];
    for (std::size_t r = 1; r < x.size(); ++r) sum = sum + x[r];
    return sum;
}
Variable rows(const Variable& x, std::int64_t begin, std::int64_t n) {
    return F::get_item(x, {slice(begin, begin + n)});
}
// x divided by counts of rows.
Variables divided(const Variable& x, const Rows& counts) {
    Variables y;
    std::int64_t begin = 0;
    for (const std::int64_t n : counts) {
        y.push_back(rows(x, begin, n));
        begin += n;
    }
    return y;
}
// Different numbers of rows, of which one is 0.
Rows uneven(int n) {
    Rows counts;
    for (int r = 0; r < n; ++r) counts.push_back(r == 1 ? 0 : r + 1);
    return counts;
}
std::int64_t sum_of(const Rows& counts) {
    std::int64_t sum = 0;
    for (const std::int64_t each : counts) sum += each;
    return sum;
}

// Rank 1 receives a constant.
Variable recv_or_send(const Communicator& comm, const Variable& before) {
    if (comm.rank() == 1) return recv(comm, 0, 3, before);
    send(comm, as_variable(numbers({2}, 1, Dtype::float32)), 1, 3);
    return {};
}

}  // namespace

TEST_CASE("allreduce") {
    for (int n = 1; n <= 4; ++n) {
        CAPTURE(n);
        const auto x = inputs(n, [](int) { return Shape{2, 3}; });
        const auto same = [n](const Variable& y) {
            return Variables(static_cast<std::size_t>(n), y);
        };
        compare(
            x, [](const auto& comm, const Variable& v) { return allreduce(comm, v); },
            [&](const Variables& v) { return same(sum_of(v)); });
        compare(
            x,
            [](const auto& comm, const Variable& v) { return allreduce(comm, v, Reduction::mean); },
            [&](const Variables& v) { return same(sum_of(v) * (1.0 / n)); });
    }
}

TEST_CASE("reduce and bcast") {
    for (int n = 1; n <= 4; ++n)
        for (const int root : {0, n - 1}) {
            CAPTURE(n);
            CAPTURE(root);
            for (const Reduction reduction : {Reduction::sum, Reduction::mean})
                compare(
                    inputs(n, [](int) { return Shape{3}; }),
                    [&](const auto& comm, const Variable& v) {
                        return reduce(comm, v, root, reduction);
                    },
                    [&](const Variables& v) {
                        Variables y(v.size());
                        y[static_cast<std::size_t>(root)] =
                            sum_of(v) * (reduction == Reduction::mean ? 1.0 / n : 1.0);
                        return y;
                    });
            compare(
                of_root(n, root, {2, 2}),
                [&](const auto& comm, const Variable& v) { return bcast(comm, v, root); },
                [&](const Variables& v) {
                    return Variables(v.size(), v[static_cast<std::size_t>(root)]);
                });
        }
}

TEST_CASE("allgather and reduce_scatter") {
    for (int n = 1; n <= 4; ++n) {
        CAPTURE(n);
        const auto gathered = [](const Variables& v) {
            return Variables(v.size(), F::concat(v, 0));
        };
        compare(
            inputs(n,
                   [](int) {
                       return Shape{2, 3};
                   }),
            [](const auto& comm, const Variable& v) { return allgather(comm, v); }, gathered);
        const Rows counts = uneven(n);
        compare(
            inputs(n,
                   [&](int r) {
                       return Shape{counts[static_cast<std::size_t>(r)], 2};
                   }),
            [&](const auto& comm, const Variable& v) { return allgather(comm, v, counts); },
            gathered);
        compare(
            inputs(n, [n](int) { return Shape{2 * n}; }),
            [](const auto& comm, const Variable& v) { return reduce_scatter(comm, v); },
            [&](const Variables& v) {
                return divided(sum_of(v), Rows(static_cast<std::size_t>(n), 2));
            });
        compare(
            inputs(n,
                   [&](int) {
                       return Shape{sum_of(counts), 2};
                   }),
            [&](const auto& comm, const Variable& v) {
                return reduce_scatter(comm, v, Reduction::mean, counts);
            },
            [&](const Variables& v) { return divided(sum_of(v) * (1.0 / n), counts); });
    }
}

TEST_CASE("gather and scatter") {
    for (int n = 1; n <= 4; ++n)
        for (const int root : {0, n - 1}) {
            CAPTURE(n);
            CAPTURE(root);
            const auto at = static_cast<std::size_t>(root);
            const Rows counts = uneven(n), equal(static_cast<std::size_t>(n), 2);
            for (const Rows& each : {counts, equal}) {
                const Rows given = each == equal ? Rows() : each;
                compare(
                    inputs(n,
                           [&](int r) {
                               return Shape{each[static_cast<std::size_t>(r)], 2};
                           }),
                    [&](const auto& comm, const Variable& v) {
                        return gather(comm, v, root, comm.rank() == root ? given : Rows());
                    },
                    [&](const Variables& v) {
                        Variables y(v.size());
                        y[at] = F::concat(v, 0);
                        return y;
                    });
                compare(
                    of_root(n, root, {sum_of(each), 3}),
                    [&](const auto& comm, const Variable& v) {
                        return scatter(comm, v, root, comm.rank() == root ? given : Rows());
                    },
                    [&](const Variables& v) { return divided(v[at], each); });
            }
        }
}

TEST_CASE("alltoall") {
    for (int n = 1; n <= 4; ++n) {
        CAPTURE(n);
        // Rank s sends count(s, r) rows to rank r.
        for (const bool equal : {true, false}) {
            const auto count = [&](int s, int r) -> std::int64_t {
                return equal ? 2 : (s + 2 * r) % 3;
            };
            const auto sends = [&](int s) {
                Rows result;
                for (int r = 0; r < n; ++r) result.push_back(count(s, r));
                return result;
            };
            compare(
                inputs(n,
                       [&](int s) {
                           return Shape{sum_of(sends(s)), 2};
                       }),
                [&](const auto& comm, const Variable& v) {
                    if (equal) return alltoall(comm, v);
                    Rows receives;
                    for (int s = 0; s < n; ++s) receives.push_back(count(s, comm.rank()));
                    return alltoall(comm, v, sends(comm.rank()), receives);
                },
                [&](const Variables& v) {
                    std::vector<Variables> pieces;
                    for (int s = 0; s < n; ++s)
                        pieces.push_back(divided(v[static_cast<std::size_t>(s)], sends(s)));
                    Variables y;
                    for (std::size_t r = 0; r < v.size(); ++r) {
                        Variables parts;
                        for (const Variables& each : pieces) parts.push_back(each[r]);
                        y.push_back(F::concat(parts, 0));
                    }
                    return y;
                });
        }
    }
}

TEST_CASE("messages along a line of ranks, of which each computes a step") {
    for (int n = 2; n <= 4; ++n) {
        CAPTURE(n);
        compare(
            of_root(n, 0, {2, 3}),
            [n](const auto& comm, const Variable& v) {
                const int r = comm.rank();
                const Variable h = r == 0 ? v : recv(comm, r - 1, 7, v);
                return r + 1 < n ? send(comm, F::sin(h * 1.5), r + 1, 7) : h;
            },
            [n](const Variables& v) {
                Variables y(v.size());
                Variable h = v[0];
                for (int r = 0; r + 1 < n; ++r) h = F::sin(h * 1.5);
                y.back() = h;
                return y;
            });
    }
}

TEST_CASE("messages around a ring, which pseudo_connect() joins to what each rank computes") {
    for (int n = 2; n <= 4; ++n) {
        CAPTURE(n);
        compare(
            inputs(n, [](int) { return Shape{2}; }),
            [n](const auto& comm, const Variable& v) {
                const int r = comm.rank(), next = (r + 1) % n, before = (r + n - 1) % n;
                if (r == 0) return recv(comm, before, 0, send(comm, v, next));
                // The message needs a delegate, so that the gradient of second order arrives.
                const Variable start = F::cast(F::sum(v) * 1e-30, Dtype::float32);
                const Variable h = recv(comm, before, 0, start);
                return pseudo_connect(send(comm, F::sin(h) * v, next), v);
            },
            [](const Variables& v) {
                Variables y = v;
                Variable h = v[0];
                for (std::size_t r = 1; r < v.size(); ++r) h = F::sin(h) * v[r];
                y[0] = h;
                return y;
            });
    }
}

TEST_CASE("backward() without delegates: a received variable is the start of a graph") {
    const auto grads = on_ranks(2, [](const Communicator& comm) -> Array {
        if (comm.rank() == 1) {
            const Variable h = recv(comm, 0);
            F::sum(h * h).backward();
            return h.data();
        }
        const Variable x(numbers({3}, 1));
        send(comm, x * 2.0, 1).backward();
        return x.grad();
    });
    check_close(grads[0], numbers({3}, 1) * 8.0);
    check_close(grads[1], numbers({3}, 1) * 2.0);
}

TEST_CASE("variables without a gradient, integers, halves, and a group of one") {
    const using_device other(Device::get("cpu:1"));  // also that of ranks
    const auto received = on_ranks(2, [](const Communicator& comm) {
        CHECK(Device::current() == Device::get("cpu:1"));
        const Variable given =
            comm.rank() == 0 ? as_variable(Array::from({1, 2, 3}, {3})) : Variable();
        const Variable y = bcast(comm, given);
        CHECK_FALSE(y.requires_grad());
        const Variable part = scatter(
            comm, comm.rank() == 0 ? as_variable(numbers({4}, 1, Dtype::float32)) : Variable(), 0);
        CHECK_FALSE(part.requires_grad());
        // The delegate of an earlier operation is reached, also on another device.
        const Variable before(Array::zeros({}));
        const Variable label = recv_or_send(comm, before);
        if (label) F::sum(label * Variable(Array::ones({2}))).backward();
        CHECK(bool(before.grad()) == bool(label));
        const no_backprop_mode no_graph;
        const Variable z = comm.rank() == 0 ? send(comm, Variable(numbers({2}, 1)), 1)
                                            : recv(comm, 0, 0, Variable(Array::zeros({})));
        CHECK_FALSE(z.creator());
        return y.data();
    });
    for (const Array& each : received) CHECK(each.to_vector<int>() == std::vector{1, 2, 3});

    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32}) {
        const auto gradients = on_ranks(3, [&](const Communicator& comm) {
            const Variable x(Array::full({2}, comm.rank() + 1, dtype));
            const Variable y = allgather(comm, allreduce(comm, x));
            CHECK(y.data().to_vector<float>() == std::vector<float>(6, 6));
            CHECK(y.dtype() == dtype);
            F::sum(y).backward();
            return x.grad();
        });
        for (const Array& each : gradients) check_close(each, Array::full({2}, 9, dtype));
    }

    const Communicator alone;
    const Variable x(numbers({2, 2}, 1));
    const Variable y = alltoall(alone, scatter(alone, gather(alone, allreduce(alone, x), 0), 0));
    F::sum(reduce(alone, bcast(alone, reduce_scatter(alone, allgather(alone, y))), 0) * 3.0)
        .backward();
    check_close(y.data(), x.data());
    check_close(x.grad(), Array::full({2, 2}, 3, Dtype::float64));
}

TEST_CASE("errors say what was expected") {
    const Communicator comm;
    const Variable x(numbers({3, 2}, 1)), scalar(Array::zeros({}));
    CHECK_THROWS_WITH_AS(allreduce(comm, {}),
                         "[allreduce] x: expected a variable, got an empty handle", InvalidError);
    CHECK_THROWS_WITH_AS(allreduce(comm, x, Reduction::max),
                         "[allreduce] reduction: expected sum or mean, got another one",
                         InvalidError);
    CHECK_THROWS_WITH_AS(bcast(comm, x, 1), "[bcast] root: expected a rank below 1, got 1",
                         InvalidError);
    CHECK_THROWS_WITH_AS(send(comm, x, -1), "[send] to: expected a rank below 1, got -1",
                         InvalidError);
    CHECK_THROWS_WITH_AS(allgather(comm, scalar),
                         "[allgather] x: expected at least one axis, got ()", ShapeError);
    CHECK_THROWS_WITH_AS(allgather(comm, x, {2}),
                         "[allgather] x: expected 2 rows as in the counts, got shape (3, 2)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(scatter(comm, x, 0, {1, 2}),
                         "[scatter] rows: expected 1 numbers, one for each rank, got 2",
                         ShapeError);
    CHECK_THROWS_WITH_AS(reduce_scatter(comm, x, Reduction::sum, {-1}),
                         "[reduce_scatter] rows: expected numbers >= 0, got -1", ShapeError);
    CHECK_THROWS_WITH_AS(alltoall(comm, x, {3}),
                         "[alltoall] recv_rows: expected as many numbers as in send_rows, 1, got 0",
                         ShapeError);
    CHECK_THROWS_WITH_AS(gather_from_ranks(comm, x, 5),
                         "[gather_from_ranks] x: expected 5 elements along the last axis, rank 0's "
                         "of 5, got shape (3, 2)",
                         ShapeError);
    CHECK_THROWS_AS(on_ranks(2,
                             [](const Communicator& two) {
                                 return reduce_scatter(two, Variable(numbers({3}, 1))).data();
                             }),
                    ShapeError);
    CHECK_THROWS_WITH_AS(on_ranks(2,
                                  [](const Communicator& two) {
                                      return bcast(two, Variable(numbers({3}, 1))).data();
                                  }),
                         "[bcast] x: expected none, or a delegate (float32 of shape ()), as "
                         "another rank gives x, got float64 of shape (3,)",
                         InvalidError);
    // Ranks that disagree fail together.
    CHECK_THROWS_AS(
        on_ranks(2,
                 [](const Communicator& two) {
                     return allreduce(two, Variable(numbers({2 + two.rank()}, 1))).data();
                 }),
        DeviceError);
}

TEST_CASE("operations of ranks that compute one loss together") {
    for (int n = 1; n <= 4; ++n) {
        CAPTURE(n);
        const Array data = numbers({2, 3, 5}, 1), factors = numbers({5}, 2);
        const auto second = [](const Variable& gx) { return F::sum(gx * gx * gx); };
        const Variable x(data);
        const Variable y = F::sin(x * as_variable(factors)) * 2.0;
        const Variable gx =
            grad({weighted(y * y, 3)}, {x}, {}, {}, {.enable_double_backprop = true})[0];
        const Array ggx = grad({second(gx)}, {x})[0].data();
        run_ranks(
            n,
            [&](const Communicator& comm) {
                const Variable whole(data);
                const Range own = part_of(5, comm.rank(), n);
                const Array factor = F::get_item(factors, {slice(own.begin, own.end)});
                // The part is computed twice, once with an elementwise sum over the ranks.
                const Variable part = scatter_to_ranks(comm, whole) * as_variable(factor);
                const Variable one = gather_from_ranks(comm, F::sin(part), 5);
                const double share = 1.0 / n;
                const Variable other = reduce_from_ranks(
                    comm, F::sin(copy_to_ranks(comm, whole) * as_variable(factors)) * share);
                const Variable both = one + other;
                const Variable g = grad({weighted(both * both, 3)}, {whole}, {}, {},
                                        {.enable_double_backprop = true})[0];
                check_close(both.data(), y.data());
                check_close(g.data(), gx.data());
                check_close(grad({second(g)}, {whole})[0].data(), ggx);
            },
            {}, 20);
    }
}
