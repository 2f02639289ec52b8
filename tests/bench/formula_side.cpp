// Formulas compiled at run time, and the same work as a sequence of functions and by a plugin built
// for it.
#include "work.hpp"

#include <catena/catena.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/loader/plugins.hpp>

namespace catena_bench {
namespace {

using namespace catena;  // NOLINT: one side, one vocabulary
namespace F = catena::functions;

constexpr std::int64_t million = 1 << 20;
constexpr std::int64_t side = 1 << 10;

struct Inputs {
    explicit Inputs(std::int64_t n) : x(draw({n})), y(draw({n})), z(draw({n})), row(draw({side})) {}
    static Array draw(const Shape& shape) { return initializers::Normal(1)(shape); }
    Array square() const { return x.reshape({side, side}); }
    Array x, y, z, row;
};

// f is called with the inputs.
template <class F>
Work on_arrays(std::string name, std::int64_t n, int calls, F f) {
    return {std::move(name), static_cast<double>(calls), [=] {
                return [f, in = Inputs(n), calls] {
                    for (int i = 0; i < calls; ++i) f(in);
                };
            }};
}

template <class Muladd, class Rows, class Norm, class RowNorm>
std::vector<Work> all(Muladd muladd, Rows rows, Norm norm, RowNorm row_norm) {
    return {on_arrays("muladd of 1", 1, 1000, muladd),
            on_arrays("muladd 1M", million, 1, muladd),
            on_arrays("muladd 16M", 16 * million, 1, muladd),
            on_arrays("muladd 1M, by rows", million, 1, rows),
            on_arrays("norm 1M", million, 1, norm),
            on_arrays("norm 1M, by rows", million, 1, row_norm)};
}

}  // namespace

std::vector<Work> formula_works(int threads) {
    Device::current().set_threads(threads);
    const auto muladd = elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd");
    const auto norm = reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm");
    return all([=](const Inputs& in) { return muladd(in.x, in.y, in.z); },
               [=](const Inputs& in) { return muladd(in.square(), in.row, in.row); },
               [=](const Inputs& in) { return norm(in.x); },
               [=](const Inputs& in) { return norm(in.square(), 1); });
}

std::vector<Work> composed_works(int threads) {
    Device::current().set_threads(threads);
    return all([](const Inputs& in) { return in.x * in.y + in.z; },
               [](const Inputs& in) { return in.square() * in.row + in.row; },
               [](const Inputs& in) { return F::sqrt(F::sum(in.x * in.x)); },
               [](const Inputs& in) { return F::sqrt(F::sum(in.square() * in.square(), 1)); });
}

std::vector<Work> fused_works(int threads) {
    load_plugin(CATENA_BENCH_MUL_ADD);
    Device::current().set_threads(threads);
    const auto call = [f = PluginFunction("org.example.mul_add")](const Inputs& in) {
        const Array inputs[] = {in.x, in.y, in.z};
        return f.forward(inputs);
    };
    return {on_arrays("muladd of 1", 1, 1000, call), on_arrays("muladd 1M", million, 1, call)};
}

}  // namespace catena_bench
