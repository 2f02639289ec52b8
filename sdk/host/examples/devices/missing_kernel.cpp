// Falls back to the CPU for a missing kernel. Usage: missing_kernel PLUGIN (with device "island")
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;
namespace F = catena::functions;

namespace {

// [catch]
Variable softmax(const Variable& x) {
    try {
        return F::softmax(x);
    } catch (const UnsupportedError&) {  // the device of x has no kernel for it
        const using_fallback here("cpu:0");
        return F::softmax(x);
    }
}
// [/catch]

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 2) return 2;
    load_plugin(argv[1]);
    const Device device = Device::get("island:0");
    const Variable x(Array::from<float>({1, 1}, {1, 2}).to(device));
    const Variable y = softmax(x);
    std::printf("%s\n", to_string(y.data()).c_str());
    return y.device() == device && y.data().to_vector<float>()[0] == 0.5f ? 0 : 1;
} catch (const Error& e) {
    std::fprintf(stderr, "missing_kernel: %s\n", e.what());
    return 1;
}
