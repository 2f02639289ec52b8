// Work that fails after its call has returned.
#include "river.hpp"

using namespace river;

TEST_CASE("a fault comes up at a later call, with the calls that may have caused it") {
    const Device d = device(1);
    const Variable x(full(1, 10, d));
    const Variable y = F::relu(x) * x;
    y.set_grad(full(1, 10, d));
    y.backward();
    d.synchronize();
    const auto fault = [&](const std::function<void()>& later) {
        y.backward();
        F::relu(x.data());
        d.synchronize();
        control(d).fail(backend_device(d), 2);
        const Array a = x.data() * x.data(), b = a + a;
        const std::string text = what<DeviceError>(later);
        control(d).fail(backend_device(d), 0);
        d.synchronize();
        return text;
    };
    const std::string calls =
        "\nthe last calls on river:1, newest first: [catena.add forward], [catena.mul forward], "
        "[catena.relu forward], [catena.add forward], [catena.relu backward], ";
    SUBCASE("a wait for the device") {
        const std::string text = fault([&] { d.synchronize(); });
        INFO(text);
        CHECK(has(text, "[river] an access out of bounds, in work that was queued" + calls));
    }
    SUBCASE("reading") {
        CHECK(has(fault([&] { values(x.data()); }), calls));
    }
    SUBCASE("a stream") {
        CHECK(has(fault([&] { Stream::current(d).synchronize(); }), calls));
    }
    SUBCASE("a copy") {
        CHECK(has(fault([&] {
                      Stream::current(d).synchronize();
                      x.data().copy();
                  }),
                  calls));
    }
    SUBCASE("a call, which is among them itself") {
        const std::string text = fault([&] {
            CHECK_THROWS_AS(d.synchronize(), DeviceError);
            F::relu(x.data());
        });
        INFO(text);
        CHECK(has(text, "newest first: [catena.relu forward], [catena.add forward], "));
    }
    SUBCASE("memory is let go all the same") {
        const std::int64_t in_use = d.memory().in_use;
        fault([&] {
            const Stream side(d);
            const using_stream scope(side);
            full(1, 10, d);
        });
        CHECK(d.memory().in_use <= in_use);
    }
    CHECK(values(x.data()) == same(1, 10));
}

TEST_CASE("a device that is not there has no such list") {
    device();
    const std::string text =
        what<DeviceError>([&] { full(1, 3, cpu()).to(Device::get("river:7")); });
    CHECK(has(text, "[device] river: expected an ordinal below 3, got 7"));
    CHECK_FALSE(has(text, "the last calls"));
}
