// Tests of work that fails after its call has returned.
#include <catena/core/memory.hpp>
#include "river.hpp"

#include <catena/abi/ext/draft/memory.h>

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
        // Without a cache, the call fails in alloc(), before it is added to the list.
        CHECK(has(text,
                  recycle ? "newest first: [catena.relu forward], [catena.add forward], " : calls));
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

TEST_CASE("what is not called by dispatch is named, too: an extension's work, a recording") {
    const Device d = device(1);
    const Array x = full(1, 10, d);
    Array y;
    F::relu(x);  // the only dispatched call in the list: recorded calls are not listed
    const Capture nameless(
        Stream(d), [&] { y = x * x + x; }, 0);
    const Capture named(
        Stream(d), [&] { y = x + x; }, 0, "step");
    const auto& memory =
        *static_cast<const catena_memory*>(backend_extension(d, CATENA_MEMORY_DRAFT_1));
    const auto fill = [&](CallName name) {
        const double one = 1;
        ExtensionCall call(d);
        catena_tensor* tensor = call.writes(x);
        call.runs(name);
        call.check(
            memory.fill(call.context(), call.dev(), call.stream(), tensor->dl.data, &one, 8, 10),
            name.text());
    };
    fill(CallName("fill_first"));
    d.synchronize();
    control(d).fail(backend_device(d), 4);
    fill(CallName(std::string("muladd") + "_fwd"));  // the name's text is copied
    nameless.launch();
    named.launch();
    const std::string text = what<DeviceError>([&] { d.synchronize(); });
    control(d).fail(backend_device(d), 0);
    d.synchronize();
    INFO(text);
    CHECK(has(text,
              "\nthe last calls on river:1, newest first: [recording step], "
              "[recording of 2 kernels, copies and fills], [muladd_fwd], [fill_first], "
              "[catena.relu forward]"));
    CHECK(values(x) == same(1, 10));
}

TEST_CASE("what fails at once is named as well") {
    const Device d = device(1);
    const std::string text = what<DeviceError>([&] {
        ExtensionCall call(d);
        call.runs(CallName("broken"));
        call.check(CATENA_E_DEVICE, "broken");
    });
    CHECK(has(text,
              "[broken] failed with status 6\nthe last calls on river:1, newest first: "
              "[broken]"));
    CHECK_NOTHROW(ExtensionCall().runs(CallName("nowhere")));
    ExtensionCall(cpu()).runs(CallName("at once"));  // the CPU keeps no list of calls
}

TEST_CASE("a device that is not there has no such list") {
    device();
    const std::string text =
        what<DeviceError>([&] { full(1, 3, cpu()).to(Device::get("river:7")); });
    CHECK(has(text, "[device] river: expected an ordinal below 3, got 7"));
    CHECK_FALSE(has(text, "the last calls"));
}
