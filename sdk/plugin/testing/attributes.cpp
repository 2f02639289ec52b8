// Attributes: copies, and whether a value fits the schema.
#include "catena/testing/attributes.hpp"

#include <charconv>
#include <cmath>
#include <cstring>

#include "catena/plugin/error.hpp"

namespace catena::testing {

const catena_value* OwnedAttrs::find(const std::string& name) const {
    for (const catena_named_value& a : list_)
        if (name == a.name) return &a.value;
    return nullptr;
}
void OwnedAttrs::set(const std::string& name, const catena_value& value) {
    catena_named_value mine = {nullptr, value};
    if (value.kind == CATENA_ATTR_STRING)
        mine.value.v.s = keep(value.v.s, std::strlen(value.v.s) + 1);
    else if (value.kind == CATENA_ATTR_INTS) mine.value.v.ints = keep(value.v.ints, value.n);
    else if (value.kind == CATENA_ATTR_FLOATS) mine.value.v.floats = keep(value.v.floats, value.n);
    for (catena_named_value& a : list_)
        if (name == a.name) {
            a.value = mine.value;
            return;
        }
    mine.name = keep(name.c_str(), name.size() + 1);
    list_.push_back(mine);
}
template <class T>
const T* OwnedAttrs::keep(const T* from, std::size_t n) {
    auto copy = std::make_shared<std::vector<T>>(from, from + n);
    const T* data = copy->data();
    kept_.push_back(std::move(copy));
    return data;
}

std::string detail::text_of(const catena_value& v, const char* comma, char quote) {
    const auto number = [](auto value) {
        char text[32];
        return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
    };
    const auto list = [&](const auto* numbers) {
        std::string text = "[";
        for (std::uint32_t i = 0; i < v.n; ++i) text += (i == 0 ? "" : comma) + number(numbers[i]);
        return text + "]";
    };
    std::string text(1, quote);
    switch (v.kind) {
        case CATENA_ATTR_INT: return std::to_string(v.v.i);
        case CATENA_ATTR_FLOAT: return number(v.v.f);
        case CATENA_ATTR_BOOL: return v.v.i != 0 ? "true" : "false";
        case CATENA_ATTR_INTS: return list(v.v.ints);
        case CATENA_ATTR_FLOATS: return list(v.v.floats);
        case CATENA_ATTR_DTYPE: return plugin::text_of(v.v.dtype);
        default: break;
    }
    for (const char* c = v.v.s; *c != '\0'; ++c)
        (*c == quote || * c == '\\' ? text += '\\' : text) += *c;
    return text + quote;
}

namespace {
std::string shown(const catena_value& v) { return detail::text_of(v, ", ", '\''); }
}  // namespace

catena_value detail::converted(const catena_attr_spec& spec, catena_value v) {
    if (spec.kind == CATENA_ATTR_FLOAT && v.kind == CATENA_ATTR_INT)
        v = plugin::value_of(static_cast<double>(v.v.i));
    else if (spec.kind == CATENA_ATTR_INT && v.kind == CATENA_ATTR_FLOAT &&
             std::trunc(v.v.f) == v.v.f && std::abs(v.v.f) < 0x1p53)
        v = plugin::value_of(static_cast<std::int64_t>(v.v.f));
    return v;
}

std::string detail::refused(const catena_attr_spec& spec, const catena_value& v) {
    static constexpr const char* kinds[] = {
        "",         "an integer",         "a number",          "a bool",
        "a string", "a list of integers", "a list of numbers", "a dtype"};
    if (v.kind != spec.kind)
        return std::string("expected ") + kinds[spec.kind & 7] + ", got " + shown(v);
    if (v.kind == CATENA_ATTR_STRING && spec.choices != nullptr) {
        std::string known;
        for (const char* const* c = spec.choices; *c != nullptr; ++c) {
            if (std::strcmp(*c, v.v.s) == 0) return {};
            known += (known.empty() ? "" : ", ") + std::string(*c);
        }
        return "expected one of " + known + ", got " + shown(v);
    }
    if ((spec.flags & CATENA_ATTR_RANGED) == 0) return {};
    const auto number = [](const catena_value& w, std::uint32_t i) {
        switch (w.kind) {
            case CATENA_ATTR_FLOAT: return w.v.f;
            case CATENA_ATTR_FLOATS: return w.v.floats[i];
            case CATENA_ATTR_INTS: return static_cast<double>(w.v.ints[i]);
            default: return static_cast<double>(w.v.i);
        }
    };
    for (std::uint32_t i = 0; i < v.n; ++i)
        if (!(number(spec.lo, 0) <= number(v, i) && number(v, i) <= number(spec.hi, 0)))
            return "expected " + shown(spec.lo) + " to " + shown(spec.hi) + ", got " + shown(v);
    return {};
}

}  // namespace catena::testing
