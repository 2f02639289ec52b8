// PluginFunction: a function that is found by name and called on variables or arrays.
#pragma once

#include <catena/core/tables.hpp>
#include <catena/core/variable.hpp>

#include <variant>

namespace catena {

class FunctionEntry;
class BoundAttributes;

// The value of an attribute. Numbers are converted if nothing is lost.
using AttributeValue = std::variant<std::int64_t, double, bool, std::string,
                                    std::vector<std::int64_t>, std::vector<double>, Dtype>;

struct Attribute {
    template <class T>
    Attribute(std::string_view attribute_name, T attribute_value)
        : name(attribute_name), value(convert(std::move(attribute_value))) {}

    std::string_view name;
    AttributeValue value;

private:
    template <class T>
    static AttributeValue convert(T v) {
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, Dtype>) return v;
        else if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(v);
        else if constexpr (std::is_floating_point_v<T>) return static_cast<double>(v);
        else if constexpr (std::is_convertible_v<T, std::string_view>) return std::string(v);
        else return AttributeValue(std::move(v));
    }
};

// A function with its attributes, ready to call. The constructor looks it up and checks the
// attributes, so keep the object for repeated calls. Cheap to copy; thread-safe.
class PluginFunction {
public:
    // Throws PluginError if no plugin has the function (with the searched folders and refused
    // files), InvalidError if an attribute is unknown, missing, of the wrong kind or out of range.
    explicit PluginFunction(std::string_view name, std::initializer_list<Attribute> attributes = {})
        : PluginFunction(name, std::span(attributes.begin(), attributes.size())) {}
    PluginFunction(std::string_view name, std::span<const Attribute> attributes);
    PluginFunction(const PluginFunction& other) noexcept;
    PluginFunction& operator=(const PluginFunction& other) noexcept;
    ~PluginFunction();

    // The same function with other attributes, without a lookup. Throws InvalidError as above.
    PluginFunction with(std::initializer_list<Attribute> attributes) const;
    PluginFunction with(std::span<const Attribute> attributes) const;

    std::string_view name() const noexcept;
    const catena_function& descriptor() const noexcept;

    // Calls it on variables and records the graph, unless config() or a volatile input prevents it.
    // Trailing optional inputs may be omitted; a null pointer or an empty Variable is a missing
    // one. Returns all outputs, including hidden ones.
    std::vector<Variable> operator()(std::span<const Variable* const> inputs) const;
    std::vector<Variable> operator()(std::initializer_list<const Variable*> inputs) const {
        return (*this)(std::span(inputs.begin(), inputs.size()));
    }
    // Calls it on variables, or on arrays without recording a graph: y = squash(sum(x)). Returns
    // the only output that is not hidden. Throws InvalidError if there are several.
    template <std::derived_from<Variable>... V>
    Variable operator()(const Variable& x, const V&... others) const {
        const Variable* const inputs[] = {&x, &others...};
        return call(std::span<const Variable* const>(inputs), only_output());
    }
    template <std::same_as<Array>... A>
    Array operator()(const Array& x, const A&... others) const {
        const Array inputs[] = {x, others...};
        return call(std::span<const Array>(inputs), only_output());
    }
    // Returns only the first output, without heap allocation.
    Variable first(std::span<const Variable* const> inputs) const {
        return call(inputs, first_output());
    }
    Variable first(std::initializer_list<const Variable*> inputs) const {
        return first(std::span(inputs.begin(), inputs.size()));
    }
    Array first(std::span<const Array> inputs) const { return call(inputs, first_output()); }

    // Calls it on arrays, without a graph.
    std::vector<Array> forward(std::span<const Array> inputs) const;
    // Stores the first outputs.size() outputs, and takes no heap memory.
    void forward(std::span<const Array> inputs, std::span<Array> outputs) const;

    // The shapes and dtypes of all outputs, as arrays without memory. Computes nothing: inputs may
    // be arrays without memory, except those whose elements the function's composition reads.
    std::vector<Array> infer(std::span<const Array> inputs) const;

    FunctionEntry& entry() const noexcept { return *entry_; }
    const BoundAttributes* attributes() const noexcept { return attributes_.get(); }

private:
    PluginFunction(FunctionEntry& entry, std::span<const Attribute> attributes);
    std::size_t first_output() const;
    std::size_t only_output() const;
    Variable call(std::span<const Variable* const> inputs, std::size_t output) const;
    Array call(std::span<const Array> inputs, std::size_t output) const;

    FunctionEntry* entry_;
    Ref<const BoundAttributes> attributes_;
};

}  // namespace catena
