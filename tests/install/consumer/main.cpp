// Calls third-party plugins through an installed catena: w = x * y + z and its gradients, by name
// and by a wrapper generated when this program is built.
#include <catena/core/plugin_function.hpp>
#include <catena/loader/plugins.hpp>

#include <beside/functions.hpp>
#include <exception>
#include <iostream>
#include <string>
#include <third/functions.hpp>

namespace {

bool check(const std::string& name) {
    const catena::Variable x(catena::Array::from<float>({1, 2}, {2}));
    const catena::Variable y(catena::Array::from<float>({3, 4}, {2}));
    const catena::Variable z(catena::Array::from<float>({5, 6}, {2}));
    const catena::Variable w = catena::PluginFunction(name).first({&x, &y, &z});
    w.set_grad(catena::Array::ones({2}));
    w.backward();
    const auto values = w.data().to_vector<float>();
    const auto gx = x.grad().to_vector<float>();
    std::cout << name << ": " << values[0] << ' ' << values[1] << ", gx " << gx[0] << ' ' << gx[1]
              << '\n';
    return values[0] == 8 && values[1] == 14 && gx[0] == 3 && gx[1] == 4;
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 2) return 2;
    catena::load_default_plugins();
    catena::load_plugins(argv[1]);
    std::cout << catena::to_string(catena::plugin_report()) << '\n';
    const bool cpp = check("org.example.mul_add");
    const bool c = check("org.example.c.mul_add");
    const auto two = catena::Array::from<float>({2}, {1});
    const bool typed = beside::relu(third::mul_add(two, two, two)).item<float>() == 6;
    return cpp && c && typed ? 0 : 1;
} catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
