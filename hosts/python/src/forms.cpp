// catena._core.forms: functions with Chainer's arguments that no single function of a plugin takes. The
// modules in catena/functions give them their places.
#include "call.hpp"
#include "operators.hpp"
#include "parts.hpp"

#include <catena/function_forms.hpp>

#include <variant>

namespace catena::python {
namespace {

namespace F = functions;
using Term = std::variant<Variable, Scalar>;

// The arguments of a call. names: "[concat] xs", for errors.
class Arguments {
public:
    Arguments(const Signature& signature, std::span<const std::string> names,
              std::span<PyObject* const> values)
        : signature_(signature), names_(names), values_(values) {}

    PyObject* operator[](std::size_t i) const {
        return values_[i] != nullptr ? values_[i] : signature_.default_of(i);
    }
    bool has(std::size_t i) const { return (*this)[i] != Py_None; }
    Variable variable(std::size_t i) const {
        if (is_variable((*this)[i])) return present((*this)[i]);
        expect(has(i), what(i), "a variable or an array", Py_None);
        return variable_of((*this)[i], what(i));
    }
    Variables variables(std::size_t i) const {
        Variables variables = variables_of((*this)[i], what(i));
        for (const Variable& variable : variables)
            if (!variable)
                raise(PyExc_TypeError, what(i) + ": expected variables or arrays, got None");
        return variables;
    }
    int integer(std::size_t i) const {
        expect(PyIndex_Check((*this)[i]) != 0, what(i), "an integer", (*this)[i]);
        return narrow(integer_of((*this)[i]), what(i));
    }
    Scalar number(std::size_t i) const {
        expect(is_number((*this)[i]), what(i), "a number", (*this)[i]);
        return scalar_of((*this)[i]);
    }
    Term term(std::size_t i) const {
        if (!is_variable((*this)[i]) && is_number((*this)[i])) return scalar_of((*this)[i]);
        return variable(i);
    }
    Shape shape(std::size_t i) const { return shape_of((*this)[i], what(i)); }
    Dtype dtype(std::size_t i) const { return dtype_from((*this)[i], what(i)); }
    Device device(std::size_t i) const { return has(i) ? device_from((*this)[i]) : Device(); }
    const std::string& what(std::size_t i) const { return names_[i]; }

private:
    const Signature& signature_;
    std::span<const std::string> names_;
    std::span<PyObject* const> values_;
};

using Body = Owned (*)(const Arguments&);

class Form final : public Callable {
public:
    Form(const char* signature, const char* doc, Body body)
        : Callable(Signature(signature), doc), body_(body) {
        for (std::size_t i = 0; i < this->signature().size(); ++i)
            names_.push_back('[' + this->signature().name() + "] " + this->signature()[i].name);
    }
    Owned call(std::span<PyObject* const> values) override {
        return body_({signature(), names_, values});
    }

private:
    Body body_;
    std::vector<std::string> names_;
};

// Returns call(), which uses these variables, without the interpreter's lock if that is worth it.
template <class Call>
auto unlocked(std::initializer_list<const Variable*> used, const Call& call) {
    std::int64_t elements = 0;
    for (const Variable* x : used) elements += x != nullptr ? size_of(*x) : 0;
    const WithoutLockOn others(InUse::By::call, std::span(used.begin(), used.size()),
                               elements >= worth_unlocking);
    return call();
}

// Returns call(x, y) for two operands, one of which may be a number.
template <class Call>
auto of_two(const Term& x, const Term& y, const Call& call) {
    return std::visit(
        [&](const auto& a, const auto& b) -> decltype(call(Variable(), Variable())) {
            if constexpr (std::is_same_v<decltype(a), decltype(b)> &&
                          std::is_same_v<decltype(a), const Scalar&>)
                throw DtypeError(
                    "expected a variable or an array as one of the operands, got numbers");
            else return call(a, b);
        },
        x, y);
}
template <class Op>
Owned operation(const Arguments& of) {
    const Term x = of.term(0), y = of.term(1);
    return of_two(x, y,
                  [](const auto& a, const auto& b) { return Owned(operate<Variable, Op>(a, b)); });
}

Owned where(const Arguments& of) {
    const Term given = of.term(0), x = of.term(1), y = of.term(2);
    const Variable* const other =
        std::get_if<Variable>(std::holds_alternative<Variable>(x) ? &x : &y);
    const auto* const number = std::get_if<Scalar>(&given);
    const Variable condition =
        number == nullptr ? std::get<Variable>(given)
                          : as_variable(Array::full({}, number->value() != 0, Dtype::bool8,
                                                    other != nullptr ? other->device() : Device()));
    return of_two(x, y, [&](const auto& a, const auto& b) {
        return wrap(unlocked({&condition, variable_in(a), variable_in(b)},
                             [&] { return F::where(condition, a, b); }));
    });
}

// An index along an axis, or of the flattened array: int32, as in Chainer.
template <bool largest>
Owned place_of_extreme(const Arguments& of) {
    const Variable x = of.variable(0);
    const Ints axes = of.has(1) ? Ints(of.integer(1)) : Ints({});
    const bool keepdims = truth_of(of[2]);
    return wrap(unlocked({&x}, [&] {
        return F::cast(largest ? F::argmax(x, axes, keepdims) : F::argmin(x, axes, keepdims),
                       Dtype::int32);
    }));
}

Owned split_axis(const Arguments& of) {
    const Variable x = of.variable(0);
    const int axis = of.integer(2);
    const bool sections = PyIndex_Check(of[1]) != 0 && PySequence_Check(of[1]) == 0;
    const std::vector<std::int64_t> numbers = integers_of(of[1], of.what(1));
    Variables parts =
        sections ? F::split_axis(x, numbers[0], axis) : F::split_axis(x, numbers, axis);
    return parts.size() == 1 && !truth_of(of[3]) ? wrap(parts[0]) : wrap_all(std::move(parts));
}

Owned copy(const Arguments& of) {
    const Variable x = of.variable(0);
    if (PyLong_Check(of[1]) == 0) {
        const Device device = device_from(of[1]);
        return wrap(unlocked({&x}, [&] { return F::copy(x, device); }));
    }
    const int gpu = of.integer(1);
    return wrap(unlocked({&x}, [&] { return F::copy(x, gpu); }));
}

Owned scatter_add(const Arguments& of) {
    Variable a = of.variable(0), b = of.variable(2);
    promote(a, b);
    const Array all = F::arange(a.size(), {}, a.device()).reshape(a.shape());
    const Array places = subscript(all, of[1]);
    const Variable flat =
        F::index_add(F::flatten(a), 0, as_variable(places.reshape({places.size()})),
                     F::flatten(F::broadcast_to(b, places.shape())));
    return wrap(F::reshape(flat, a.shape()));
}

Owned arange(const Arguments& of) {
    Scalar start = of.number(0), stop = start;
    if (of.has(1)) stop = of.number(1);
    else start = stop.is_integer() ? Scalar(0) : Scalar(0.0);
    const Scalar step = of.number(2);
    const std::optional<Dtype> dtype = of.has(3) ? std::optional(of.dtype(3)) : std::nullopt;
    return wrap(as_variable(F::arange(start, stop, step, dtype, of.device(4))));
}

Owned full_like(const Arguments& of) {
    const Variable x = of.variable(0);
    const Scalar value = of.number(1);
    const Dtype dtype = of.has(2) ? of.dtype(2) : x.dtype();
    return wrap(as_variable(array_of_number(x.shape(), value, dtype, x.device())));
}

}  // namespace

void add_forms(PyObject* module) {
    Owned forms_module = checked(PyModule_New("catena._core.forms"));
    const auto add = [&](const char* signature, const char* doc, Body body) {
        Callable& form = *new Form(signature, doc, body);  // lives as long as the module
        checked(PyObject_SetAttrString(forms_module.get(), form.signature().name().c_str(),
                                       python_function(form, "catena.functions").get()));
    };
    add("maximum(x1, x2)", "The larger of two elements.", operation<Maximum>);
    add("minimum(x1, x2)", "The smaller of two elements.", operation<Minimum>);
    add("equal(x0, x1)", "x0 == x1, as bool.", operation<Equal>);
    add("not_equal(x0, x1)", "x0 != x1, as bool.", operation<NotEqual>);
    add("greater(x0, x1)", "x0 > x1, as bool.", operation<Greater>);
    add("greater_equal(x0, x1)", "x0 >= x1, as bool.", operation<GreaterEqual>);
    add("less(x0, x1)", "x0 < x1, as bool.", operation<Less>);
    add("less_equal(x0, x1)", "x0 <= x1, as bool.", operation<LessEqual>);
    add("pow(x0, x1)", "x0 to the power of x1.", operation<Power>);
    add("where(condition, x, y)", "x where the condition is not 0, else y.", where);
    add("argmax(x, axis=None, keepdims=False)",
        "The index of the largest element along an axis, or of the flattened array.",
        place_of_extreme<true>);
    add("argmin(x, axis=None, keepdims=False)",
        "The index of the smallest element along an axis, or of the flattened array.",
        place_of_extreme<false>);
    add("separate(x, axis=0)", "The parts along an axis, without that axis.",
        [](const Arguments& of) {
            const Variable x = of.variable(0);
            const int axis = of.integer(1);
            return wrap_all(unlocked({&x}, [&] { return F::separate(x, axis); }));
        });
    add("split_axis(x, indices_or_sections, axis, force_tuple=True)",
        "Splits an array along an axis: into a number of equal sections, or before each of the\n"
        "indices. A tuple; without force_tuple, a single section is a variable.",
        split_axis);
    add("_broadcast(xs)", "Repeats arrays to the shape to which all broadcast.",
        [](const Arguments& of) { return wrap_all(F::broadcast(of.variables(0))); });
    add("copy(x, dst)",
        "A copy on a device: a ``catena.Device``, its name, or the number of a GPU; -1 is the "
        "host.",
        copy);
    add("get_item(x, slices)", "x[slices], with the keys of NumPy.",
        [](const Arguments& of) { return wrap(subscript(of.variable(0), of[1])); });
    add("set_item(x, slices, value)",
        "x, but with x[slices] replaced by a value, which broadcasts.", [](const Arguments& of) {
            const Variable x = of.variable(0), value = of.variable(2);
            return wrap(F::set_item(x, indices_of(of[1]), value));
        });
    add("nonzero(x)", "The indices of the elements that are not 0: int64, (n, ndim).",
        [](const Arguments& of) {
            const Variable x = of.variable(0);
            return wrap(as_variable(unlocked({&x}, [&] { return F::nonzero(x.data()); })));
        });
    add("scatter_add(a, slices, b)", "a, but with b, which broadcasts, added to a[slices].",
        scatter_add);
    add("full(shape, value, dtype='float32', device=None)", "An array of one value.",
        [](const Arguments& of) {
            const Shape shape = of.shape(0);
            const Scalar value = of.number(1);
            const Dtype dtype = of.dtype(2);
            return wrap(as_variable(array_of_number(shape, value, dtype, of.device(3))));
        });
    add("arange(start, stop=None, step=1, dtype=None, device=None)",
        "start, start + step, ... below stop; with one number, from 0 to it.", arange);
    add("full_like(x, value, dtype=None)", "An array of one value, in the shape of x.", full_like);
    checked(PyModule_AddObject(module, "forms", forms_module.get()));
    forms_module.release();
}

}  // namespace catena::python
