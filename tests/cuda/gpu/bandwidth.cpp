// gpu-bandwidth: elementwise functions against the device's own copy, in bytes moved per second.
//
// usage: gpu-bandwidth [--device NAME] [--elements N] [--floor RATIO]
//   --floor RATIO  fail below this part of the copy's bandwidth; default 0.85
#include "arguments.hpp"

#include <catena/catena.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

using namespace catena;
namespace F = catena::functions;

namespace {

// The least time of a call by the device's clock, in seconds.
double time_of(const Device& device, const std::function<void()>& call) {
    const Stream stream = Stream::current(device);
    Event begin(device), end(device);
    double best = 1e30;
    for (int round = 0; round < 12; ++round) {  // the first ones fill the memory pool
        begin.record(stream);
        call();
        end.record(stream);
        end.synchronize();
        best = std::min(best, end.elapsed_since(begin) / 1e3);
    }
    return best;
}

struct Work {
    std::string name;
    int arrays;  // read or written
    std::function<void()> call;
};

int run(const Arguments& arguments) {
    const Device device = Device::get(arguments.text("device"));
    const using_device scope(device);
    const Shape shape{arguments.number<std::int64_t>("elements")};
    const auto floor = arguments.number<double>("floor");
    const Array x = Array::full(shape, 0.5), y = Array::full(shape, 1.5), gy = Array::ones(shape);
    const double megabytes = static_cast<double>(x.nbytes()) / 1e6;
    const auto forward_backward = [&](auto&& f) {
        Variable v(x);
        Variable z = f(v);
        z.set_grad(gy);
        z.backward();
    };
    const std::vector<Work> works = {
        {"add", 3, [&] { F::add(x, y); }},
        {"mul", 3, [&] { F::mul(x, y); }},
        {"exp", 2, [&] { F::exp(x); }},
        {"relu", 2, [&] { F::relu(x); }},
        {"sigmoid", 2, [&] { F::sigmoid(x); }},
        {"tanh", 2, [&] { F::tanh(x); }},
        {"sigmoid, both ways", 5,
         [&] { forward_backward([](const Variable& v) { return F::sigmoid(v); }); }},
        {"sum", 1, [&] { F::sum(x); }},
    };
    const double copy = 2 * megabytes / 1e3 / time_of(device, [&] { x.copy(); });
    fmt::print(
        "| work               |   GB/s | of a copy's |  ok |\n"
        "|--------------------|-------:|------------:|----:|\n"
        "| copy               | {:6.0f} |        1.00 |     |\n",
        copy);
    bool good = true;
    double worst = 1e30;
    for (const Work& work : works) {
        const double rate = work.arrays * megabytes / 1e3 / time_of(device, work.call);
        const bool ok = rate >= floor * copy;
        good = good && ok;
        worst = std::min(worst, rate / copy);
        fmt::print("| {:<18} | {:6.0f} | {:11.2f} | {:>3} |\n", work.name, rate, rate / copy,
                   ok ? "yes" : "NO");
    }
    fmt::print("measured: copy {:.0f} GB/s, the slowest function {:.2f} of it\n", copy, worst);
    return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
    return run(Arguments(argc, argv,
                         {{"device", "cuda:0"}, {"elements", "100000000"}, {"floor", "0.85"}}));
} catch (const std::exception& error) {
    fmt::print(stderr, "gpu-bandwidth: {}\n", error.what());
    return 2;
}
