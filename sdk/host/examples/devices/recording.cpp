// Streams, a recording of many small calls, and memory, on any device. Usage: recording [DEVICE]
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;
namespace F = catena::functions;

namespace {

struct Mlp : Chain {
    links::Linear l1{784, 100}, l2{100, 10};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
    Variable operator()(const Variable& x) const override { return l2(F::relu(l1(x))); }
};

bool same(const Array& a, const Array& b) { return a.to_vector<float>() == b.to_vector<float>(); }

}  // namespace

int main(int argc, char** argv) try {
    const Device device = Device::get(argc > 1 ? argv[1] : "cpu:0");
    const no_backprop_mode prediction;
    Mlp net;
    net.to(device);
    const Array x = Array::full({1, 784}, 0.5, Dtype::float32, device);

    // [streams]
    const Stream side(device);  // in addition to the main stream
    const Event begin(device), end(device);
    begin.record(side);
    Array beside;
    {
        const using_stream scope(side);  // for calls of this thread on this device
        beside = net(as_variable(x)).data();
    }
    end.record(side);
    const Array sum = F::sum(beside);  // on the main stream: waits automatically
    std::printf("sum %.3f after %.3f ms\n", sum.item(), end.elapsed_since(begin));
    // [/streams]

    // [capture]
    Array y;
    const auto step = [&] { y = net(as_variable(x)).data(); };
    Capture recorded;
    try {
        recorded = Capture(side, step, /*warm_ups=*/2, "prediction");
    } catch (const UnsupportedError& error) {  // the device or a call in the step cannot record
        std::printf("call by call: %s\n", error.what());
    }
    for (int i = 0; i < 3; ++i) {
        x.copy_from(Array::full({1, 784}, i, Dtype::float32, device));  // in place
        if (recorded) recorded.launch();
        else step();
        if (!same(y, net(as_variable(x)).data())) return 1;
    }
    // [/capture]

    // [memory]
    device.reset_peak_memory();  // resets the peak to the memory in use
    step();
    const MemoryStats memory = device.memory();
    std::printf("%lld bytes in use, %lld at most, %lld kept for more\n",
                static_cast<long long>(memory.in_use), static_cast<long long>(memory.peak),
                static_cast<long long>(memory.cached));
    const MemorySize size = device.memory_size();  // of the whole device, for all processes
    std::printf("%lld of %lld bytes are free\n", static_cast<long long>(size.free),
                static_cast<long long>(size.total));
    device.release_cached();
    // [/memory]
    if (recorded) std::printf("%s ran a recording\n", device.name().c_str());
    else if (!device.host_accessible()) return 1;  // only the CPU cannot record
    return memory.peak >= memory.in_use && device.memory().cached <= memory.cached ? 0 : 1;
} catch (const Error& e) {
    std::fprintf(stderr, "recording: %s\n", e.what());
    return 1;
}
