// my_name: loads plugins, calls their functions, and trains a net with each suitable function.
#include "training.hpp"

#include <catena/core/tables.hpp>

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

std::vector<std::string> functions_of(const std::string& file) {
    const std::string id = read_manifest(file).id;
    std::vector<std::string> names;
    for (const PluginTable& plugin : plugin_tables()) {
        if (plugin.id != id) continue;
        for (std::uint32_t i = 0; i < plugin.table->n_functions; ++i)
            names.emplace_back(plugin.table->functions[i]->name);
    }
    return names;
}

// Calls a function with random arrays of shape (2, 3), which not every function accepts.
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

// Returns why a function cannot be used between the two layers of the net; "" if it can.
std::string misfit(const std::string& name) {
    const catena_function& f = function_descriptor(name);
    if (f.n_inputs != 1 || f.n_outputs != 1) return "it is not of one array, with one result";
    if (f.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) return "it has no gradient";
    try {
        const Array x = initializers::Uniform(1)({1, 32});
        const Array y = PluginFunction(name).forward(std::vector{x})[0];
        if (y.shape() == x.shape() && y.dtype() == x.dtype()) return "";
        return "it makes " + to_string(y.shape()) + " of " + to_string(x.shape());
    } catch (const Error& error) {
        return error.what();
    }
}

void run(const Options& options) {
    // Loads these before the default plugins: of plugins with equal ids, catena uses the first.
    for (const std::string& file : options.plugins) load_plugin(file);
    load_default_plugins();
    std::vector<std::string> activations = {"catena.tanh"};
    for (const std::string& file : options.plugins) {
        for (const std::string& name : functions_of(file)) {
            call(name);
            const std::string reason = misfit(name);
            if (reason.empty()) activations.push_back(name);
            else std::printf("not trained with %s: %s\n", name.c_str(), reason.c_str());
        }
    }
    for (const std::string& name : activations) {
        seed(1);
        Net net(name);
        const auto [first, last] = train(net, options.steps);
        std::printf("trained with %s: loss %.4f -> %.6f\n", name.c_str(), first, last);
    }
}

}  // namespace

int main(int argc, char** argv) try {
    const Options options = parse(argc, argv);
    if (options.help) std::fputs(usage, stdout);
    else run(options);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)  // fails if the disk is full
        throw std::runtime_error("expected all output to be written, got an error");
    return 0;
} catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "my_name: %s\n%s", error.what(), usage);
    return 2;
} catch (const std::exception& error) {
    std::fprintf(stderr, "my_name: %s\n", error.what());
    return 1;
}
