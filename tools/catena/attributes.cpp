// Attributes from a command line.
#include "commands.hpp"

#include <catena/core/tables.hpp>

#include <fmt/format.h>
#include <parse_json.hpp>

#include <algorithm>
#include <limits>

namespace catena::command {
namespace {

using nlohmann::json;

const catena_attr_spec& spec_of(const catena_function& function, std::string_view name) {
    std::string names;
    for (const auto* spec : std::span(function.attrs, function.n_attrs)) {
        if (spec->name == name) return *spec;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", spec->name);
    }
    throw InvalidError(fmt::format("[{}] attribute: expected {}, got {}", function.name,
                                   names.empty() ? "none" : "one of " + names, beginning(name)));
}

// Integers are those of 64 bits with a sign: what the JSON holds beyond them would wrap.
bool is_integer(const json& value) {
    return value.is_number_integer() &&
           (!value.is_number_unsigned() ||
            value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
}

// False if the JSON is not of the kind.
bool convert(const json& value, std::int32_t kind, AttributeValue& out) {
    const auto all = [&](auto is) {
        return value.is_array() && std::all_of(value.begin(), value.end(), is);
    };
    // Takes the value as a T if it `is` one.
    const auto take = [&]<class T>(T, bool is) {
        if (is) out = value.get<T>();
        return is;
    };
    const bool number = value.is_number(), text = value.is_string();
    switch (kind) {
        case CATENA_ATTR_INT: return take(std::int64_t(), is_integer(value));
        case CATENA_ATTR_FLOAT: return take(double(), number);
        case CATENA_ATTR_BOOL: return take(bool(), value.is_boolean());
        case CATENA_ATTR_INTS:
            if (is_integer(value)) out = std::vector{value.get<std::int64_t>()};
            return is_integer(value) || take(std::vector<std::int64_t>(), all(is_integer));
        case CATENA_ATTR_FLOATS:
            if (number) out = std::vector{value.get<double>()};
            return number ||
                   take(std::vector<double>(), all([](const json& v) { return v.is_number(); }));
        case CATENA_ATTR_STRING: return take(std::string(), text);
        case CATENA_ATTR_DTYPE:
            if (text) out = dtype_from_name(value.get<std::string>());
            return text;
        default: return false;
    }
}

AttributeValue parse(const catena_function& function, const catena_attr_spec& spec,
                     const std::string& text) {
    AttributeValue result;
    const json value = parse_json(text);
    if (!value.is_discarded() && convert(value, spec.kind, result)) return result;
    if (spec.kind == CATENA_ATTR_STRING) return text;
    if (spec.kind == CATENA_ATTR_DTYPE && value.is_discarded()) return dtype_from_name(text);
    constexpr std::string_view kinds[] = {
        "",           "an integer of 64 bits",      "a number",       "true or false",
        "a \"text\"", "[integers of 64 bits, ...]", "[numbers, ...]", "the name of a dtype"};
    throw InvalidError(fmt::format("[{}] attribute {}: expected {} as JSON, got {}", function.name,
                                   spec.name, kinds[spec.kind], beginning(text)));
}

}  // namespace

Attributes::Attributes(const catena_function& function, const Settings& settings)
    : function_(function) {
    for (const std::string& setting : settings) {
        const auto equals = setting.find('=');
        if (equals == setting.npos || equals == 0)
            throw InvalidError(fmt::format("[{}] attribute: expected NAME=VALUE, got {}",
                                           function.name, beginning(setting)));
        const std::string name = setting.substr(0, equals);
        if (has(name))
            throw InvalidError(
                fmt::format("[{}] attribute {}: expected once, got twice", function.name, name));
        values_[name] = parse(function, spec_of(function, name), setting.substr(equals + 1));
    }
}

PluginFunction Attributes::bind() const {
    std::vector<Attribute> list;
    for (const auto& [name, value] : values_)
        std::visit([&, &key = name](const auto& v) { list.emplace_back(key, v); }, value);
    return PluginFunction(function_.name, list);
}

}  // namespace catena::command
