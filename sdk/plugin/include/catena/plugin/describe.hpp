// Descriptions of functions: ports, attributes, flags. They are constant expressions, so a plugin's
// tables are data and no code runs at load.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "catena/abi.h"

namespace catena::plugin {

// A string as a template argument.
template <std::size_t n>
struct Name {
    consteval Name(const char (&literal)[n]) {  // NOLINT(google-explicit-constructor)
        for (std::size_t i = 0; i < n; ++i) text[i] = literal[i];
    }
    char text[n];
};

namespace detail {
// Returns a copy of a description with another value of one member.
template <class D, class Spec, class M>
constexpr D changed(D description, M Spec::*member, std::type_identity_t<M> value) {
    description.*member = value;
    return description;
}
}  // namespace detail

// An input or an output. A plain string is a differentiable tensor of type T.
struct Port : catena_port_spec {
    constexpr Port(const char* port_name, const char* port_doc = "")  // NOLINT
        : catena_port_spec{sizeof(catena_port_spec), 0, port_name, port_doc, "T"} {}
    constexpr Port with(std::uint32_t flag) const {
        return detail::changed(*this, &Port::flags, flags | flag);
    }
    // Ports of the same type variable have the same dtype.
    constexpr Port of(const char* type_variable) const {
        return detail::changed(*this, &Port::type_var, type_variable);
    }
    constexpr Port optional() const { return with(CATENA_PORT_OPTIONAL); }
    constexpr Port variadic() const { return with(CATENA_PORT_VARIADIC); }
    constexpr Port not_differentiable() const { return with(CATENA_PORT_NON_DIFFERENTIABLE); }
    constexpr Port mutated() const { return with(CATENA_PORT_MUTATED); }
    constexpr Port hidden() const { return with(CATENA_PORT_HIDDEN); }
    // compose() may read the elements.
    constexpr Port host() const { return with(CATENA_PORT_HOST | CATENA_PORT_NON_DIFFERENTIABLE); }
};

template <class... P>
constexpr std::array<Port, sizeof...(P)> in(const P&... ports) {
    return {Port(ports)...};
}
template <class... P>
constexpr std::array<Port, sizeof...(P)> out(const P&... ports) {
    return {Port(ports)...};
}

// Lists of numbers as attributes.
using Ints = std::span<const std::int64_t>;
using Floats = std::span<const double>;
// A shape or axes as an argument, which can also be written as {n, 1}.
struct IntList : Ints {
    using Ints::Ints;
    IntList() = default;
    IntList(Ints list) : Ints(list) {}  // NOLINT(google-explicit-constructor)
    IntList(std::initializer_list<std::int64_t> list) : Ints(list.begin(), list.size()) {}
};

template <class V>
constexpr std::int32_t kind_of() {
    if constexpr (std::is_same_v<V, bool>) return CATENA_ATTR_BOOL;
    else if constexpr (std::is_integral_v<V>) return CATENA_ATTR_INT;
    else if constexpr (std::is_floating_point_v<V>) return CATENA_ATTR_FLOAT;
    else if constexpr (std::is_same_v<V, Ints>) return CATENA_ATTR_INTS;
    else if constexpr (std::is_same_v<V, Floats>) return CATENA_ATTR_FLOATS;
    else if constexpr (std::is_same_v<V, catena_dtype>) return CATENA_ATTR_DTYPE;
    else return CATENA_ATTR_STRING;
}

// Lists and strings are not copied; the caller owns them.
template <class V>
constexpr catena_value value_of(const V& v) {
    constexpr std::int32_t kind = kind_of<V>();
    if constexpr (kind == CATENA_ATTR_BOOL || kind == CATENA_ATTR_INT)
        return {kind, 1, {.i = static_cast<std::int64_t>(v)}};
    else if constexpr (kind == CATENA_ATTR_FLOAT) return {kind, 1, {.f = static_cast<double>(v)}};
    else if constexpr (kind == CATENA_ATTR_INTS)
        return {kind, static_cast<std::uint32_t>(v.size()), {.ints = v.data()}};
    else if constexpr (kind == CATENA_ATTR_FLOATS)
        return {kind, static_cast<std::uint32_t>(v.size()), {.floats = v.data()}};
    else if constexpr (kind == CATENA_ATTR_DTYPE) return {kind, 1, {.dtype = v}};
    else return {kind, 1, {.s = v}};
}

// A named value, for calls by name.
template <class V>
constexpr catena_named_value set(const char* name, const V& v) {
    return {name, value_of(v)};
}

namespace detail {

// A description that calls one of these does not compile; the first error contains the name.
void only_numbers_have_a_range();
void a_range_begins_below_its_end();
void an_integer_attribute_needs_an_integer_range_or_a_default_like_1_0();
void only_strings_have_choices();

constexpr bool is_whole(double v) {
    return v >= -0x1p63 && v < 0x1p63 && static_cast<double>(static_cast<std::int64_t>(v)) == v;
}

}  // namespace detail

// An attribute; the type of its default is its type.
struct Attribute : catena_attr_spec {
    // The range of valid values, inclusive.
    constexpr Attribute range(double from, double to) const {
        Attribute a = *this;
        const bool whole = kind == CATENA_ATTR_INT || kind == CATENA_ATTR_INTS;
        if (!whole && kind != CATENA_ATTR_FLOAT && kind != CATENA_ATTR_FLOATS)
            detail::only_numbers_have_a_range();
        if (whole && !(detail::is_whole(from) && detail::is_whole(to)))
            detail::an_integer_attribute_needs_an_integer_range_or_a_default_like_1_0();
        if (!(from <= to)) detail::a_range_begins_below_its_end();
        a.flags |= CATENA_ATTR_RANGED;
        a.lo = whole ? value_of(static_cast<std::int64_t>(from)) : value_of(from);
        a.hi = whole ? value_of(static_cast<std::int64_t>(to)) : value_of(to);
        return a;
    }
    // The valid strings: a list with static storage that ends with a null pointer.
    constexpr Attribute one_of(const char* const* list) const {
        if (kind != CATENA_ATTR_STRING) detail::only_strings_have_choices();
        return detail::changed(*this, &Attribute::choices, list);
    }
    // The attribute may change speed, but never results.
    constexpr Attribute hint() const {
        return detail::changed(*this, &Attribute::flags, flags | CATENA_ATTR_HINT);
    }
};

namespace detail {
constexpr Attribute make_attribute(const char* name, const char* doc, std::uint32_t flags,
                                   const catena_value& def) {
    return {{sizeof(catena_attr_spec), def.kind, name, doc, flags, 0, def, {}, {}, nullptr}};
}
}  // namespace detail

// attr("slope", 0.2, "..."): an attribute with a default, which may be Ints{}.
template <class V>
constexpr Attribute attr(const char* name, V def, const char* doc = "") {
    return detail::make_attribute(name, doc, 0, value_of(def));
}
// required<double>("value", "..."): the caller must pass it.
template <class V>
constexpr Attribute required(const char* name, const char* doc) {
    return detail::make_attribute(name, doc, CATENA_ATTR_REQUIRED, {kind_of<V>(), 0, {.i = 0}});
}

template <std::size_t n_in, std::size_t n_out, std::size_t n_attrs>
struct About {
    constexpr About with(std::uint32_t flag) const {
        return detail::changed(*this, &About::flags, flags | flag);
    }
    constexpr About not_differentiable() const { return with(CATENA_FUNCTION_NOT_DIFFERENTIABLE); }
    constexpr About stochastic() const { return with(CATENA_FUNCTION_STOCHASTIC); }
    // The output is the input's memory with another shape; there is no kernel.
    constexpr About view() const { return with(CATENA_FUNCTION_VIEW); }
    // The graph keeps the inputs of compose(), and runs it again for gradients.
    constexpr About recomputed() const { return with(CATENA_FUNCTION_RECOMPUTED); }
    // The host converts integers and bool to the highest dtype of their type variable.
    constexpr About promotes() const { return with(CATENA_FUNCTION_PROMOTES); }
    // Only for the gradients of other functions.
    constexpr About internal() const { return with(CATENA_FUNCTION_INTERNAL); }
    // A valid call, in the format of catena_function.examples: .example("x=(2,3) axis=1").
    // Conformance tests run each of them. The text must have static storage.
    constexpr About example(const char* text) const {
        About about = *this;
        std::size_t n = 0;
        while (about.examples[n] != nullptr) ++n;
        if (n == most_examples) throw "a function has at most 7 examples";
        about.examples[n] = text;
        return about;
    }
    // The version of the function. Increase it when the result of the function changes.
    constexpr About since(std::uint32_t number) const {
        return detail::changed(*this, &About::version, number);
    }
    // For kernels_for(): a call runs the kernel with the highest priority of all plugins' kernels.
    constexpr About with_priority(std::int32_t number) const {
        return detail::changed(*this, &About::priority, number);
    }
    // The name of the kernels in tables and messages: "winograd".
    constexpr About named(const char* kernel) const {
        return detail::changed(*this, &About::kernel_name, kernel);
    }
    // The index of an attribute, or n_attrs if the function has none with this name.
    consteval std::size_t attribute(std::string_view wanted) const {
        std::size_t i = 0;
        while (i < n_attrs && attrs[i].name != wanted) ++i;
        return i;
    }

    const char* name;
    const char* doc;  // Markdown; the first line is the summary
    std::array<Port, n_in> inputs;
    std::array<Port, n_out> outputs;
    std::array<Attribute, n_attrs> attrs;
    std::uint32_t flags = 0;
    std::uint32_t version = 1;
    static constexpr std::size_t most_examples = 7;
    std::array<const char*, most_examples + 1> examples = {};  // ends in a null pointer
    std::int32_t priority = CATENA_PRIORITY_PORTABLE;          // of the kernels
    const char* kernel_name = nullptr;
    bool kernels_alone = false;  // another plugin describes the function
};

template <std::size_t n_in, std::size_t n_out, std::same_as<Attribute>... A>
constexpr About<n_in, n_out, sizeof...(A)> describe(const char* name, const char* doc,
                                                    const std::array<Port, n_in>& inputs,
                                                    const std::array<Port, n_out>& outputs,
                                                    const A&... attrs) {
    return {name, doc, inputs, outputs, {attrs...}};
}

namespace detail {
template <class P>
inline constexpr std::size_t n_listed = 0;
template <std::size_t n>
inline constexpr std::size_t n_listed<std::array<Port, n>> = n;
// The ports of a description with other arguments: as many as it lists, the last list for outputs.
template <class... P>
constexpr std::pair<std::size_t, std::size_t> n_ports() {
    std::size_t inputs = 0, outputs = 0;
    for (const std::size_t n : {std::size_t{0}, n_listed<P>...})
        if (n > 0) inputs += std::exchange(outputs, n);
    return inputs > 0 ? std::pair(inputs, outputs) : std::pair(outputs, std::size_t{1});
}
template <class... P>
inline constexpr bool is_description = false;
}  // namespace detail

// For other arguments: one short error, where no overload would match. The result has as many ports
// as the lists, and the attributes, so that the rest of the function causes no further errors.
template <class... P>
constexpr auto describe(const char* name, const char* doc, const P&... parts) {
    static_assert(
        detail::is_description<P...>,
        "describe(name, doc, in(...), out(...), attributes...): expected one in() with all "
        "inputs, one out() with all outputs, then each attr() or required()");
    constexpr auto n = detail::n_ports<P...>();
    const auto ports = []<std::size_t... i>(std::index_sequence<i...>) {
        return std::array{(static_cast<void>(i), Port("port"))...};
    };
    std::array<Attribute, (std::same_as<P, Attribute> + ... + 0)> attrs{};
    std::size_t i = 0;
    const auto keep = [&](const auto& part) {
        if constexpr (std::same_as<decltype(part), const Attribute&>) attrs[i++] = part;
    };
    (..., keep(parts));
    return About<n.first, n.second, attrs.size()>{
        name, doc, ports(std::make_index_sequence<n.first>()),
        ports(std::make_index_sequence<n.second>()), attrs};
}

// Kernels for a function that another plugin describes: its full name, then its ports and
// attributes in the order of `catena describe`. The struct has kernels as if it described the
// function, but no infer() and no gradient(). Its kernels precede those of the function's plugin.
template <std::size_t n_in, std::size_t n_out, class... A>
constexpr About<n_in, n_out, sizeof...(A)> kernels_for(const char* function,
                                                       const std::array<Port, n_in>& inputs,
                                                       const std::array<Port, n_out>& outputs,
                                                       const A&... attrs) {
    auto about = describe(function, "", inputs, outputs, attrs...);
    about.priority = CATENA_PRIORITY_TUNED;
    about.kernels_alone = true;
    return about;
}

// The value of F's attribute `name`, in its own type, resolved at compile time.
template <class F, Name name>
auto attribute(const catena_value* attrs) {
    constexpr std::size_t i = F::about.attribute(name.text);
    constexpr bool described = i < F::about.attrs.size();
    static_assert(described, "attr<name>(): the description has no attribute of this name");
    constexpr std::int32_t kind = described ? F::about.attrs[i].kind : -1;
    const catena_value& value = attrs[i];
    if constexpr (!described) return 0.0;
    else if constexpr (kind == CATENA_ATTR_FLOAT) return value.v.f;
    else if constexpr (kind == CATENA_ATTR_INT) return value.v.i;
    else if constexpr (kind == CATENA_ATTR_BOOL) return value.v.i != 0;
    else if constexpr (kind == CATENA_ATTR_STRING) return std::string_view(value.v.s);
    else if constexpr (kind == CATENA_ATTR_INTS) return Ints(value.v.ints, value.n);
    else if constexpr (kind == CATENA_ATTR_FLOATS) return Floats(value.v.floats, value.n);
    else return value.v.dtype;
}

// A set of ports: retain_x = ports(0, 2).
template <class... I>
constexpr std::uint64_t ports(I... index) {
    return ((std::uint64_t{1} << index) | ... | 0);
}

// The dtype of a C++ type.
struct Float16 {
    std::uint16_t bits;
};
struct BFloat16 {
    std::uint16_t bits;
};
template <class T>
constexpr catena_dtype dtype_of() {
    constexpr auto bits = static_cast<std::uint8_t>(8 * sizeof(T));
    if constexpr (std::is_same_v<T, bool>) return {CATENA_CODE_BOOL, 8, 1};
    else if constexpr (std::is_same_v<T, Float16>) return {CATENA_CODE_FLOAT, bits, 1};
    else if constexpr (std::is_same_v<T, BFloat16>) return {CATENA_CODE_BFLOAT, bits, 1};
    else if constexpr (std::is_floating_point_v<T>) return {CATENA_CODE_FLOAT, bits, 1};
    else if constexpr (std::is_signed_v<T>) return {CATENA_CODE_INT, bits, 1};
    else return {CATENA_CODE_UINT, bits, 1};
}
constexpr bool same(catena_dtype a, catena_dtype b) {
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

// The dtypes of a kernel: a type for each type variable, in order of first use.
template <class... T>
struct Row {
    static constexpr std::size_t n = sizeof...(T);
    static constexpr catena_dtype dtypes[n] = {dtype_of<T>()...};
};
// Halves: types stored in two bytes and computed in float. AllTypes: the types of catena.cast.
using Halves = Row<Float16, BFloat16>;
using AllTypes =
    Row<Float16, BFloat16, float, double, std::int32_t, std::int64_t, bool, std::uint8_t>;
// Returns the index of a dtype in a row, or -1 if the row does not have it.
template <class... T>
constexpr int index_in(Row<T...>, catena_dtype dtype) {
    for (std::size_t i = 0; i < sizeof...(T); ++i)
        if (same(Row<T...>::dtypes[i], dtype)) return static_cast<int>(i);
    return -1;
}
constexpr bool is_half(catena_dtype d) { return index_in(Halves(), d) >= 0; }
template <class T>
inline constexpr bool is_half_type = is_half(dtype_of<T>());
// Calls body(T()) for the type at this index of the row.
template <class... T, class Body>
constexpr void with_type(Row<T...>, int index, const Body& body) {
    int i = 0;
    static_cast<void>(((i++ == index ? (body(T()), true) : false) || ...));
}

template <class... R>
struct Rows {};
using Floating = Rows<Row<float>, Row<double>>;
// Includes integers, which have no gradients: labels, indices, masks.
using Numbers = Rows<Row<float>, Row<double>, Row<std::int32_t>, Row<std::int64_t>>;
template <class... A, class... B>
constexpr Rows<A..., B...> operator+(Rows<A...>, Rows<B...>) {
    return {};
}
// For functions that only move elements.
using Elements = decltype(Numbers() + Rows<Row<bool>, Row<std::uint8_t>>());
// Rows for all pairs of types in a list.
template <class... T>
struct Pairs {
    template <class A>
    using With = Rows<Row<A, T>...>;
    using type = decltype((With<T>() + ...));
};
template <class... T>
struct Pairs<Row<T...>> : Pairs<T...> {};

}  // namespace catena::plugin
