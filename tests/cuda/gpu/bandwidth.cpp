// gpu-bandwidth: compares elementwise functions with the device's own copy, in bytes per second.
//
// usage: gpu-bandwidth [--device NAME] [--elements N] [--floor RATIO]
//   --floor RATIO  fail below this fraction of the copy's bandwidth; default 0.85. Rows without a verdict
//                  are only reported: not elementwise, or limited by arithmetic rather than memory
#include "arguments.hpp"

#include <catena/catena.hpp>
#include <catena/core/plugin_function.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

using namespace catena;
namespace F = catena::functions;

namespace {

// Returns the shortest time of a call by the device's clock, in seconds.
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
    double bytes;  // read and written
    std::function<void()> call;
    bool held = true;  // whether the floor applies; else only reported
};

double bytes_of(std::initializer_list<const Array*> arrays) {
    double sum = 0;
    for (const Array* array : arrays) sum += static_cast<double>(array->nbytes());
    return sum;
}

// Functions that read and write each element once, in float32 and in halves.
std::vector<Work> elementwise_works(const Shape& shape) {
    const Array x = Array::full(shape, 0.5), y = Array::full(shape, 1.5), gy = Array::ones(shape);
    const double n = bytes_of({&x});
    const auto both_ways = [=] {
        const Variable v(x);
        const Variable z = F::sigmoid(v);
        z.set_grad(gy);
        z.backward();
    };
    const auto muladd = elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd");
    const auto square = elementwise("T x", "T y", "y = x * x", "square");
    std::vector<Work> works = {
        {"add", 3 * n, [=] { F::add(x, y); }},
        {"mul", 3 * n, [=] { F::mul(x, y); }},
        {"exp", 2 * n, [=] { F::exp(x); }},
        {"relu", 2 * n, [=] { F::relu(x); }},
        {"sigmoid", 2 * n, [=] { F::sigmoid(x); }},
        {"tanh", 2 * n, [=] { F::tanh(x); }},
        {"sigmoid, both ways", 5 * n, both_ways},  // y = f(x), then gx = g(y, gy)
        {"muladd, a formula", 4 * n, [=] { muladd(x, y, gy); }},
        {"square, a formula", 2 * n, [=] { square(x); }},
    };
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16}) {
        const Array a = x.astype(dtype), b = y.astype(dtype);
        const double half = bytes_of({&a});
        const std::string name(catena::name(dtype));
        works.push_back({"add " + name, 3 * half, [=] { F::add(a, b); }});
        works.push_back({"muladd " + name, 4 * half, [=] { muladd(a, b, a); }});
        // The same arithmetic for half the bytes.
        works.push_back({"sigmoid " + name, 2 * half, [=] { F::sigmoid(a); }, false});
    }
    return works;
}

// Reads and writes the parameter and both moments, and reads the gradient.
Work adam_work(const Shape& shape) {
    const std::vector<Array> x = {Array::full(shape, 0.5), Array::ones(shape), Array::zeros(shape),
                                  Array::zeros(shape)};
    const PluginFunction update("catena.adam_update", {{"t", std::int64_t{1}}, {"alpha", 0.001}});
    return {"Adam's update", bytes_of({&x[0], &x[0], &x[1], &x[2], &x[2], &x[3], &x[3]}),
            [=] { update.forward(x); }};
}

std::vector<Work> works_of_matrix(std::int64_t rows, std::int64_t columns) {
    const Array x = Array::full({rows, columns}, 0.5), row = Array::ones({columns}),
                column = Array::ones({rows, 1}), one = Array::ones({});
    return {{"add of a row", bytes_of({&x, &row, &x}), [=] { F::add(x, row); }},
            {"add of a column", bytes_of({&x, &column, &x}), [=] { F::add(x, column); }},
            {"sum", bytes_of({&x, &one}), [=] { F::sum(x); }, false}};  // not elementwise
}

int run(const Arguments& arguments) {
    const Device device = Device::get(arguments.text("device"));
    const using_device scope(device);
    const auto n = arguments.number<std::int64_t>("elements");
    if (n < 1) throw InvalidError("--elements: expected at least 1, got " + std::to_string(n));
    const std::int64_t columns = std::clamp<std::int64_t>(n, 1, 1000);
    const auto floor = arguments.number<double>("floor");
    double copy = 0;
    {
        const Array x = Array::full({n}, 0.5);
        copy = 2 * bytes_of({&x}) / time_of(device, [&] { x.copy(); });
    }
    fmt::print(
        "| work               |   GB/s | of a copy's |  ok |\n"
        "|--------------------|-------:|------------:|----:|\n"
        "| copy               | {:6.0f} |        1.00 |     |\n",
        copy / 1e9);
    bool good = true;
    double worst = 1e30;
    const auto measure = [&](const Work& work) {
        const double rate = work.bytes / time_of(device, work.call);
        const bool ok = std::isfinite(rate) && rate >= floor * copy;
        if (work.held) {
            good = good && ok;
            worst = std::min(worst, rate / copy);
        }
        fmt::print("| {:<18} | {:6.0f} | {:11.2f} | {:>3} |\n", work.name, rate / 1e9, rate / copy,
                   !work.held ? ""
                   : ok       ? "yes"
                              : "NO");
    };
    for (const Work& work : elementwise_works({n})) measure(work);
    measure(adam_work({n}));
    for (const Work& work : works_of_matrix(n / columns, columns)) measure(work);
    fmt::print("measured: copy {:.0f} GB/s, the slowest function {:.2f} of it\n", copy / 1e9,
               worst);
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
