// my_name: loads plugins, calls their functions, and trains a net with each that fits into one.
#include "training.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace catena;

namespace {

constexpr const char* usage =
    "usage: my_name [--plugin FILE]... [--steps N]\n"
    "  --plugin FILE  load this plugin too, call its functions, and train with them\n"
    "  --steps N      of training; default: 200\n";

struct Options {
    std::vector<std::string> plugins;
    int steps = 200;
    bool help = false;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view name = argv[i];
        if (name == "--help" || name == "-h") {
            options.help = true;
            return options;
        }
        if (name != "--plugin" && name != "--steps")
            throw std::invalid_argument("expected --plugin or --steps, got " + std::string(name));
        if (++i == argc) throw std::invalid_argument(std::string(name) + ": expected a value");
        const std::string_view value = argv[i];
        if (name == "--plugin") {
            options.plugins.emplace_back(value);
            continue;
        }
        const char* end = value.data() + value.size();
        const auto [stop, error] = std::from_chars(value.data(), end, options.steps);
        if (error != std::errc() || stop != end || options.steps < 1)
            throw std::invalid_argument("--steps: expected a number from 1, got " +
                                        std::string(value));
    }
    return options;
}

// The functions that come with a file.
std::vector<std::string> load(const std::string& file) {
    const std::vector<std::string> before = function_names();
    load_plugin(file);
    std::vector<std::string> added;
    for (const std::string& name : function_names())
        if (std::find(before.begin(), before.end(), name) == before.end()) added.push_back(name);
    return added;
}

// On random numbers of shape (2, 3); not every function takes them.
void call(const std::string& name) {
    const catena_function& f = function_descriptor(name);
    std::printf("%s: %s\n", name.c_str(), f.doc);
    try {
        const PluginFunction function(name);
        const initializers::Uniform draw(1);
        std::vector<Array> inputs;
        for (std::uint32_t i = 0; i < f.n_inputs; ++i) inputs.push_back(draw({2, 3}));
        const std::vector<Array> outputs = function.forward(inputs);
        for (std::uint32_t i = 0; i < f.n_outputs; ++i)
            std::printf("  %s = %s\n", f.outputs[i]->name, to_string(outputs[i]).c_str());
    } catch (const Error& error) {
        std::printf("  not of such arrays: %s\n", error.what());
    }
}

bool fits(const std::string& name) {
    const catena_function& f = function_descriptor(name);
    return f.n_inputs == 1 && f.n_outputs == 1;
}

}  // namespace

int main(int argc, char** argv) try {
    const Options options = parse(argc, argv);
    if (options.help) {
        std::fputs(usage, stdout);
        return 0;
    }
    load_default_plugins();
    std::vector<std::string> activations = {"catena.tanh"};
    for (const std::string& file : options.plugins) {
        for (const std::string& name : load(file)) {
            call(name);
            if (fits(name)) activations.push_back(name);
        }
    }
    for (const std::string& name : activations) {
        seed(1);
        Net net(name);
        const auto [first, last] = train(net, options.steps);
        std::printf("trained with %s: loss %.4f -> %.6f\n", name.c_str(), first, last);
    }
    return 0;
} catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "my_name: %s\n%s", error.what(), usage);
    return 2;
} catch (const std::exception& error) {
    std::fprintf(stderr, "my_name: %s\n", error.what());
    return 1;
}
