// catena: calls functions and optimizers of the loaded plugins from a shell.
#include "commands.hpp"

#include <catena/core/error.hpp>
#include <catena/core/tables.hpp>
#include <catena/diagnostics/kernels.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/program_options.hpp>
#include <command_line.hpp>
#include <inspect.hpp>

#include <algorithm>
#include <cstdio>
#include <set>

namespace po = boost::program_options;
using namespace catena;

namespace {

constexpr const char* usage =
    "usage: catena COMMAND [NAME] [OPTION...]\n\n"
    "commands:\n"
    "  plugins            list the searched folders and the plugins that were loaded, refused or\n"
    "                     skipped, with reasons\n"
    "      --hash             also show the SHA-256 of each file\n"
    "      --json             print JSON\n"
    "  plugins lock       write catena.plugins.lock next to the user's plugins, or to the folder\n"
    "                     --plugins DIR, or to --out FILE; then only these files are loaded.\n"
    "                     Runs no code of the plugins\n"
    "  functions          list all functions with their plugins, devices and dtypes\n"
    "  describe FUNCTION  show a function: text, ports, attributes, examples, kernels\n"
    "      --input X=(2,3)    also show the shapes of the outputs for these inputs; may be\n"
    "                         repeated, and have a dtype: --input 'x=(2,3):float16'\n"
    "  call FUNCTION      call it on in_INPUT of a file; writes out_OUTPUT\n"
    "      --backward         also reads gy_OUTPUT and writes gx_INPUT\n"
    "      --double-backward  also reads ggx_INPUT and writes gg_INPUT and ggy_OUTPUT,\n"
    "                         the gradients of sum(gx * ggx)\n"
    "  update OPTIMIZER   update param0 with grad1, grad2 ...; writes param1, param2 ...\n\n"
    "Files are .npz. relu is short for catena.relu, adam for the function catena.adam_update.\n\n";

struct Options {
    std::string command;
    std::string name;
    std::string npz;
    std::string out;
    command::Settings attrs;
    std::string device;
    std::vector<std::string> inputs;
    std::vector<std::string> plugins;
    std::vector<std::string> without;
    std::vector<std::string> pins;
    int threads = 0;
    std::string seed = "0";
    bool test = false;
    bool deterministic = false;
    bool debug = false;
    bool hash = false;
    bool json = false;
    bool backward = false;
    bool double_backward = false;
};

std::string loaded_plugins() {
    std::vector<std::string> ids;
    for (const LoadedPlugin& plugin : plugin_report().loaded) ids.push_back(plugin.id);
    return fmt::format("{}", fmt::join(ids, ", "));
}

void use_plugins(const Options& o) {
    const auto report = inspect::load_plugins_of({}, o.plugins, o.without);
    // The user named these folders, so a refused plugin is an error.
    if (o.command != "plugins" && !o.plugins.empty()) {
        const std::string refused = refusals(report);
        if (!refused.empty()) throw PluginError("[plugins] " + refused);
    }
}

void pin(const std::string& text) {
    const auto equals = text.find('=');
    if (equals == text.npos || equals == 0 || equals + 1 == text.size())
        throw InvalidError(fmt::format("[pin] expected FUNCTION=PLUGIN, got {}", text));
    const std::string name = text.substr(0, equals), plugin = text.substr(equals + 1);
    if (name.find('/') != name.npos) {  // an extension; only the core knows its providers
        const auto report = plugin_report();
        if (std::ranges::count(report.loaded, plugin, &LoadedPlugin::id) == 0)
            throw InvalidError(fmt::format("[pin] {}: expected a loaded plugin ({}), got {}", name,
                                           loaded_plugins(), plugin));
        return pin_kernels(name, plugin);
    }
    const catena_function& f = command::find_function(name);
    std::set<std::string> able;
    for (const KernelInfo& kernel : kernels_of(f.name)) able.insert(kernel.plugin);
    if (!able.contains(plugin))
        throw InvalidError(
            fmt::format("[pin] {}: expected a plugin with kernels for it ({}), got {}", f.name,
                        fmt::join(able, ", "), plugin));
    pin_kernels(f.name, plugin);
}

// Loads only the arrays that the command uses.
command::Arrays load_given(const Options& o, Device device) {
    using Prefixes = std::vector<std::string_view>;
    command::Arrays given;
    if (o.npz.empty()) return given;
    for (const std::string_view prefix : o.command == "call" ? Prefixes{"in_", "gy_", "ggx_"}
                                                             : Prefixes{"param0", "grad", "state_"})
        given.merge(load_arrays(o.npz, device, prefix));
    return given;
}

int run(const Options& o) {
    if (o.command == "plugins" && o.name == "lock") {
        command::lock_plugins(o.plugins, o.out);
        return 0;
    }
    use_plugins(o);
    if (o.command == "plugins") {
        fmt::print("{}", (o.json ? command::list_plugins_as_json : command::list_plugins)(
                             plugin_report(), o.hash));
        return 0;
    }
    for (const auto& text : o.pins) pin(text);
    if (o.command == "functions") {
        fmt::print("{}", command::list_functions());
        return 0;
    }
    if (o.command == "describe") {
        fmt::print("{}", command::describe(o.name));
        if (!o.inputs.empty())
            fmt::print("\noutputs\n{}", command::infer(o.name, o.attrs, o.inputs));
        return 0;
    }
    const Device device = o.device.empty() ? Device::current() : Device::get(o.device);
    const using_device scope(device);
    if (o.threads > 0) device.set_threads(o.threads);
    seed(seed_option(o.seed, "seed"));
    config().train = !o.test;
    config().deterministic = o.deterministic;
    config().debug = o.debug;
    const command::Arrays given = load_given(o, device);
    const auto order = o.double_backward ? command::Order::double_backward
                       : o.backward      ? command::Order::backward
                                         : command::Order::forward;
    save_arrays(o.out, o.command == "call" ? command::call(o.name, o.attrs, given, order)
                                           : command::update(o.name, o.attrs, given));
    return 0;
}

void check(const po::variables_map& given, const Options& o) {
    // The options of each command, besides --help, --plugins and --without.
    const std::map<std::string, std::set<std::string>> takes = {
        {"plugins",
         o.name.empty() ? std::set<std::string>{"hash", "json"} : std::set<std::string>{"out"}},
        {"functions", {}},
        {"describe", {"input", "attr"}},
        {"call",
         {"npz", "out", "attr", "backward", "double-backward", "device", "threads", "pin", "seed",
          "test", "deterministic", "debug"}},
        {"update",
         {"npz", "out", "attr", "device", "threads", "pin", "seed", "deterministic", "debug"}}};
    const auto command = takes.find(o.command);
    need_option(command != takes.end(), fmt::format("expected a COMMAND, got '{}'", o.command));
    if (o.command == "plugins")
        need_option(o.name.empty() || o.name == "lock",
                    fmt::format("plugins: expected lock or nothing, got '{}'", o.name));
    else if (o.command == "functions")
        need_option(o.name.empty(), fmt::format("functions: expected no NAME, got '{}'", o.name));
    else need_option(!o.name.empty(), fmt::format("{}: expected a NAME", o.command));
    static const std::set<std::string> always = {"word", "plugins", "without"};
    for (const auto& [option, value] : given)
        need_option(
            value.defaulted() || always.contains(option) || command->second.contains(option),
            fmt::format("{}: expected no --{}", o.command, option));
    need_option(o.command != "describe" || o.attrs.empty() || !o.inputs.empty(),
                "describe: expected --attr only with --input");
    for (const std::string option : {"npz", "out"}) {
        // --npz is optional for call, since a function may have no inputs.
        const bool needed = o.command != "plugins" && (option != "npz" || o.command != "call") &&
                            command->second.contains(option);
        need_option(!needed || given.count(option) > 0,
                    fmt::format("{}: expected a value of --{}", o.command, option));
    }
    constexpr int most = 1024;
    need_option(given.count("threads") == 0 || (o.threads >= 1 && o.threads <= most),
                fmt::format("--threads: expected 1 to {}, got {}", most, o.threads));
    seed_option(o.seed, "seed");
}

}  // namespace

int main(int argc, char** argv) {
    return run_command("catena", [&] {
        Options o;
        ToolOptions tool;
        // clang-format off
        tool.options.add_options()
            ("npz", po::value(&o.npz)->value_name("FILE"), "input file")
            ("out", po::value(&o.out)->value_name("FILE"), "output file")
            ("attr", po::value(&o.attrs)->value_name("NAME=VALUE"),
             "an attribute; VALUE is JSON: 2, [2,1], true, \"text\". May be repeated")
            ("input", po::value(&o.inputs)->value_name("NAME=SHAPE"), "the shape of an input")
            ("backward", po::bool_switch(&o.backward), "also compute gradients")
            ("double-backward", po::bool_switch(&o.double_backward),
             "also compute second-order gradients")
            ("device", po::value(&o.device)->value_name("NAME"), "the device to use")
            ("threads", po::value(&o.threads)->value_name("N"), "number of threads")
            ("plugins", po::value(&o.plugins)->value_name("DIR"),
             "load plugins only from DIR. May be repeated")
            ("without", po::value(&o.without)->value_name("PLUGIN"),
             "do not load the plugin with this id. May be repeated")
            ("pin", po::value(&o.pins)->value_name("FUNCTION=PLUGIN"),
             "prefer the kernels of a plugin. May be repeated")
            ("seed", po::value(&o.seed)->value_name("N"), "seed of random numbers")
            ("test", po::bool_switch(&o.test), "run outside training mode")
            ("deterministic", po::bool_switch(&o.deterministic),
             "give bit-identical results for any number of threads")
            ("debug", po::bool_switch(&o.debug), "treat NaN as an error")
            ("hash", po::bool_switch(&o.hash), "show the SHA-256 of each file")
            ("json", po::bool_switch(&o.json), "print JSON");
        // clang-format on
        if (!tool.read(argc, argv, usage, "catena " CATENA_VERSION ", ABI " CATENA_ABI_VERSION, 2))
            return 0;
        tool.words.resize(2);
        o.command = tool.words[0];
        o.name = tool.words[1];
        check(tool.given, o);
        try {
            return run(o);
        } catch (const MemoryError& error) {
            throw Error(short_of_memory(error.what()));
        }
    });
}
