// Attributes: copies, and whether a value fits the schema. Examples: reading and writing.
#include "catena/testing/example.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <values.hpp>

#include "catena/plugin/error.hpp"
#include "testing/types.hpp"

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

catena_value detail::converted(const catena_attr_spec& spec, catena_value v) {
    if (spec.kind == CATENA_ATTR_FLOAT && v.kind == CATENA_ATTR_INT)
        v = plugin::value_of(static_cast<double>(v.v.i));
    else if (spec.kind == CATENA_ATTR_INT && v.kind == CATENA_ATTR_FLOAT &&
             std::trunc(v.v.f) == v.v.f && std::abs(v.v.f) < 0x1p53)
        v = plugin::value_of(static_cast<std::int64_t>(v.v.f));
    return v;
}

std::string detail::refused(const catena_attr_spec& spec, const catena_value& v) {
    const auto shown = [](const catena_value& value) { return text_of(value, ", ", '\''); };
    if (v.kind != spec.kind)
        return std::string("expected ") + kind_text(spec.kind) + ", got " + shown(v);
    return why_refused(spec, v, shown);
}

namespace {

class ExampleParser {
public:
    ExampleParser(const catena_function& f, const std::string& text) : f_(f), text_(text) {}

    Example parse() {
        result_.inputs.resize(f_.n_inputs);
        for (skip_spaces(); at_ < text_.size(); skip_spaces()) {
            const std::size_t equals = text_.find('=', at_);
            if (equals == std::string::npos) fail("NAME=VALUE");
            const std::string name = text_.substr(at_, equals - at_);
            at_ = equals + 1;
            if (!input(name) && !attribute(name))
                fail("the name of an input or attribute before '='");
            if (at_ < text_.size() && text_[at_] != ' ') fail("a space");
        }
        return std::move(result_);
    }

private:
    [[noreturn]] void fail(const std::string& expected) const {
        throw Failure(CATENA_E_INVALID, std::string("[") + f_.name + "] example \"" + text_ +
                                            "\": expected " + expected + ", got '" +
                                            text_.substr(std::min(at_, text_.size())) + "'");
    }
    void skip_spaces() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    }
    bool take(char c) {
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void need(char c) {
        if (!take(c)) fail(std::string("'") + c + "'");
    }
    template <class N>
    N number() {
        N value{};
        const auto [end, error] =
            std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        if (error != std::errc()) fail("a number");
        at_ = static_cast<std::size_t>(end - text_.data());
        return value;
    }
    template <class N>
    std::vector<N> numbers(char close) {
        std::vector<N> list;
        while (!take(close)) {
            list.push_back(number<N>());
            if (!take(',') && (at_ >= text_.size() || text_[at_] != close)) need(close);
        }
        return list;
    }
    // Reads [1,2] or one number.
    template <class N>
    std::vector<N> list() {
        return take('[') ? numbers<N>(']') : std::vector<N>{number<N>()};
    }
    std::string word() {
        const std::size_t begin = at_;
        while (at_ < text_.size() && text_[at_] != ' ') ++at_;
        return text_.substr(begin, at_ - begin);
    }
    std::string quoted() {
        need('"');
        std::string result;
        while (at_ < text_.size() && text_[at_] != '"') {
            if (text_[at_] == '\\') ++at_;
            if (at_ < text_.size()) result += text_[at_++];
        }
        need('"');
        return result;
    }

    bool input(const std::string& name) {
        std::size_t port = 0;
        while (port < f_.n_inputs && name != f_.inputs[port]->name) ++port;
        if (port == f_.n_inputs) return false;
        Example::Input given;
        given.present = true;
        if (take('[')) {
            given.elements = numbers<std::int64_t>(']');
            given.shape = {static_cast<std::int64_t>(given.elements.size())};
        } else {
            if (!take('(')) fail("a shape (2,3) or elements [1,2]");
            given.shape = numbers<std::int64_t>(')');
            given.ranged = take('[');
        }
        if (given.ranged) {
            const std::vector<double> range = numbers<double>(']');
            if (range.size() != 2) fail("two numbers");
            given.low = range[0];
            given.high = range[1];
        }
        if (!result_.inputs[port].present) result_.inputs[port] = std::move(given);
        else if ((f_.inputs[port]->flags & CATENA_PORT_VARIADIC) != 0)
            result_.inputs.push_back(std::move(given));
        else fail("each input once");
        return true;
    }
    bool attribute(const std::string& name) {
        for (std::uint32_t i = 0; i < f_.n_attrs; ++i)
            if (name == f_.attrs[i]->name) {
                value(name, f_.attrs[i]->kind);
                return true;
            }
        return false;
    }
    void value(const std::string& name, std::int32_t kind) {
        const auto set = [&](const auto& v) { result_.attrs.set(name, plugin::value_of(v)); };
        if (kind == CATENA_ATTR_INT) set(number<std::int64_t>());
        else if (kind == CATENA_ATTR_FLOAT) set(number<double>());
        else if (kind == CATENA_ATTR_BOOL) {
            const std::string truth = word();
            if (truth != "true" && truth != "false") fail("true or false");
            set(truth == "true");
        } else if (kind == CATENA_ATTR_STRING) set(quoted().c_str());
        else if (kind == CATENA_ATTR_INTS) set(plugin::Ints(list<std::int64_t>()));
        else if (kind == CATENA_ATTR_FLOATS) set(plugin::Floats(list<double>()));
        else set(dtype(quoted()));
    }
    catena_dtype dtype(const std::string& name) const {
        for (const catena_dtype d : detail::EveryType::dtypes)
            if (plugin::text_of(d) == name) return d;
        fail("the name of a dtype");
    }

    const catena_function& f_;
    const std::string& text_;
    std::size_t at_ = 0;
    Example result_;
};

}  // namespace

Example parse_example(const catena_function& f, const std::string& text) {
    return ExampleParser(f, text).parse();
}

// Writes the format that parse_example() reads.
std::string text_of(const catena_function& f, const Example& e) {
    const auto in_words = [](const auto& v) {
        return detail::text_of(plugin::value_of(v), ",", '"');
    };
    std::string text;
    const auto name = [&](const char* of) {
        text += std::string(text.empty() ? "" : " ") + of + "=";
    };
    for (std::size_t i = 0; i < e.inputs.size(); ++i) {
        const Example::Input& in = e.inputs[i];
        if (!in.present) continue;
        name(f.inputs[std::min<std::size_t>(i, f.n_inputs - 1)]->name);
        if (!in.elements.empty() &&
            in.shape == Dims{static_cast<std::int64_t>(in.elements.size())}) {
            text += in_words(plugin::Ints(in.elements));
            continue;
        }
        std::string shape = in_words(plugin::Ints(in.shape));
        shape.front() = '(';
        shape.back() = ')';
        text += shape;
        const double range[] = {in.low, in.high};
        if (in.ranged) text += in_words(plugin::Floats(range));
    }
    for (const auto& [attribute, v] : e.attrs.list()) {
        name(attribute);
        text += v.kind == CATENA_ATTR_DTYPE ? '"' + plugin::text_of(v.v.dtype) + '"'
                                            : detail::text_of(v, ",", '"');
    }
    return text;
}

}  // namespace catena::testing
