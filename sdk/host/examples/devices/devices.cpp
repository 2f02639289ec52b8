// Devices: sets the device of new arrays, moves nets and arrays, and sets a fallback device.
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;
namespace F = catena::functions;

int main() try {
    const Variable x(Array::from<float>({1, 2, 3, 4}, {2, 2}));
    links::Linear layer(2, 3);
    // [place]
    const Device second = Device::get("cpu:1");  // Device::list() returns all devices
    const using_device scope(second);            // new arrays of this thread are made there
    layer.to(second);                            // moves parameters; an optimizer follows
    const Array moved = x.data().to(second);     // without a graph
    const Variable there = F::copy(x, second);   // in the graph: the gradient is copied back
    // [/place]
    F::sum(layer(there)).backward();
    const bool back = x.grad().device() == x.device() && moved.device() == second;

    // [fallback]
    const using_fallback fallback("cpu:0");
    // [/fallback]
    const bool same = Array::zeros({2}).device() == second && F::exp(there).device() == second;
    std::printf("%s\n", to_string(x.grad()).c_str());
    return back && same ? 0 : 1;
} catch (const Error& e) {
    std::fprintf(stderr, "devices: %s\n", e.what());
    return 1;
}
