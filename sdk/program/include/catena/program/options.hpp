// ProgramOptions: a program's command line options, the checks of their values, and --help.
#pragma once

#include <boost/program_options.hpp>

#include <concepts>
#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

namespace catena {

class ProgramOptions {
public:
    using Group = boost::program_options::options_description;
    template <class T>
    using Value = boost::program_options::typed_value<T>;

    // name and about are the first lines of --help.
    ProgramOptions(std::string name, std::string about);

    // Add the program's own options here, before Program::parse().
    auto add_options() { return groups_.front().add_options(); }
    // A further group of options in --help, below the program's own.
    Group& add_group(const char* caption);
    // An option with a default; --help shows defaults like 0.1 in short form.
    template <class T>
    static Value<T>* value(T& variable) {
        return boost::program_options::value(&variable)->default_value(variable, to_text(variable));
    }
    // An option that is a path, which may have spaces. NAME appears in --help.
    static Value<std::string>* path(std::filesystem::path& variable, const char* name = "FILE");
    // Marks an option that may differ between the processes of a group, such as a device or a file
    // that only rank 0 writes. Program::start() requires equal values of all others:
    //     ("vectors", options.per_process(options.path(file)), "write all vectors")
    template <class T>
    Value<T>* per_process(Value<T>* value) {
        per_process_.insert(value);
        return value;
    }
    // Positional arguments: boost's description.
    auto& positional() noexcept { return positional_; }

    // Whether the option is on the command line, independent of its default.
    bool given(const char* option) const {
        return values_.count(option) > 0 && !values_[option].defaulted();
    }
    // Throws boost::program_options::error "--option: expected ..., got ...".
    template <class Got>
    static void require(bool condition, const char* option, const char* expected, const Got& got) {
        if (!condition) refuse(option, expected, to_text(got));
    }
    static void require_at_least(const char* option, std::int64_t value, std::int64_t least);
    using Numbers = std::initializer_list<std::pair<const char*, std::int64_t>>;
    static void require_at_least(std::int64_t least, Numbers options);
    static void require_positive(const char* option, double value);  // and finite
    // For options that require, or exclude, another option.
    void require_with(const char* option, const char* other) const;
    void require_without(const char* option, const char* other) const;

private:
    friend class Processes;
    friend class Program;
    [[noreturn]] static void refuse(std::string_view option, std::string_view expected,
                                    const std::string& got);
    static std::string to_text(double value);
    static std::string to_text(std::integral auto value) { return std::to_string(value); }
    static std::string to_text(const std::filesystem::path& value) { return value.string(); }

    // Returns false after --help and --version, which print their text.
    bool parse(int argc, char** argv, std::string_view version);
    void set_default(const std::string& option, const boost::any& value);
    // The options that must be equal in all processes, as text by name.
    std::map<std::string, std::string> common_values() const;

    std::string name_, about_;
    std::deque<Group> groups_;
    boost::program_options::positional_options_description positional_;
    std::set<const boost::program_options::value_semantic*> per_process_;
    boost::program_options::variables_map values_;
};

}  // namespace catena
