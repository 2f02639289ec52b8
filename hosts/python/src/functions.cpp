// Functions of plugins: their arguments are converted as their descriptions say.
#include "call.hpp"
#include "operators.hpp"
#include "parts.hpp"

#include <fmt/ranges.h>
#include <cmath>
#include <cstring>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

namespace catena::python {
namespace {

constexpr bool has(std::uint32_t flags, std::uint32_t flag) { return (flags & flag) != 0; }

// A name that Python accepts.
std::string identifier(std::string_view name) {
    const Owned keywords = checked(PyImport_ImportModule("keyword"));
    std::string text(name);
    std::replace_if(
        text.begin(), text.end(),
        [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_'; }, '_');
    const Owned is = checked(PyObject_CallMethod(keywords.get(), "iskeyword", "s", text.c_str()));
    return is.get() == Py_True ? text + '_' : text;
}

std::string number_text(double value) {
    if (!std::isfinite(value)) return "None";
    const std::string text = fmt::format("{}", value);
    return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

// The default of an attribute as Python writes it; None stands for an empty list.
std::string default_text(const catena_attr_spec& attribute) {
    if (has(attribute.flags, CATENA_ATTR_REQUIRED)) return {};
    const catena_value& def = attribute.def;
    switch (attribute.kind) {
        case CATENA_ATTR_INT: return std::to_string(def.v.i);
        case CATENA_ATTR_FLOAT: return number_text(def.v.f);
        case CATENA_ATTR_BOOL: return def.v.i != 0 ? "True" : "False";
        case CATENA_ATTR_STRING: return fmt::format("'{}'", def.v.s != nullptr ? def.v.s : "");
        case CATENA_ATTR_INTS:
            if (def.n == 0) return "None";
            if (def.n == 1) return std::to_string(def.v.ints[0]);
            return fmt::format("({})", fmt::join(std::span(def.v.ints, def.n), ", "));
        case CATENA_ATTR_DTYPE: return fmt::format("'{}'", name(def.v.dtype));
        default: return "None";
    }
}

// A function of a plugin. Used only with the interpreter's lock.
class PluginCallable final : public Callable {
public:
    // all_outputs: a call also returns the hidden outputs.
    PluginCallable(const catena_function& function, std::string_view short_name, bool all_outputs)
        : PluginCallable(function, order_of(function), short_name, all_outputs) {}

    const catena_function& function() const { return function_; }

    Owned call(std::span<PyObject* const> values) override {
        std::optional<using_device> scope;
        if (n_inputs_ == 0 && values.back() != nullptr && values.back() != Py_None)
            scope.emplace(device_from(values.back()));
        SmallVector<Variable, 6> made(n_inputs_);
        SmallVector<const Variable*, 12> inputs;
        std::int64_t elements = 0;
        inputs.resize(n_inputs_);
        Variables rest;
        for (std::size_t i = 0; i < n_inputs_; ++i) {
            PyObject* const value = values[order_[i]];
            if (i + 1 == n_inputs_ && variadic_) {
                rest = variables_of(value, what(i));
                inputs.resize(n_inputs_ - 1 + rest.size());
                for (std::size_t k = 0; k < rest.size(); ++k) {
                    if (!rest[k] && !has(function_.inputs[i]->flags, CATENA_PORT_OPTIONAL))
                        raise(PyExc_TypeError,
                              what(i) + ": expected variables or arrays, got None");
                    inputs[i + k] = &rest[k];
                    elements += size_of(rest[k]);
                }
            } else if (value == nullptr) {
                inputs[i] = nullptr;
            } else {
                if (is_variable(value)) inputs[i] = &present(value);
                else inputs[i] = &converted(value, made[i], i);
                elements += size_of(*inputs[i]);
            }
        }
        if (axis_ && is_empty_list(values[*axis_])) return wrap(functions::identity(*inputs[0]));
        const PluginFunction function = bind(values);
        std::optional<Dtype> result_dtype;
        if (mixing_ != Mixing::refused) result_dtype = promote(inputs, made, rest);
        const std::span<const Variable* const> all(inputs.data(), inputs.size());
        const bool unlock = elements >= worth_unlocking || elements == 0;
        for (std::size_t i = 0; unlock && i < n_inputs_ - (variadic_ ? 1 : 0); ++i) {
            if (inputs[i] == nullptr || inputs[i] == &made[i]) continue;
            made[i] = *inputs[i];  // others may replace the variable's array meanwhile
            inputs[i] = &made[i];
        }
        if (one_result_) {
            Variable result = [&] {
                const WithoutLockOn others(InUse::By::call, all, unlock);
                Variable y = function.first(all);
                return result_dtype ? cast_if_floating(y, *result_dtype) : y;
            }();
            return wrap(std::move(result));
        }
        Variables results = [&] {
            const WithoutLockOn others(InUse::By::call, all, unlock);
            return function(all);
        }();
        Variables visible;
        for (std::uint32_t i = 0; i < function_.n_outputs; ++i)
            if (is_visible(i)) visible.push_back(std::move(results[i]));
        return visible.size() == 1 ? wrap(std::move(visible[0])) : wrap_all(std::move(visible));
    }

private:
    // The parameters in the order of the call: required ones first, as in the C++ wrappers.
    struct Order {
        std::vector<Signature::Parameter> parameters;
        std::vector<std::size_t> place;  // of each input, then of each attribute
    };
    // A list of x is called xs.
    static std::string input_name(const catena_port_spec& port) {
        const bool list = has(port.flags, CATENA_PORT_VARIADIC) && std::strlen(port.name) == 1;
        return identifier(port.name) + (list ? "s" : "");
    }
    static Order order_of(const catena_function& f) {
        std::vector<Signature::Parameter> all;
        for (std::uint32_t i = 0; i < f.n_inputs; ++i)
            all.push_back({input_name(*f.inputs[i]),
                           has(f.inputs[i]->flags, CATENA_PORT_OPTIONAL) ? "None" : ""});
        for (std::uint32_t i = 0; i < f.n_attrs; ++i)
            all.push_back({identifier(f.attrs[i]->name), default_text(*f.attrs[i])});
        Order order;
        order.place.resize(all.size());
        for (const bool required : {true, false}) {
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (all[i].def.empty() != required) continue;
                order.place[i] = order.parameters.size();
                order.parameters.push_back(all[i]);
            }
        }
        if (f.n_inputs == 0) order.parameters.push_back({"device", "None"});
        return order;
    }
    PluginCallable(const catena_function& f, Order order, std::string_view short_name,
                   bool all_outputs)
        : Callable(Signature(identifier(short_name), std::move(order.parameters)), doc_of(f)),
          function_(f),
          all_outputs_(all_outputs),
          order_(std::move(order.place)),
          n_inputs_(f.n_inputs),
          variadic_(f.n_inputs > 0 && has(f.inputs[f.n_inputs - 1]->flags, CATENA_PORT_VARIADIC)) {
        std::size_t visible = 0;
        for (std::uint32_t i = 0; i < f.n_outputs; ++i) visible += is_visible(i) ? 1 : 0;
        one_result_ = visible == 1 && is_visible(0);
        std::vector<std::string_view> names;
        for (std::uint32_t i = 0; i < f.n_inputs; ++i) names.emplace_back(f.inputs[i]->name);
        if (one_result_ || all_outputs_) mixing_ = mixing_of(names);
        names.clear();
        for (std::uint32_t i = 0; i < f.n_attrs; ++i) names.emplace_back(f.attrs[i]->name);
        bound_.emplace(f.name, names);
        constexpr std::string_view reductions[] = {"catena.sum",     "catena.max",
                                                   "catena.min",     "catena.prod",
                                                   "catena.average", "catena.logsumexp"};
        if (std::ranges::find(reductions, f.name) != std::end(reductions))
            axis_ = order_[n_inputs_ + (std::ranges::find(names, "axis") - names.begin())];
    }
    bool is_visible(std::uint32_t output) const {
        return all_outputs_ || !has(function_.outputs[output]->flags, CATENA_PORT_HIDDEN);
    }
    static bool is_empty_list(PyObject* value) {
        return value != nullptr && (PyTuple_Check(value) != 0 || PyList_Check(value) != 0) &&
               PySequence_Size(value) == 0;
    }
    // Casts inputs of the first input's type variable that have different floating dtypes. Returns
    // the dtype that the result is cast to, if any.
    std::optional<Dtype> promote(SmallVector<const Variable*, 12>& inputs,
                                 SmallVector<Variable, 6>& made, Variables& rest) const {
        const std::string_view type = function_.inputs[0]->type_var;
        const std::size_t last = n_inputs_ - 1;
        SmallVector<const Variable*, 12> typed;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            typed.push_back(type == function_.inputs[std::min(i, last)]->type_var ? inputs[i]
                                                                                  : nullptr);
        const std::optional<Dtype> dtype =
            common_floating_dtype(std::span<const Variable* const>(typed.data(), typed.size()));
        if (!dtype) return {};
        const Dtype of_first = inputs[0]->dtype();
        for (std::size_t i = 0; i < typed.size(); ++i) {
            if (typed[i] == nullptr || !*typed[i]) continue;
            Variable& converted = variadic_ && i >= last ? rest[i - last] : made[i];
            converted = cast_if_floating(*typed[i], *dtype);
            inputs[i] = &converted;
        }
        return mixing_ == Mixing::of_x ? of_first : dtype;
    }

    static std::string doc_of(const catena_function& f) {
        std::string doc = f.doc != nullptr ? f.doc : "";
        const auto add = [&](const char* name, const char* text) {
            if (text != nullptr && *text != '\0')
                doc += fmt::format("\n    {}: {}", identifier(name), text);
        };
        doc += "\n";
        for (std::uint32_t i = 0; i < f.n_inputs; ++i)
            add(input_name(*f.inputs[i]).c_str(), f.inputs[i]->doc);
        for (std::uint32_t i = 0; i < f.n_attrs; ++i) add(f.attrs[i]->name, f.attrs[i]->doc);
        return doc + fmt::format("\nThe function {} of a plugin.", f.name);
    }

    std::string what(std::size_t input) const {
        return fmt::format("[{}] {}", signature().name(), input_name(*function_.inputs[input]));
    }
    const Variable& converted(PyObject* value, Variable& made, std::size_t input) const {
        if (value == Py_None && !has(function_.inputs[input]->flags, CATENA_PORT_OPTIONAL))
            raise(PyExc_TypeError, what(input) + ": expected a variable or an array, got None");
        return variable_of(value, made, what(input));
    }

    PluginFunction bind(std::span<PyObject* const> values) {
        const std::size_t n = function_.n_attrs;
        bool given = false, required = false;
        for (std::size_t i = 0; i < n; ++i) {
            PyObject* const value = values[order_[n_inputs_ + i]];
            given = given || (value != nullptr && value != Py_None);
            required = required || has(function_.attrs[i]->flags, CATENA_ATTR_REQUIRED);
        }
        if (!given && !required) {
            if (!plain_) plain_.emplace(function_.name);
            return *plain_;
        }
        SmallVector<AttributeView, 8> views;
        views.reserve(n);
        std::deque<std::vector<std::int64_t>> integers;  // views refer to their elements
        std::deque<std::vector<double>> reals;
        for (std::size_t i = 0; i < n; ++i) {
            const catena_attr_spec& spec = *function_.attrs[i];
            PyObject* const value = values[order_[n_inputs_ + i]];
            views.push_back(value == nullptr ||
                                    (value == Py_None && !has(spec.flags, CATENA_ATTR_REQUIRED))
                                ? default_view(spec)
                                : view_of(spec, value, integers, reals));
        }
        return (*bound_)(std::span<const AttributeView>(views.data(), views.size()));
    }

    static AttributeView default_view(const catena_attr_spec& spec) {
        const catena_value& def = spec.def;
        switch (spec.kind) {
            case CATENA_ATTR_INT: return def.v.i;
            case CATENA_ATTR_FLOAT: return def.v.f;
            case CATENA_ATTR_BOOL: return def.v.i != 0;
            case CATENA_ATTR_STRING: return std::string_view(def.v.s != nullptr ? def.v.s : "");
            case CATENA_ATTR_INTS: return Ints(std::span(def.v.ints, def.n));
            case CATENA_ATTR_FLOATS: return std::span(def.v.floats, def.n);
            default: break;
        }
        Dtype dtype = Dtype::float32;
        from_abi(def.v.dtype, dtype);
        return dtype;
    }

    AttributeView view_of(const catena_attr_spec& spec, PyObject* value,
                          std::deque<std::vector<std::int64_t>>& integers,
                          std::deque<std::vector<double>>& reals) const {
        const auto fail = [&](const char* expected) {
            raise(PyExc_TypeError, fmt::format("[{}] {}: expected {}, got {}", signature().name(),
                                               spec.name, expected, type_name(value)));
        };
        switch (spec.kind) {
            case CATENA_ATTR_INT:
                if (PyIndex_Check(value) == 0) fail("an integer");
                return integer_of(value);
            case CATENA_ATTR_FLOAT:
                if (!is_number(value)) fail("a number");
                return scalar_of(value).value();
            case CATENA_ATTR_BOOL: return truth_of(value);
            case CATENA_ATTR_STRING:
                if (PyUnicode_Check(value) == 0) fail("a str");
                return text_of(value);
            case CATENA_ATTR_INTS:
                if (value == Py_None) return Ints(std::span<const std::int64_t>());
                integers.push_back(
                    integers_of(value, fmt::format("[{}] {}", signature().name(), spec.name)));
                return Ints(integers.back());
            case CATENA_ATTR_FLOATS: {
                const auto number = [](PyObject* each) { return scalar_of(each).value(); };
                return std::span<const double>(reals.emplace_back(vector_of(value, number)));
            }
            default: break;
        }
        return dtype_from(value, fmt::format("[{}] {}", signature().name(), spec.name));
    }

    const catena_function& function_;
    bool all_outputs_;
    std::vector<std::size_t> order_;
    // Of reductions that return x for axis=(): that parameter. For plugins, no axes mean all.
    std::optional<std::size_t> axis_;
    std::size_t n_inputs_;
    bool variadic_;
    bool one_result_ = false;
    Mixing mixing_ = Mixing::refused;
    std::optional<PluginFunction> plain_;  // with the defaults of all attributes
    std::optional<BoundFunction> bound_;
};

// The function with this full name, made once.
template <bool all_outputs>
Owned plugin_function(PyObject*, PyObject* name) {
    static auto* const known = new std::map<std::string, PyObject*, std::less<>>();
    if (PyUnicode_Check(name) == 0)
        raise(PyExc_TypeError, "plugin_function() takes a str, got " + type_name(name));
    const std::string full(text_of(name));
    const auto found = known->find(full);
    if (found != known->end()) return Owned::borrow(found->second);
    const catena_function& function = function_descriptor(full);
    const std::string_view last = std::string_view(full).substr(full.rfind('.') + 1);
    auto* const callable = new PluginCallable(function, last, all_outputs);
    Owned made = python_function(*callable, "catena.functions");
    known->emplace(full, Owned::borrow(made.get()).release());
    return made;
}

// plugin_function_name(function): its full name; None if it is not one of plugin_function().
Owned plugin_function_name(PyObject*, PyObject* function) {
    const auto* const callable = dynamic_cast<PluginCallable*>(callable_of_function(function));
    return callable != nullptr ? python_text(callable->function().name) : none();
}

Owned plugin_function_names(PyObject*) {
    const std::vector<std::string> names = function_names();
    Owned list = checked(PyList_New(0));
    for (const std::string& each : names) {
        const catena_function& f = function_descriptor(each);
        bool hidden = has(f.flags, CATENA_FUNCTION_INTERNAL);
        for (std::uint32_t i = 0; i < f.n_inputs; ++i)
            hidden = hidden || has(f.inputs[i]->flags, CATENA_PORT_MUTATED);
        if (!hidden) checked(PyList_Append(list.get(), python_text(each).get()));
    }
    return list;
}

// name_here(name): the name of a function that has this name in other libraries; "" if there is none.
std::string name_here_of(PyObject*, PyObject* name) {
    return std::string(name_here(text_of(name)));
}

}  // namespace

void add_plugin_functions(PyObject* module) {
    add_functions(
        module,
        {method<name_here_of>("name_here"), method<plugin_function<true>>("_all_outputs"),
         method<plugin_function<false>>(
             "plugin_function",
             "plugin_function(name, /)\n--\n\n"
             "The function of a plugin by its full name, such as \"org.example.swish\"."),
         method<plugin_function_name>("_plugin_function_name"),
         method<plugin_function_names>("plugin_function_names",
                                       "The full names of all functions of the loaded plugins.")});
}

}  // namespace catena::python
