// Parses a command line of --NAME VALUE pairs.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

// Values by name; the defaults define which names exist.
class Arguments {
public:
    using Values = std::map<std::string, std::string, std::less<>>;

    Arguments(int argc, char** argv, Values defaults) : values_(std::move(defaults)) {
        for (int i = 1; i < argc; i += 2) {
            const std::string_view word = argv[i];
            const auto known =
                word.starts_with("--") ? values_.find(word.substr(2)) : values_.end();
            if (known == values_.end() || i + 1 == argc) throw std::invalid_argument(usage(word));
            known->second = argv[i + 1];
        }
    }
    const std::string& text(std::string_view name) const { return values_.find(name)->second; }
    template <class T>
    T number(std::string_view name) const {
        const std::string& text = this->text(name);
        T value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size() || value < T(0)) {
            throw std::invalid_argument(
                fmt::format("--{}: expected a number, not negative, got '{}'", name, text));
        }
        return value;
    }

private:
    std::string usage(std::string_view word) const {
        std::string names;
        for (const auto& [name, value] : values_) names += fmt::format(" --{} ({})", name, value);
        return fmt::format("expected{} and a value, got '{}'", names, word);
    }

    Values values_;
};
