// catena-inspect: shows what plugins have, and writes the typed wrappers of their functions.
#include "inspect.hpp"

#include <catena/core/error.hpp>
#include <catena/core/plugins.hpp>

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

namespace po = boost::program_options;

namespace {

constexpr const char* usage =
    "usage: catena-inspect [OPTION...] COMMAND\n\n"
    "commands:\n"
    "  plugins        what was loaded, what was refused and why\n"
    "  header         a C++ header with a typed wrapper for each function\n\n";

// Writes a file only if its content changes, so that nothing is built again for nothing.
void write_file(const std::filesystem::path& file, const std::string& text) {
    {
        std::ifstream before(file, std::ios::binary);
        const std::string old{std::istreambuf_iterator<char>(before), {}};
        if (before && old == text) return;
    }
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << text << std::flush;
    if (!out) throw catena::Error(fmt::format("[header] {}: cannot be written", file.string()));
}

int run(const po::variables_map& options) {
    if (options.count("plugins")) {
        catena::disable_default_plugins();
        for (const auto& folder : options["plugins"].as<std::vector<std::string>>()) {
            catena::load_plugins(folder);
        }
    } else {
        catena::load_default_plugins();
    }
    const auto& words = options["command"].as<std::vector<std::string>>();
    const auto& command = words[0];
    if (words.size() != 1) throw po::error("expected one COMMAND");
    if (command == "plugins") {
        fmt::print("{}\n", to_string(catena::plugin_report()));
    } else if (command == "header") {
        // A header that lacks a plugin's functions would surprise later.
        const auto report = catena::plugin_report();
        if (!report.refused.empty()) throw catena::PluginError(to_string(report));
        const auto text = catena::inspect::write_header(
            {options["prefix"].as<std::string>(), options["namespace"].as<std::string>()});
        const auto& output = options["output"].as<std::string>();
        if (output == "-") fmt::print("{}", text);
        else write_file(output, text);
    } else {
        throw po::error("unknown COMMAND '" + command + "'");
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const catena::inspect::HeaderOptions header;
    po::options_description visible("options");
    visible.add_options()("help,h", "this text")(
        "plugins", po::value<std::vector<std::string>>()->value_name("DIR"),
        "look in DIR alone; may be given several times")(
        "output,o", po::value<std::string>()->default_value("-")->value_name("FILE"),
        "header: where to write it")("prefix",
                                     po::value<std::string>()->default_value(header.prefix),
                                     "header: functions whose names start so")(
        "namespace", po::value<std::string>()->default_value(header.space),
        "header: where they go");
    po::options_description all;
    all.add(visible).add_options()("command", po::value<std::vector<std::string>>());
    po::positional_options_description positional;
    positional.add("command", -1);
    try {
        po::variables_map options;
        po::store(po::command_line_parser(argc, argv).options(all).positional(positional).run(),
                  options);
        po::notify(options);
        if (options.count("help")) {
            std::cout << usage << visible;
            return 0;
        }
        if (!options.count("command")) throw po::error("expected a COMMAND");
        return run(options);
    } catch (const po::error& error) {
        std::cerr << "catena-inspect: " << error.what() << "\n\n" << usage << visible;
        return 2;
    } catch (const std::exception& error) {
        std::cerr << "catena-inspect: " << error.what() << '\n';
        return 1;
    }
}
