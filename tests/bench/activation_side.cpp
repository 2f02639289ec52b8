// Sigmoid and swish of a third-party plugin, and the built-in sigmoid, called in the same way; a
// composition of six calls, and the same calls in C++.
#include "work.hpp"

#include <catena/catena.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/loader/plugins.hpp>

namespace catena_bench {
namespace {

using namespace catena;  // NOLINT: one side, one vocabulary

Array normal(std::int64_t n) { return initializers::Normal(1)({n}); }

Work forward(std::string name, const char* function, std::int64_t n) {
    return {std::move(name), 1, [=] {
                return
                    [f = PluginFunction(function), x = as_variable(normal(n))] { f.first({&x}); };
            }};
}
Work both_ways(std::string name, const char* function, std::int64_t n) {
    return {std::move(name), 1, [=] {
                return [f = PluginFunction(function), x = Variable(normal(n)), gy = normal(n)] {
                    x.cleargrad();
                    Variable y = f.first({&x});
                    y.set_grad(gy);
                    std::move(y).backward();
                };
            }};
}

template <class F>
void add_six_calls(std::vector<Work>& works, const F& f) {
    works.push_back(
        {"6 calls on 1 element", 1, [=] { return [f, x = as_variable(normal(1))] { f(x); }; }});
    works.push_back({"6 calls on 1 element, both ways", 1, [=] {
                         return [f, x = Variable(normal(1))] {
                             x.cleargrad();
                             f(x).backward();
                         };
                     }});
}

std::vector<Work> works(const char* same, const char* other, int threads) {
    Device::current().set_threads(threads);
    return {forward("sigmoid 1M", same, 1 << 20), both_ways("sigmoid 1M, both ways", same, 1 << 20),
            forward("swish 1M", other, 1 << 20), both_ways("swish 1M, both ways", other, 1 << 20),
            forward("swish 16M", other, 1 << 24)};
}

}  // namespace

std::vector<Work> third_party_works(int threads) {
    load_plugin(CATENA_BENCH_THIRD_PARTY);
    auto all = works("org.example.sigmoid", "org.example.fixed_swish", threads);
    add_six_calls(all, [f = PluginFunction("org.example.six_calls")](const Variable& x) {
        return f.first({&x});
    });
    return all;
}
std::vector<Work> built_in_works(int threads) {
    auto all = works("catena.sigmoid", "catena.sigmoid", threads);
    add_six_calls(all, [](const Variable& x) {
        return functions::tanh(functions::exp(functions::sin(x)) * functions::cos(x) + x);
    });
    return all;
}

}  // namespace catena_bench
