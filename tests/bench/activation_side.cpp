// Sigmoid and swish of a third-party plugin, and the built-in sigmoid, called in the same way.
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

std::vector<Work> works(const char* same, const char* other, int threads) {
    Device::current().set_threads(threads);
    return {forward("sigmoid 1M", same, 1 << 20), both_ways("sigmoid 1M, both ways", same, 1 << 20),
            forward("swish 1M", other, 1 << 20), both_ways("swish 1M, both ways", other, 1 << 20),
            forward("swish 16M", other, 1 << 24)};
}

}  // namespace

std::vector<Work> third_party_works(int threads) {
    load_plugin(CATENA_BENCH_THIRD_PARTY);
    return works("org.example.sigmoid", "org.example.fixed_swish", threads);
}
std::vector<Work> built_in_works(int threads) {
    return works("catena.sigmoid", "catena.sigmoid", threads);
}

}  // namespace catena_bench
