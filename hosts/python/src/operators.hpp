// Operators of Python on variables and arrays, as slots of their types.
#pragma once

#include "promotion.hpp"
#include "variable.hpp"

#include <functional>

namespace catena::python {

Device host_device();

// Whether the work of a call with this many elements is worth giving the interpreter's lock back.
constexpr std::int64_t worth_unlocking = 2048;

inline std::int64_t size_of(const Variable& x) { return x ? x.size() : 0; }
inline std::int64_t size_of(const Array& x) { return x ? x.size() : 0; }
inline std::int64_t size_of(const Scalar&) { return 0; }
inline const Variable* variable_in(const Variable& x) { return &x; }
const Variable* variable_in(const auto&) { return nullptr; }

template <class X>
struct Operand;
template <>
struct Operand<Variable> {
    static const Variable* exact(PyObject* object) {
        return is_variable(object) ? &present(object) : nullptr;
    }
    static Variable converted(PyObject* object, const Variable& other, bool keep = false) {
        return as_variable(operand_of(object, other.dtype(), keep));
    }
    static Owned result(Variable x) { return wrap(std::move(x)); }
    static Owned result(Array mask) { return wrap(as_variable(std::move(mask))); }
    static bool other_is_ours(PyObject*) { return false; }
};
template <>
struct Operand<Array> {
    static const Array* exact(PyObject* object) {
        return is_array(object) ? &held<Array>(object) : nullptr;
    }
    static Array converted(PyObject* object, const Array&, bool = false) {
        return array_of(object, "[operator] operand");
    }
    static Owned result(Array x) { return wrap(std::move(x)); }
    static bool other_is_ours(PyObject* object) { return is_variable(object); }
};

// Returns Op()(a, b) for Python.
template <class X, class Op>
PyObject* operate(const auto& a, const auto& b) {
    auto result = [&] {
        if (size_of(a) + size_of(b) < worth_unlocking) return Op()(a, b);
        const auto x0 = a;  // others may replace the operands meanwhile
        const auto x1 = b;
        const Variable* const used[] = {variable_in(x0), variable_in(x1)};
        const WithoutLockOn others(InUse::By::call, used);
        return Op()(x0, x1);
    }();
    return Operand<X>::result(std::move(result)).release();
}
template <class X, class Op>
PyObject* binary(PyObject* left, PyObject* right) noexcept {
    return guarded([&]() -> PyObject* {
        const X* const a = Operand<X>::exact(left);
        const X* const b = Operand<X>::exact(right);
        if (a != nullptr && b != nullptr) return operate<X, Op>(*a, *b);
        PyObject* const other = a != nullptr ? right : left;
        if (!Operand<X>::other_is_ours(other)) {
            if (is_number(other)) {
                if constexpr (Op::takes_numbers) {
                    const Scalar c = scalar_of(other);
                    return a != nullptr ? operate<X, Op>(*a, c) : operate<X, Op>(c, *b);
                }
            } else if (is_array_like(other)) {
                const X converted = Operand<X>::converted(
                    other, a != nullptr ? *a : *b, requires { Op::promotes; });
                return a != nullptr ? operate<X, Op>(*a, converted) : operate<X, Op>(converted, *b);
            }
        }
        return ask_the_other();
    });
}

#define CATENA_OPERATION(NAME, EXPRESSION, NUMBERS)                                \
    struct NAME {                                                                  \
        static constexpr bool takes_numbers = NUMBERS;                             \
        auto operator()(const auto& a, const auto& b) const { return EXPRESSION; } \
    };
CATENA_OPERATION(Add, a + b, true)
CATENA_OPERATION(Subtract, a - b, true)
CATENA_OPERATION(Multiply, a* b, true)
CATENA_OPERATION(Divide, a / b, true)
CATENA_OPERATION(Power, pow(a, b), true)
CATENA_OPERATION(FloorDivide, floor_divide(a, b), true)
CATENA_OPERATION(And, a& b, false)
CATENA_OPERATION(Or, a | b, false)
CATENA_OPERATION(Equal, functions::equal(a, b), true)
CATENA_OPERATION(NotEqual, functions::not_equal(a, b), true)
CATENA_OPERATION(Less, functions::less(a, b), true)
CATENA_OPERATION(LessEqual, functions::less_equal(a, b), true)
CATENA_OPERATION(Greater, functions::greater(a, b), true)
CATENA_OPERATION(GreaterEqual, functions::greater_equal(a, b), true)
CATENA_OPERATION(Maximum, functions::maximum(a, b), true)
CATENA_OPERATION(Minimum, functions::minimum(a, b), true)
#undef CATENA_OPERATION

// A product of different floating dtypes, as F.matmul().
struct Dot {
    static constexpr bool takes_numbers = false;
    static constexpr bool promotes = true;
    Variable operator()(Variable a, Variable b) const {
        promote(a, b);
        return dot(a, b);
    }
    Array operator()(const Array& a, const Array& b) const {
        return (*this)(as_variable(a), as_variable(b)).data();
    }
};

template <class X, class Op>
PyObject* in_place(PyObject* left, PyObject* right) noexcept {
    return guarded([&]() -> PyObject* {
        const X& x = *Operand<X>::exact(left);
        if (is_number(right)) Op()(x, scalar_of(right));
        else Op()(x, Operand<X>::converted(right, x));
        Py_INCREF(left);
        return left;
    });
}
#define CATENA_IN_PLACE(NAME, OPERATOR)                                       \
    struct NAME {                                                             \
        void operator()(const auto& a, const auto& b) const { a OPERATOR b; } \
    };
CATENA_IN_PLACE(AddTo, +=)
CATENA_IN_PLACE(SubtractFrom, -=)
CATENA_IN_PLACE(MultiplyBy, *=)
CATENA_IN_PLACE(DivideBy, /=)
#undef CATENA_IN_PLACE

template <class X>
PyObject* power(PyObject* left, PyObject* right, PyObject* modulus) noexcept {
    return modulus == Py_None ? binary<X, Power>(left, right) : ask_the_other();
}
template <class X, class Op>
PyObject* unary(PyObject* self) noexcept {
    return guarded([&] {
        const X& x = *Operand<X>::exact(self);
        return Operand<X>::result(Op()(x)).release();
    });
}
inline PyObject* same(PyObject* self) noexcept {
    Py_INCREF(self);
    return self;
}
struct Absolute {
    auto operator()(const auto& x) const { return functions::abs(x); }
};

template <class X>
PyObject* compare(PyObject* left, PyObject* right, int operation) noexcept {
    switch (operation) {
        case Py_LT: return binary<X, Less>(left, right);
        case Py_LE: return binary<X, LessEqual>(left, right);
        case Py_GT: return binary<X, Greater>(left, right);
        case Py_GE: return binary<X, GreaterEqual>(left, right);
        case Py_EQ: return binary<X, Equal>(left, right);
        default: return binary<X, NotEqual>(left, right);
    }
}

// The only element as a Python number. Raises ValueError if there are several.
Owned item(const Array& array);
inline Owned item(const Variable& variable) { return item(variable.data()); }
template <class X>
int truth(PyObject* self) noexcept {
    return guarded([&] {
        const X& x = *Operand<X>::exact(self);
        if (x && x.size() != 1)
            raise(PyExc_ValueError, "the truth value of " + std::to_string(x.size()) +
                                        " elements is ambiguous: use F.any(x) or F.all(x)");
        return truth_of(item(x).get()) ? 1 : 0;
    });
}
template <class X, PyObject* (*convert)(PyObject*)>
PyObject* number(PyObject* self) noexcept {
    return guarded(
        [&] { return checked(convert(item(*Operand<X>::exact(self)).get())).release(); });
}

// The length of the first axis.
inline Py_ssize_t length(const auto& x) {
    if (x.ndim() == 0) raise(PyExc_TypeError, "len() of a 0-d array");
    return x.shape()[0];
}
// x[key] with NumPy's keys: numbers, slices, None, ..., lists and arrays of integers or bool. Raises
// IndexError for keys that do not fit x.
Variable subscript(const Variable& x, PyObject* key);
Array subscript(const Array& x, PyObject* key);
void assign(const Array& x, PyObject* key, PyObject* value);  // x[key] = value
std::vector<Index> indices_of(PyObject* key);

template <class X>
std::vector<PyType_Slot> number_slots() {
    return {slot(Py_nb_add, binary<X, Add>),
            slot(Py_nb_subtract, binary<X, Subtract>),
            slot(Py_nb_multiply, binary<X, Multiply>),
            slot(Py_nb_true_divide, binary<X, Divide>),
            slot(Py_nb_floor_divide, binary<X, FloorDivide>),
            slot(Py_nb_matrix_multiply, binary<X, Dot>),
            slot(Py_nb_and, binary<X, And>),
            slot(Py_nb_or, binary<X, Or>),
            slot(Py_nb_power, power<X>),
            slot(Py_nb_negative, unary<X, std::negate<>>),
            slot(Py_nb_positive, same),
            slot(Py_nb_absolute, unary<X, Absolute>),
            slot(Py_nb_invert, unary<X, std::bit_not<>>),
            slot(Py_nb_bool, truth<X>),
            slot(Py_nb_float, number<X, PyNumber_Float>),
            slot(Py_nb_int, number<X, PyNumber_Long>),
            slot(Py_tp_richcompare, compare<X>)};
}

}  // namespace catena::python
