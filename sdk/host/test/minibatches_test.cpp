// Tests of minibatches: each example once per epoch, in an order given by seed and epoch only.
#include <catena/core/error.hpp>
#include <catena/minibatches.hpp>
#include <catena/serializer.hpp>

#include "temporary.hpp"

#include <algorithm>
#include <numeric>

using namespace catena;

namespace {

Dataset numbers(int n) {
    std::vector<float> x(static_cast<std::size_t>(2 * n));
    std::vector<std::int32_t> t(static_cast<std::size_t>(n));
    std::iota(x.begin(), x.end(), 0.F);
    std::iota(t.begin(), t.end(), 0);
    return {{Array::from(x, {n, 2}), Array::from(t, {n})}};
}

std::vector<std::int32_t> epoch_of(Minibatches& batches) {
    std::vector<std::int32_t> order;
    for (const auto epoch = batches.epoch(); batches.epoch() == epoch;) {
        const auto batch = batches.next();
        const auto x = batch[0].to_vector<float>();
        const auto t = batch[1].to_vector<std::int32_t>();
        for (std::size_t i = 0; i < t.size(); ++i) {
            CHECK(x[2 * i] == static_cast<float>(2 * t[i]));
            CHECK(x[2 * i + 1] == static_cast<float>(2 * t[i] + 1));
        }
        order.insert(order.end(), t.begin(), t.end());
    }
    return order;
}

}  // namespace

TEST_CASE("an epoch has every example once, and the last batch may be smaller") {
    Minibatches batches(numbers(10), 4, 1);
    CHECK(batches.next()[0].shape() == Shape{4, 2});
    CHECK(batches.position() == 4);
    CHECK(batches.next()[1].shape() == Shape{4});
    CHECK(batches.next()[1].shape() == Shape{2});
    CHECK(batches.epoch() == 1);
    CHECK(batches.position() == 0);
    auto order = epoch_of(batches);
    CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
    std::sort(order.begin(), order.end());
    CHECK(order == numbers(10).arrays[1].to_vector<std::int32_t>());
}

TEST_CASE("the order depends on seed and epoch") {
    Minibatches a(numbers(50), 7, 1);
    Minibatches b(numbers(50), 7, 1);
    Minibatches c(numbers(50), 7, 2);
    const auto first = epoch_of(a);
    CHECK(epoch_of(b) == first);
    CHECK(epoch_of(c) != first);
    CHECK(epoch_of(a) != first);
    Minibatches sorted(numbers(50), 7, 1, false);
    CHECK(epoch_of(sorted) == numbers(50).arrays[1].to_vector<std::int32_t>());
}

TEST_CASE("a saved position goes on where it was") {
    const TemporaryFolder folder;
    Minibatches a(numbers(20), 3, 9);
    for (int i = 0; i < 10; ++i) a.next();
    save_npz(folder.path / "a.npz", a);
    Minibatches b(numbers(20), 3, 0);
    b.next();
    load_npz(folder.path / "a.npz", b);
    for (int i = 0; i < 10; ++i) {
        CHECK(a.next()[1].to_vector<float>() == b.next()[1].to_vector<float>());
    }
    Minibatches other(numbers(21), 3, 9);
    contains(error_of<Error>([&] { load_npz(folder.path / "a.npz", other); }),
             "size: expected 21, got 20");
}

TEST_CASE("a batch is the caller's own") {
    Minibatches batches(numbers(6), 3, 1, false);
    const auto first = batches.next();
    first[1].fill(-1);
    batches.next();
    CHECK(batches.next()[1].to_vector<std::int32_t>() == std::vector<std::int32_t>{0, 1, 2});
    CHECK(first[1].to_vector<std::int32_t>() == std::vector<std::int32_t>{-1, -1, -1});
}

TEST_CASE("what cannot be is refused") {
    CHECK_THROWS_AS(Minibatches(Dataset{}, 3), ShapeError);
    CHECK_THROWS_AS(Minibatches(numbers(0), 3), ShapeError);
    CHECK_THROWS_AS(Minibatches(numbers(3), 0), InvalidError);
    CHECK_THROWS_AS((Dataset{{Array::zeros({3, 2}), Array::zeros({2})}}.size()), ShapeError);
}
