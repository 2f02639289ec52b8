// ProgramOptions: reads, describes and checks the options of a command line. SamplingOptions.
#include <catena/fail.hpp>
#include <catena/program/options.hpp>
#include <catena/sampling_options.hpp>

#include <fmt/ranges.h>
#include <boost/algorithm/string/case_conv.hpp>
#include <command_line.hpp>

#include <cmath>
#include <iostream>
#include <optional>

namespace po = boost::program_options;

namespace catena {
namespace {

constexpr unsigned width = 100;

// The text of one value, for comparison and for messages.
std::string text_of(const std::string& option, const boost::any& value) {
    if (const auto* texts = boost::any_cast<std::vector<std::string>>(&value))
        return fmt::format("{}", fmt::join(*texts, " "));
    std::optional<std::string> text;
    const auto read = [&]<class... T>(std::type_identity<T>...) {
        (..., [&] {
            if (const T* typed = boost::any_cast<T>(&value)) text = fmt::format("{}", *typed);
        }());
    };
    read(std::type_identity<std::string>(), std::type_identity<bool>(), std::type_identity<int>(),
         std::type_identity<long>(), std::type_identity<long long>(),
         std::type_identity<unsigned>(), std::type_identity<unsigned long>(),
         std::type_identity<unsigned long long>(), std::type_identity<float>(),
         std::type_identity<double>());
    if (text) return *text;
    fail<InvalidError>(
        "[Program] --{}: expected a number, a bool, a text or a list of texts, which start() "
        "compares between processes, or an option of per_process(), got another type",
        option);
}

}  // namespace

ProgramOptions::ProgramOptions(std::string name, std::string about)
    : name_(std::move(name)), about_(std::move(about)) {
    add_group("options");
}

ProgramOptions::Group& ProgramOptions::add_group(const char* caption) {
    return groups_.emplace_back(caption, width);
}

// Boost would read a path only up to its first space.
po::typed_value<std::string>* ProgramOptions::path(std::filesystem::path& variable,
                                                   const char* name) {
    return po::value<std::string>()->value_name(name)->notifier(
        [&variable](const std::string& text) { variable = text; });
}

bool ProgramOptions::parse(int argc, char** argv, std::string_view version) {
    po::options_description all(width);
    for (const Group& group : groups_) all.add(group);
    values_ = parse_command_line(
        argc, argv, all, positional_,
        po::command_line_style::unix_style & ~po::command_line_style::allow_guessing);
    if (given("help")) {
        std::string inputs;
        if (const unsigned most = positional_.max_total_count(); most > 0) {
            const std::string name = boost::to_upper_copy(positional_.name_for_position(0));
            inputs = fmt::format(" [{}{}]", name, most > 1 ? "..." : "");
        }
        std::cout << fmt::format("usage: {} [OPTION...]{}\n\n{}\n", name_, inputs, about_) << all;
        return false;
    }
    if (given("version")) std::cout << name_ << " " << version << "\n";
    return !given("version");
}

void ProgramOptions::set_default(const std::string& option, const boost::any& value) {
    static_cast<std::map<std::string, po::variable_value>&>(values_)[option] =
        po::variable_value(value, /*defaulted=*/true);
}

std::map<std::string, std::string> ProgramOptions::common_values() const {
    std::map<std::string, std::string> values;
    for (const Group& group : groups_) {
        for (const auto& option : group.options()) {
            const std::string& name = option->long_name();
            if (per_process_.contains(option->semantic().get()) || values_.count(name) == 0)
                continue;
            values["--" + name] = text_of(name, values_[name].value());
        }
    }
    return values;
}

void ProgramOptions::require_at_least(const char* option, std::int64_t value, std::int64_t least) {
    if (value < least) refuse(option, fmt::format("{} or more", least), to_text(value));
}
void ProgramOptions::require_at_least(std::int64_t least, Numbers options) {
    for (const auto& [option, value] : options) require_at_least(option, value, least);
}
void ProgramOptions::require_positive(const char* option, double value) {
    require(std::isfinite(value) && value > 0, option, "a number above 0", value);
}
void ProgramOptions::require_with(const char* option, const char* other) const {
    if (given(option) && !given(other)) refuse(option, fmt::format("--{} as well", other), "none");
}
void ProgramOptions::require_without(const char* option, const char* other) const {
    if (given(option) && given(other)) refuse(option, fmt::format("no --{}", other), "both");
}

void ProgramOptions::refuse(std::string_view option, std::string_view expected,
                            const std::string& got) {
    throw po::error(fmt::format("--{}: expected {}, got {}", option, expected, got));
}
std::string ProgramOptions::to_text(double value) { return fmt::format("{}", value); }

void SamplingOptions::add_to(ProgramOptions& options) {
    options.add_options()("temperature", options.value(temperature),
                          "sampling temperature: below 1 prefers likely tokens, 0 takes "
                          "the most likely one");
    options.add_options()("top-k", po::value(&top_k)->value_name("N"),
                          "draw only from the N most likely tokens");
    options.add_options()("top-p", po::value(&top_p)->value_name("P"),
                          "draw only from the most likely tokens whose probabilities add "
                          "up to P");
}

void SamplingOptions::check(const ProgramOptions& options) const {
    options.require(temperature >= 0 && std::isfinite(temperature), names[0], "a number >= 0",
                    temperature);
    if (options.given(names[1])) options.require_at_least(names[1], top_k, 1);
    options.require(top_p > 0 && top_p <= 1, names[2], "above 0, up to 1", top_p);
}

}  // namespace catena
