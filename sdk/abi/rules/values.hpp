// Values of attributes against their schema: one rule, for the core and the tools.
#pragma once

#include <catena/abi/attribute.h>

#include <cstring>
#include <string>

namespace catena {

// Value i of a number or a list of numbers.
inline double number_of(const catena_value& value, std::uint32_t i = 0) {
    switch (value.kind) {
        case CATENA_ATTR_FLOAT: return value.v.f;
        case CATENA_ATTR_INTS: return static_cast<double>(value.v.ints[i]);
        case CATENA_ATTR_FLOATS: return value.v.floats[i];
        default: return static_cast<double>(value.v.i);
    }
}

inline const char* kind_text(std::int32_t kind) {
    constexpr const char* texts[] = {
        "nothing",  "an integer",         "a number",          "a bool",
        "a string", "a list of integers", "a list of numbers", "a dtype"};
    return texts[kind & 7];
}

// Why a value of the right kind is not in range or in choices; "": it is. text_of(value) is its text.
template <class Text>
std::string why_refused(const catena_attr_spec& a, const catena_value& value, const Text& text_of) {
    for (std::uint32_t i = 0; (a.flags & CATENA_ATTR_RANGED) != 0 && i < value.n; ++i)
        if (!(number_of(a.lo) <= number_of(value, i) && number_of(value, i) <= number_of(a.hi)))
            return "expected " + text_of(a.lo) + " to " + text_of(a.hi) + ", got " + text_of(value);
    if (a.kind != CATENA_ATTR_STRING || a.choices == nullptr) return {};
    const char* const* choice = a.choices;
    for (; *choice != nullptr; ++choice)
        if (std::strcmp(*choice, value.v.s) == 0) return {};
    std::string known;
    for (choice = a.choices; *choice != nullptr; ++choice)
        known += (known.empty() ? "" : ", ") + std::string(*choice);
    return "expected one of " + known + ", got " + text_of(value);
}

}  // namespace catena
