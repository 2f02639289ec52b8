// parse_json: JSON text from anywhere, as a tree of bounded depth.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

constexpr int max_json_depth = 64;

// Checks a text first. (The library's parser with a callback takes quadratic time for some texts.)
class JsonCheck final : public nlohmann::json_sax<nlohmann::json> {
public:
    explicit JsonCheck(std::optional<std::string>* repeated) : repeated_(repeated) {}

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override {
        if (repeated_ != nullptr) keys_.emplace_back();
        return ++depth_ <= max_json_depth;
    }
    bool key(string_t& name) override {
        if (repeated_ != nullptr && !keys_.back().insert(name).second) *repeated_ = name;
        return true;
    }
    bool end_object() override {
        if (repeated_ != nullptr) keys_.pop_back();
        --depth_;
        return true;
    }
    bool start_array(std::size_t) override { return ++depth_ <= max_json_depth; }
    bool end_array() override {
        --depth_;
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
        return false;
    }

private:
    std::optional<std::string>* repeated_;
    std::vector<std::set<std::string>> keys_;  // of the objects that are open
    int depth_ = 0;
};

// The value of a text; is_discarded() if the text is no JSON, or if arrays and objects nest deeper: the
// library copies and prints a tree by recursion, and a deep one would exhaust the stack. The library
// keeps the last value of a repeated key; `repeated`, if given, is set to the last such key.
inline nlohmann::json parse_json(std::string_view text,
                                 std::optional<std::string>* repeated = nullptr) {
    JsonCheck check(repeated);
    if (!nlohmann::json::sax_parse(text, &check)) return nlohmann::json::value_t::discarded;
    return nlohmann::json::parse(text, nullptr, false);
}

}  // namespace catena
