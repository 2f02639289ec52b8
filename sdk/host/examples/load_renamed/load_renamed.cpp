// Loads a net from a file of another framework: with other names, another dtype, and extra arrays.
#include <catena/catena.hpp>

#include <cstdio>
#include <filesystem>

using namespace catena;

struct Net : Chain {
    links::Linear l{3, 2};
    void visit(Visitor& v) override { v("l", l); }
    Variable operator()(const Variable& x) const override { return l(x); }
};

int main() {
    save_arrays("net.safetensors", {{"fc.weight", Array::ones({2, 3}, Dtype::bfloat16)},
                                    {"fc.bias", Array::full({2}, 0.5, Dtype::bfloat16)},
                                    {"steps", Array::full({}, 100, Dtype::int64)}});
    Net net;
    // [load]
    const LoadReport report =
        load_safetensors("net.safetensors", net,
                         {.rename = renaming({{"fc.weight", "l/W"}, {"fc.bias", "l/b"}}),
                          .strict = false,
                          .convert = true});
    for (const std::string& name : report.unexpected) std::printf("left out: %s\n", name.c_str());
    // [/load]
    std::filesystem::remove("net.safetensors");
    const Variable y = net(as_variable(Array::ones({1, 3})));
    return y.data().to_vector<float>() == std::vector<float>{3.5F, 3.5F} ? 0 : 1;
}
