// Functions of the host SDK in Python: a signature as text and a C++ function.
#pragma once

#include "call.hpp"
#include "operators.hpp"
#include "promotion.hpp"

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

namespace catena::python {

// Converts an object to an argument of a C++ function; `type` is for type checkers. The result of
// `get` may refer to the object.
template <class T>
struct From;
template <>
struct From<Variable> {
    static constexpr std::string_view type = "ArrayLike";
    static Variable get(PyObject* object, std::string_view what) {
        Variable variable = variable_of(object, what);
        if (!variable)
            raise(PyExc_TypeError, std::string(what) + ": expected a variable or an array, got " +
                                       type_name(object));
        return variable;
    }
};
template <>
struct From<Variables> {
    static constexpr std::string_view type = "Sequence[ArrayLike] | ArrayLike";
    static Variables get(PyObject* object, std::string_view what) {
        Variables variables = variables_of(object, what);
        for (const Variable& variable : variables)
            if (!variable)
                raise(PyExc_TypeError,
                      std::string(what) + ": expected variables or arrays, got None");
        return variables;
    }
};
template <>
struct From<std::int64_t> {
    static constexpr std::string_view type = "int";
    static std::int64_t get(PyObject* object, std::string_view what) {
        if (PyIndex_Check(object) == 0)
            raise(PyExc_TypeError,
                  std::string(what) + ": expected an integer, got " + type_name(object));
        return integer_of(object);
    }
};
template <>
struct From<int> {
    static constexpr std::string_view type = "int";
    static int get(PyObject* object, std::string_view what) {
        return narrow(From<std::int64_t>::get(object, what), what);
    }
};
template <>
struct From<double> {
    static constexpr std::string_view type = "float";
    static double get(PyObject* object, std::string_view what) {
        if (!is_number(object))
            raise(PyExc_TypeError,
                  std::string(what) + ": expected a number, got " + type_name(object));
        return scalar_of(object).value();
    }
};
template <>
struct From<bool> {
    static constexpr std::string_view type = "bool";
    static bool get(PyObject* object, std::string_view) { return truth_of(object); }
};
template <>
struct From<std::string_view> {
    static constexpr std::string_view type = "str";
    static std::string_view get(PyObject* object, std::string_view what) {
        if (PyUnicode_Check(object) == 0)
            raise(PyExc_TypeError,
                  std::string(what) + ": expected a str, got " + type_name(object));
        return text_of(object);
    }
};
template <>
struct From<std::vector<std::int64_t>> {
    static constexpr std::string_view type = "int | Sequence[int]";
    static std::vector<std::int64_t> get(PyObject* object, std::string_view what) {
        return integers_of(object, what);
    }
};
template <>
struct From<Shape> {
    static constexpr std::string_view type = "int | Sequence[int]";
    static Shape get(PyObject* object, std::string_view what) { return shape_of(object, what); }
};
template <>
struct From<Scalar> {
    static constexpr std::string_view type = "float";
    static Scalar get(PyObject* object, std::string_view what) {
        if (!is_number(object))
            raise(PyExc_TypeError,
                  std::string(what) + ": expected a number, got " + type_name(object));
        return scalar_of(object);
    }
};
template <>
struct From<Dtype> {
    static constexpr std::string_view type = "Any";
    static Dtype get(PyObject* object, std::string_view what) { return dtype_from(object, what); }
};
template <>
struct From<Device> {
    static constexpr std::string_view type = "Any";
    static Device get(PyObject* object, std::string_view) {
        return object == Py_None ? Device() : device_from(object);
    }
};
template <>
struct From<PyObject*> {
    static constexpr std::string_view type = "Any";
    static PyObject* get(PyObject* object, std::string_view) { return object; }
};
template <class T>
struct From<std::optional<T>> {
    static constexpr std::string_view type = From<T>::type;
    static std::optional<T> get(PyObject* object, std::string_view what) {
        if (object == Py_None) return {};
        return From<T>::get(object, what);
    }
};

// Either a variable or a number.
struct Term {
    std::optional<Variable> variable;
    std::optional<Scalar> number;
};
template <>
struct From<Term> {
    static constexpr std::string_view type = "ArrayLike | float";
    static Term get(PyObject* object, std::string_view what) {
        if (!is_variable(object) && is_number(object)) return {{}, scalar_of(object)};
        return {From<Variable>::get(object, what), {}};
    }
};

// Calls a function that takes a number in place of one of two operands.
template <class Call>
Variable of_two(const Term& a, const Term& b, const Call& call) {
    if (a.variable && b.variable) return call(*a.variable, *b.variable);
    if (a.variable) return call(*a.variable, *b.number);
    if (b.variable) return call(*a.number, *b.variable);
    throw DtypeError("expected a variable or an array as one of the operands, got numbers");
}

// A list of axes, or all.
using Axes = std::optional<std::vector<std::int64_t>>;
inline Ints all_if_none(const Axes& axes) { return axes ? Ints(*axes) : Ints({}); }
inline Variable empty_if_none(const std::optional<Variable>& x) { return x ? *x : Variable(); }

// Converts the result to an object.
inline Owned to_object(Variable x) { return x ? wrap(std::move(x)) : Owned::borrow(Py_None); }
inline Owned to_object(Array x) { return wrap(as_variable(std::move(x))); }
inline Owned to_object(Variables xs) { return wrap_all(std::move(xs)); }
template <std::size_t n>
Owned to_object(std::array<Variable, n> xs) {
    return wrap_all({xs.begin(), xs.end()});
}
inline Owned to_object(double x) { return checked(PyFloat_FromDouble(x)); }
inline Owned to_object(Owned x) { return x; }

inline std::int64_t elements_of(const Variable& x) { return size_of(x); }
inline std::int64_t elements_of(const std::optional<Variable>& x) { return x ? size_of(*x) : 0; }
inline std::int64_t elements_of(const Term& x) { return elements_of(x.variable); }
inline std::int64_t elements_of(const Variables& xs) {
    std::int64_t n = 0;
    for (const Variable& x : xs) n += size_of(x);
    return n;
}
std::int64_t elements_of(const auto&) { return 0; }

// Collects the variables of an argument.
inline void collect(Variable& x, std::vector<Variable*>& all) { all.push_back(&x); }
inline void collect(Variables& xs, std::vector<Variable*>& all) {
    for (Variable& x : xs) all.push_back(&x);
}
inline void collect(std::optional<Variable>& x, std::vector<Variable*>& all) {
    if (x) all.push_back(&*x);
}
void collect(auto&, std::vector<Variable*>&) {}

// The type of a result for type checkers.
template <class R>
constexpr std::string_view result_type() {
    if constexpr (std::is_same_v<R, Owned>) return "Any";
    else if constexpr (std::is_same_v<R, double>) return "float";
    else if constexpr (std::is_same_v<R, Variable> || std::is_same_v<R, Array>) return "Variable";
    else return "tuple[Variable, ...]";
}

template <class Function, class R, class... A>
class Form final : public Callable {
public:
    Form(Signature text, std::string doc, Function function)
        : Callable(std::move(text), std::move(doc)), function_(std::move(function)) {
        if (signature().size() != sizeof...(A))
            throw InternalError("[" + signature().text() + "] parameters: expected " +
                                std::to_string(sizeof...(A)));
        for (std::size_t i = 0; i < sizeof...(A); ++i)
            names_[i] = '[' + signature().name() + "] " + signature()[i].name;
        std::vector<std::string_view> parameters;
        for (std::size_t i = 0; i < sizeof...(A); ++i) parameters.push_back(signature()[i].name);
        mixing_ = mixing_of(parameters);
    }

    Owned call(std::span<PyObject* const> values) override {
        return call(values, std::index_sequence_for<A...>());
    }
    // "def concat(xs: ..., axis: int = 1) -> Variable: ..."
    std::string stub() const override {
        constexpr std::string_view types[] = {From<A>::type..., ""};
        std::string text;
        for (std::size_t i = 0; i < sizeof...(A); ++i) {
            const Signature::Parameter& parameter = signature()[i];
            text += (i == 0 ? "" : ", ") + parameter.name + ": " + std::string(types[i]);
            if (parameter.def == "None" && types[i] != "Any") text += " | None";
            if (!parameter.def.empty()) text += " = " + parameter.def;
        }
        return "def " + signature().name() + '(' + text + ") -> " + std::string(result_type<R>()) +
               ": ...\n";
    }

private:
    template <std::size_t... i>
    Owned call(std::span<PyObject* const> values, std::index_sequence<i...>) {
        const auto value = [&](std::size_t k) {
            return values[k] != nullptr ? values[k] : signature().default_of(k);
        };
        std::tuple<A...> arguments{From<A>::get(value(i), names_[i])...};
        const std::int64_t elements = (elements_of(std::get<i>(arguments)) + ... + 0);
        constexpr bool needs_lock = (std::is_same_v<A, PyObject*> || ...);
        const bool unlock = !needs_lock && elements >= worth_unlocking;
        std::vector<Variable*> inputs;
        if (unlock || mixing_ != Mixing::refused) (collect(std::get<i>(arguments), inputs), ...);
        auto result = [&] {
            std::vector<const Variable*> used(inputs.begin(), inputs.end());
            const auto add_term = [&](const auto& argument) {
                if constexpr (std::is_same_v<std::remove_cvref_t<decltype(argument)>, Term>)
                    if (argument.variable) used.push_back(&*argument.variable);
            };
            (add_term(std::get<i>(arguments)), ...);
            const WithoutLockOn others(InUse::By::call, used, unlock);
            return promoted_call(mixing_, inputs, [&] { return std::apply(function_, arguments); });
        }();
        return to_object(std::move(result));
    }

    Function function_;
    Mixing mixing_;
    std::array<std::string, sizeof...(A)> names_;  // "[concat] xs", for errors
};

// Collects functions: forms("concat(xs, axis=1)", "What it does.", function). The function's
// parameters are values or references of the types above. It runs without the interpreter's lock
// unless one of them is a PyObject*.
class Forms {
public:
    explicit Forms(PyObject* module, const char* name) : module_(module), name_(name) {}
    template <class Function>
    Forms& operator()(const char* signature, const char* doc, Function function) {
        add(make(Signature(signature), doc, std::move(function), &Function::operator()));
        return *this;
    }

    // The stubs of all functions.
    std::string stubs() const {
        std::string text;
        for (const auto& [name, stub] : stubs_) text += stub;
        return text;
    }

private:
    template <class Function, class R, class... A>
    static std::unique_ptr<Callable> make(Signature signature, std::string doc, Function function,
                                          R (Function::*)(A...) const) {
        return std::make_unique<Form<Function, R, std::remove_cvref_t<A>...>>(
            std::move(signature), std::move(doc), std::move(function));
    }
    void add(std::unique_ptr<Callable> callable) {
        Callable& kept = *callable.release();  // lives as long as the module
        stubs_[kept.signature().name()] = kept.stub();
        const Owned function = python_function(kept, name_);
        checked(PyObject_SetAttrString(module_, kept.signature().name().c_str(), function.get()));
    }

    PyObject* module_;
    const char* name_;
    std::map<std::string, std::string> stubs_;
};

// The parts of catena._core.forms.
void add_shape_forms(Forms& forms);
void add_math_forms(Forms& forms);
void add_layer_forms(Forms& forms);
void add_creation_forms(Forms& forms);

void add_forms(PyObject* module);

}  // namespace catena::python
