// Tests of summaries, evaluators, optimizers by name, schedules, device threads and Prefetch.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <string>

using namespace catena;
namespace F = catena::functions;

TEST_CASE("Summary: weighted means, settled late, and saved") {
    Summary summary{"loss", "accuracy"};
    CHECK(std::isnan(summary.mean("loss")));
    for (int i = 0; i < 1000; ++i)
        summary.add({Array::full({}, i), Array::full({1}, 0.5, Dtype::float64)}, i % 2 ? 1 : 3);
    CHECK(summary.mean("loss") == doctest::Approx(499.25));
    CHECK(summary.mean("accuracy") == 0.5);
    CHECK(summary.weight() == 2000);
    CHECK_THROWS_AS((void)summary.mean("los"), InvalidError);
    CHECK_THROWS_AS(summary.add({Array::ones({})}, 1), ShapeError);
    CHECK_THROWS_AS(summary.add({Array::ones({2}), Array::ones({})}, 1), ShapeError);
    CHECK_THROWS_AS(summary.add({Array::ones({}), Array::ones({})}, 0), InvalidError);
    CHECK_THROWS_AS(summary.add({Array::ones({}), Array::ones({})}, NAN), InvalidError);
    const TemporaryFolder folder;
    save_npz(folder.path / "a.npz", summary);
    Summary again{"loss", "accuracy"};
    load_npz(folder.path / "a.npz", again);
    CHECK(again.mean("loss") == summary.mean("loss"));
    summary.clear();
    CHECK(std::isnan(summary.mean("accuracy")));
}

TEST_CASE("Evaluator: one pass, no graph, no training") {
    std::vector<float> values(10);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const Variable factor(Array::full({}, 2));
    int calls = 0;
    const Evaluator twice({{Array::from(values, {10, 1})}}, 4, {"mean"},
                          [&](std::span<const Array> batch) {
                              ++calls;
                              CHECK(!config().train);
                              const Variable y = F::sum(as_variable(batch[0])) * factor;
                              CHECK(y.creator() == nullptr);
                              return std::vector{(y / static_cast<double>(batch[0].size())).data()};
                          });
    CHECK(twice().mean("mean") == doctest::Approx(9));
    CHECK(twice().mean("mean") == doctest::Approx(9));  // starts from the beginning again
    CHECK(calls == 6);
    CHECK(config().train);
}

TEST_CASE("schedules") {
    using namespace schedules;
    CHECK(constant(0.5)(1e9) == 0.5);
    const auto falls = decay(1, 0.5, 2);
    CHECK(falls(0) == 1);
    CHECK(falls(1.99) == 1);
    CHECK(falls(2) == 0.5);
    CHECK(falls(3.5) == 0.25);
    const auto parts = steps({{0, 0.1}, {30, 0.01}, {60, 0.001}});
    CHECK(parts(29.9) == 0.1);
    CHECK(parts(30) == 0.01);
    CHECK(parts(1000) == 0.001);
    CHECK(linear(1, 3, 4)(1) == 1.5);
    CHECK(linear(1, 3, 4)(9) == 3);
    CHECK(linear(1, 3, 0)(0) == 3);
    CHECK(cosine(1, 0.5, 10)(0) == 1);
    CHECK(cosine(1, 0.5, 10)(5) == doctest::Approx(0.75));
    CHECK(cosine(1, 0.5, 10)(10) == doctest::Approx(0.5));
    const auto warm = warmup(10, constant(2));
    CHECK(warm(0) > 0);
    CHECK(warm(5) == 1);
    CHECK(warm(20) == 2);
    CHECK_THROWS_AS((void)constant(0), InvalidError);
    CHECK_THROWS_AS((void)constant(INFINITY), InvalidError);
    CHECK_THROWS_AS((void)decay(1, -1), InvalidError);
    CHECK_THROWS_AS((void)decay(1, 1, -1), InvalidError);
    CHECK_THROWS_AS((void)steps({}), InvalidError);
    CHECK_THROWS_AS((void)steps({{1, 0.1}}), InvalidError);
    CHECK_THROWS_AS((void)steps({{0, 0.1}, {0, 0.2}}), InvalidError);
    CHECK_THROWS_AS((void)linear(1, 2, NAN), InvalidError);
    CHECK_THROWS_AS((void)warmup(1, {}), InvalidError);
}

TEST_CASE("optimizers by name, and their rates") {
    const auto names = optimizers::names();
    CHECK(std::ranges::is_sorted(names));
    for (const char* name : {"ada_bound", "adam", "adam_w", "ams_grad", "corrected_momentum_sgd",
                             "rmsprop", "rmsprop_graves", "sgd", "smorms3"})
        CHECK(std::ranges::count(names, std::string_view(name)) == 1);
    for (const std::string_view name : names) {
        CAPTURE(name);
        if (!optimizers::default_rate(name)) {
            CHECK_THROWS_AS((void)optimizers::make(name, 0.1), InvalidError);
            CHECK_THROWS_AS(optimizers::make(name)->set_rate(0.1), UnsupportedError);
            continue;
        }
        const Variable p(Array::ones({2}));
        const auto optimizer = optimizers::make(name, 1e-3);
        optimizer->setup(std::vector<NamedParameter>{{"p", p}});
        p.set_grad(Array::ones({2}));
        optimizer->update();
        const double small = 1 - p.data().to_vector<float>()[0];
        optimizer->set_rate(0.1);
        optimizer->update();
        const double large = 1 - small - p.data().to_vector<float>()[0];
        CHECK(small > 0);
        CHECK(large > 20 * small);
    }
    CHECK_THROWS_AS((void)optimizers::make("sgdd", 1), InvalidError);
    CHECK_THROWS_AS((void)optimizers::default_rate("sgdd"), InvalidError);
}

TEST_CASE("an optimizer made by name has the defaults of its class") {
    const auto steps = [](std::unique_ptr<Optimizer> optimizer) {
        const Variable p(Array::from({1.F, -2.F}, {2}));
        optimizer->setup(std::vector<NamedParameter>{{"p", p}});
        for (int i = 0; i < 3; ++i) {
            p.set_grad(Array::from({0.5F, -0.25F}, {2}));
            optimizer->update();
        }
        return p.data().to_vector<float>();
    };
    using namespace optimizers;
    CHECK(steps(make("ada_delta")) == steps(std::make_unique<AdaDelta>()));
    CHECK(steps(make("ada_grad")) == steps(std::make_unique<AdaGrad>()));
    CHECK(steps(make("adam")) == steps(std::make_unique<Adam>()));
    CHECK(steps(make("momentum_sgd")) == steps(std::make_unique<MomentumSGD>()));
    CHECK(steps(make("rmsprop")) == steps(std::make_unique<RMSprop>()));
    CHECK(steps(make("sgd")) == steps(std::make_unique<SGD>()));
    CHECK(*default_rate("ada_grad") == 0.001);  // Chainer's default
}

TEST_CASE("DeviceThreads: a thread for each device, and what they throw") {
    const std::vector<Device> devices{Device::get("cpu:0"), Device::get("cpu:1"),
                                      Device::get("cpu:2")};
    DeviceThreads threads(devices);
    const using_config testing(&Config::train, false);
    for (int round = 0; round < 100; ++round) {
        std::vector<Array> results(3);
        std::vector<std::thread::id> ids(3);
        threads.run([&](std::size_t i) {
            CHECK(Device::current() == devices[i]);
            CHECK(!config().train);
            results[i] = Array::full({2}, static_cast<double>(i));
            ids[i] = std::this_thread::get_id();
        });
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(results[i].device() == devices[i]);
            CHECK(results[i].to_vector<float>()[1] == static_cast<float>(i));
        }
        CHECK(ids[0] == std::this_thread::get_id());
        CHECK(ids[1] != ids[2]);
    }
    std::atomic<int> ended = 0;
    contains(error_of<ShapeError>([&] {
                 threads.run([&](std::size_t i) {
                     ++ended;
                     if (i > 0) throw ShapeError("from " + std::to_string(i));
                 });
             }),
             "from 1");
    CHECK(ended == 3);
    threads.run([](std::size_t) {});
    CHECK_THROWS_AS(threads.run([&](std::size_t) { threads.run([](std::size_t) {}); }),
                    InvalidError);
    threads.run([](std::size_t) {});
    CHECK_THROWS_AS(DeviceThreads({}), ShapeError);
}

TEST_CASE("Prefetch: what cannot be is refused") {
    const auto make = [](std::int64_t i) { return i; };
    CHECK_THROWS_AS(Prefetch<std::int64_t>(make, 0, 0, 3), InvalidError);
    CHECK_THROWS_AS(Prefetch<std::int64_t>(make, 0, 2, 0), InvalidError);
}

TEST_CASE("Prefetch: in order, by several threads, with failures at their turn") {
    for (const int n : {1, 4}) {
        std::atomic<int> broken = 1;
        std::atomic<std::int64_t> latest = 0;
        Prefetch<std::int64_t> things(
            [&](std::int64_t i) {
                latest = std::max<std::int64_t>(latest, i);
                if (i == 25 && broken) throw DataError("broken");
                return i * i;
            },
            5, n, 3);
        for (std::int64_t i = 5; i < 25; ++i) {
            CHECK(things.next() == i * i);
            CHECK(latest <= i + 4);
        }
        CHECK_THROWS_AS((void)things.next(), DataError);
        CHECK_THROWS_AS((void)things.next(), DataError);
        broken = 0;
        std::int64_t next = 0;
        while (next == 0) {  // a call already in progress may still fail
            try {
                next = things.next();
            } catch (const DataError&) {
            }
        }
        CHECK(next == 25 * 25);
        CHECK(things.next() == 26 * 26);
    }
}
