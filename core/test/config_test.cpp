// Tests of the thread's configuration, current device, random streams and device threads.
#include "toys.hpp"

#include "graph/call.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

using namespace catena;
using namespace toys;

TEST_CASE("the configuration is the thread's own") {
    CHECK(config().train);
    CHECK(config().enable_backprop);
    CHECK_FALSE(config().deterministic);
    const using_config scope(&Config::train, false);
    CHECK_FALSE(config().train);
    bool other = false;
    std::thread([&] {
        other = config().train;
        config().deterministic = true;
    }).join();
    CHECK(other);
    CHECK_FALSE(config().deterministic);
    {
        const using_config inner(&Config::train, true);
        CHECK(config().train);
    }
    CHECK_FALSE(config().train);
}

TEST_CASE("new threads start with the process's configuration") {
    global_config().deterministic = true;
    bool other = false;
    std::thread([&] { other = config().deterministic; }).join();
    global_config().deterministic = false;
    CHECK(other);
    CHECK_FALSE(config().deterministic);
}

TEST_CASE("names that plugins ask for are the thread's own, too") {
    const catena_host& host = host_table();
    const auto asked = [&] { return host.config(nullptr, "use_it", 7); };
    CHECK(asked() == 7);
    {
        const using_named_config outer("use_it", 0);
        CHECK(asked() == 0);
        {
            const using_named_config inner("use_it", 3);
            CHECK(asked() == 3);
            const using_named_config other("use_that", 1);
            CHECK(asked() == 3);
            std::int64_t elsewhere = -1;
            std::thread([&] { elsewhere = asked(); }).join();
            CHECK(elsewhere == 7);
        }
        CHECK(asked() == 0);
        config().named.clear();  // the destructor of the scope tolerates this
    }
    CHECK(asked() == 7);
    global_config().named["use_it"] = 5;
    std::int64_t elsewhere = -1;
    std::thread([&] { elsewhere = asked(); }).join();
    global_config().named.clear();
    CHECK(elsewhere == 5);
    CHECK(asked() == 7);
}

namespace {

// Its gradients() logs the setting "use_it", and makes another such call if gradients are recorded.
class Noting final : public GraphNode {
public:
    static Variable call(const Variable& x) {
        const Ref<GraphNode> owner(new Noting);
        const Variable y(x.data().copy());
        const Variable* const inputs[] = {&x};
        static_cast<Noting&>(*owner).record(inputs, std::span(&y, 1));
        return y;
    }
    std::string_view label() const noexcept override { return "Noting"; }
    void gradients(std::span<const Variable> gy, std::span<const bool>,
                   std::span<Variable> gx) override {
        note();
        gx[0] = config().enable_backprop ? call(gy[0]) : gy[0];
    }
    static std::int64_t asked() { return host_table().config(nullptr, "use_it", 7); }
    inline static std::vector<std::int64_t> noted;
    inline static bool fail = false;

private:
    static void note() {
        noted.push_back(asked());
        if (fail) throw ValueError("as told");
    }
};

}  // namespace

TEST_CASE("a gradient has the named settings that its call was made with") {
    using Seen = std::vector<std::int64_t>;
    const auto noted = [] { return std::exchange(Noting::noted, {}); };
    const Variable x(floats({1}));
    const Variable plain = Noting::call(x);
    const Variable y = [&] {
        const using_named_config scope("use_it", 0);
        return Noting::call(plain);
    }();
    const Variable z = [&] {
        const using_named_config scope("use_it", 1), other("use_that", 2);
        return Noting::call(y);
    }();
    z.backward();
    CHECK(noted() == Seen{1, 0, 7});
    CHECK(config().named.empty());
    {  // calls made without the setting see its value at the time of the backward pass
        const using_named_config scope("use_it", 5);
        z.backward();
        CHECK(noted() == Seen{1, 0, 5});
        CHECK(Noting::asked() == 5);
        CHECK(config().named.size() == 1);
        y.backward(true);
        CHECK(noted() == Seen{0, 5});
    }
    // A recorded gradient keeps the settings of the call whose gradient it is.
    x.cleargrad();
    y.set_grad(Variable(floats({1})));
    y.backward(false, true);
    CHECK(noted() == Seen{0, 7});
    const Variable g = x.grad_variable();
    x.cleargrad();
    g.backward();
    CHECK(noted() == Seen{7, 0});

    Noting::fail = true;
    CHECK_THROWS_AS(z.backward(), ValueError);
    Noting::fail = false;
    CHECK(noted() == Seen{1});
    CHECK(config().named.empty());
    std::thread([&] { z.backward(); }).join();
    CHECK(noted() == Seen{1, 0, 7});
}

TEST_CASE("kernels see the configuration of the call") {
    const Variable x(toys::floats({3}));
    const PluginFunction gate("toy.gate");
    (void)gate.first({&x});
    CHECK(seen("toy.gate").flags == CATENA_CALL_TRAIN);
    Variable tested;
    {
        const using_config test(&Config::train, false);
        const using_config exact(&Config::deterministic, true);
        tested = gate.first({&x});
        CHECK(seen("toy.gate").flags == CATENA_CALL_DETERMINISTIC);
        const catena_host& host = host_table();
        CHECK(host.config(nullptr, "train", 7) == 0);
        CHECK(host.config(nullptr, "deterministic", 7) == 1);
        CHECK(host.config(nullptr, "enable_backprop", 7) == 1);
        CHECK(host.config(nullptr, "unheard_of", 7) == 7);
    }
    tested.backward();  // trains if the call was made in training mode
    CHECK((seen("toy.gate").flags & CATENA_CALL_TRAIN) == 0);
    const Variable trained = gate.first({&x});
    const using_config test(&Config::train, false);
    const using_config exact(&Config::deterministic, true);
    trained.backward();
    CHECK(seen("toy.gate").flags == (CATENA_CALL_TRAIN | CATENA_CALL_DETERMINISTIC));
}

TEST_CASE("kernels see which precision products may have, gradients that of their call") {
    const Variable x(toys::floats({3}));
    const PluginFunction gate("toy.gate");
    const auto allowed = [] {
        return seen("toy.gate").flags & (CATENA_CALL_BFLOAT16 | CATENA_CALL_FLOAT16);
    };
    const auto call = [&](Products products) {
        const using_config scope(&Config::products, products);
        return gate.first({&x});
    };
    const Variable plain = call(Products::float32);
    CHECK(allowed() == 0);
    const Variable half = call(Products::float16);
    CHECK(allowed() == CATENA_CALL_FLOAT16);
    const Variable rounded = call(Products::bfloat16);
    CHECK(allowed() == CATENA_CALL_BFLOAT16);
    {
        const using_config scope(&Config::products, Products::bfloat16);
        std::thread([&] { (void)gate.first({&x}); }).join();
        CHECK(allowed() == 0);
        plain.backward();
        CHECK(allowed() == 0);
    }
    CHECK(config().products == Products::float32);
    rounded.backward();
    CHECK(allowed() == CATENA_CALL_BFLOAT16);
    half.backward();
    CHECK(allowed() == CATENA_CALL_FLOAT16);
}

TEST_CASE("devices: by name, by scope") {
    CHECK(Device::list() ==
          std::vector<std::string>{"vault:0", "vault:1", "toy:0", "toy:1", "toy:2"});
    CHECK(Device::current().name() == "toy:0");  // the first device with host memory
    CHECK(Device::get("toy") == Device::get("toy:0"));
    CHECK(Device::get("vault:1").backend() == "vault");
    CHECK(Device::get("vault:1").ordinal() == 1);
    CHECK_FALSE(Device::get("vault:1").host_accessible());
    CHECK(Device::get("toy").host_accessible());
    Device::get("vault").synchronize();
    {
        const using_device scope("vault:1");
        CHECK(Array::zeros({1}).device().name() == "vault:1");
        {
            const using_device inner(Device::get("toy:1"));
            CHECK(Array::zeros({1}).device().name() == "toy:1");
        }
        CHECK(Device::current().name() == "vault:1");
        std::string other;
        std::thread([&] { other = Device::current().name(); }).join();
        CHECK(other == "toy:0");
    }
    CHECK(Device::current().name() == "toy:0");
    CHECK_FALSE(Device());
}

TEST_CASE("wrong device names") {
    CHECK_THROWS_WITH_AS(Device::get("toy:3"), "[device] toy: expected an ordinal below 3, got 3",
                         DeviceError);
    for (const char* name : {"toy:", "toy:x", "toy:-1", "toy:1x", "toy:99999999999"}) {
        INFO(name);
        try {
            (void)Device::get(name);
            FAIL("expected an error");
        } catch (const DeviceError& error) {
            CHECK(error.what() ==
                  std::string("[device] name: expected NAME:ORDINAL, got '") + name + "'");
        }
    }
    try {
        (void)Device::get("abacus:1");
        FAIL("expected an error");
    } catch (const DeviceError& error) {
        const std::string text = error.what();
        CHECK(text ==
              "[device] name: expected a device of vault (2 devices), toy (3 devices), got "
              "'abacus:1'\nplugins bring backends; 'catena plugins' or "
              "to_string(plugin_report()) has the details");
    }
    try {
        (void)Device::get("tooy");
        FAIL("expected an error");
    } catch (const DeviceError& error) {
        CHECK(std::string(error.what()).find("got 'tooy'; did you mean toy?\n") !=
              std::string::npos);
    }
    CHECK_THROWS_WITH_AS(Device::get("toy:2"),
                         "[toy:2] it is unplugged (the device could not be opened)", DeviceError);
    CHECK_THROWS_AS(Device::get("toy:2"), DeviceError);  // the same error when asked again
}

TEST_CASE("random streams: seeds, offsets, devices") {
    const PluginFunction noise("toy.noise");
    seed(7);
    CHECK(random_state(Device::current()).seed == 7);
    CHECK(random_state(Device::current()).offset == 0);
    const Array x = Array::zeros({9});
    const auto draw = [&] { return noise.forward({{x}})[0].item<double>(); };
    const auto draw_all = [&] { return values(noise.forward({{x}})[0])[0]; };
    CHECK(draw_all() == 7);
    CHECK(random_state(Device::current()).offset == 3);  // nine draws, four per block
    CHECK(draw_all() == 7 + 3);
    const RandomState state = random_state(Device::current());
    CHECK(draw_all() == 7 + 6);
    set_random_state(Device::current(), state);
    CHECK(draw_all() == 7 + 6);
    seed(7);
    CHECK(draw_all() == 7);
    // The seed depends on the ordinal, not on the backend; ordinal 0 has the given seed.
    CHECK(random_state(Device::get("toy:1")).seed != 7);
    CHECK(random_state(Device::get("toy:1")).seed == random_state(Device::get("vault:1")).seed);
    CHECK(random_state(Device::get("vault:0")).seed == 7);
    CHECK_THROWS_AS(draw(), ShapeError);
    // seed() for one device gives it the same seed as seed() for all devices.
    const std::uint64_t before = random_state(Device::get("toy:1")).seed;
    seed(8, Device::get("toy:1"));
    const RandomState alone = random_state(Device::get("toy:1"));
    CHECK(alone.seed != before);
    CHECK(random_state(Device::get("vault:1")).seed == before);
    seed(8);
    CHECK(random_state(Device::get("toy:1")).seed == alone.seed);
    CHECK_THROWS_AS(seed(8, Device()), InvalidError);
    CHECK_THROWS_AS(random_state(Device()), InvalidError);
    CHECK_THROWS_AS(set_random_state(Device(), {}), InvalidError);
    seed(0);
}

TEST_CASE("use_device: for good, within scopes") {
    const Device first = Device::current();
    const Device other = Device::get("vault:1");
    use_device(other);
    CHECK(Device::current() == other);
    {
        const using_device scope(first);
        use_device(Device::get("toy:1"));
        CHECK(Device::current() == Device::get("toy:1"));
        std::thread([&] { CHECK(Device::current() == first); }).join();
    }
    CHECK(Device::current() == other);
    use_device({});
    CHECK(Device::current() == first);
    const auto opened = Device::opened();
    CHECK(std::count(opened.begin(), opened.end(), other) == 1);
}

TEST_CASE("ranges of random numbers never overlap between threads") {
    seed(1);
    catena_ctx ctx;
    ctx.device = Device::current().state();
    constexpr int threads = 4;
    std::vector<std::uint64_t> starts[threads];
    std::vector<std::thread> pool;
    for (auto& list : starts) {
        pool.emplace_back([&] {
            catena_ctx mine;
            mine.device = ctx.device;
            for (int i = 0; i < 1000; ++i) {
                std::uint64_t key = 0, offset = 0;
                host_table().philox(&mine, 5, &key, &offset);
                list.push_back(offset);
            }
        });
    }
    for (auto& thread : pool) thread.join();
    std::vector<std::uint64_t> all;
    for (auto& list : starts) all.insert(all.end(), list.begin(), list.end());
    std::sort(all.begin(), all.end());
    bool apart = true;
    for (std::size_t i = 0; i < all.size(); ++i) apart = apart && all[i] == 5 * i;
    CHECK(apart);
    std::uint64_t key = 0, offset = 0;
    catena_ctx nowhere;
    CHECK(host_table().philox(&nowhere, 1, &key, &offset) == CATENA_E_INVALID);
    seed(0);
}

TEST_CASE("parallel_for reaches the device's threads") {
    CHECK(Device::get("vault").threads() == 1);
    const Device device = Device::get("toy");
    CHECK(device.threads() == 2);
    device.set_threads(3);
    CHECK(device.threads() == 3);
    struct Seen {
        std::vector<int> covered = std::vector<int>(100);
        int pieces = 0;
        int most_slot = 0;
        bool aligned = true;
    };
    const auto run = [](catena_ctx* ctx, std::int64_t n, std::int64_t grain) {
        Seen s;
        host_table().parallel_for(
            ctx, n, grain,
            [](void* user, std::int64_t begin, std::int64_t end, std::int32_t slot) {
                auto& mine = *static_cast<Seen*>(user);
                ++mine.pieces;
                mine.most_slot = std::max(mine.most_slot, slot);
                for (std::int64_t i = begin; i < end; ++i)
                    ++mine.covered[static_cast<std::size_t>(i)];
            },
            &s);
        return s;
    };
    catena_ctx ctx;
    ctx.device = device.state();
    CHECK(host_table().slots(&ctx) == 3);
    const Seen split = run(&ctx, 100, 16);
    CHECK(split.pieces == 7);
    CHECK(split.most_slot == 2);
    CHECK(split.covered == std::vector<int>(100, 1));
    CHECK(run(&ctx, 10, 16).pieces == 1);
    CHECK(run(&ctx, 0, 16).pieces == 0);
    CHECK(run(&ctx, 3, 0).pieces == 3);
    ctx.device = Device::get("vault").state();  // a device without a thread pool: one piece
    CHECK(host_table().slots(&ctx) == 1);
    CHECK(run(&ctx, 100, 16).pieces == 1);
    CHECK(run(nullptr, 100, 16).covered == std::vector<int>(100, 1));
    device.set_threads(0);
    CHECK(device.threads() == 2);
}

TEST_CASE("parameters and constants follow what they meet, volatile or not") {
    const PluginFunction mul("toy.mul");
    const Parameter w(toys::floats({2}));
    const Variable c = as_variable(toys::floats({3}));
    const Variable x(toys::floats({4}), /*is_volatile=*/true);
    const Variable y = mul.first({&x, &w});
    CHECK(y.is_volatile());
    CHECK_FALSE(y.creator());
    CHECK(mul.first({&c, &y}).is_volatile());
    const Variable leaf(toys::floats({5}));
    CHECK_THROWS_AS((void)mul.first({&x, &leaf}), GraphError);
    const Variable z = mul.first({&leaf, &w});
    z.backward();
    CHECK(w.grad().item<float>() == 5);
    CHECK_THROWS_AS((void)mul.first({&z, &x}), GraphError);
}
