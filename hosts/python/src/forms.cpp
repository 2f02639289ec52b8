// catena._core.forms: functions of the host SDK that are compositions of plugin functions. The
// modules in catena/functions give them Chainer's places.
#include "forms.hpp"

namespace catena::python {
namespace {

namespace F = functions;
using Ints64 = std::vector<std::int64_t>;

template <class Call>
Variable of_two(const Term& a, const Term& b, const Call& call) {
    if (a.variable && b.variable) return call(*a.variable, *b.variable);
    if (a.variable) return call(*a.variable, *b.number);
    if (b.variable) return call(*a.number, *b.variable);
    raise(PyExc_TypeError, "expected a variable or an array as one of the operands, got numbers");
}

void add_shapes(Forms& forms) {
    forms("concat(xs, axis=1)", "Joins arrays along an axis.",
          [](const Variables& xs, std::int64_t axis) { return F::concat(xs, axis); });
    forms("stack(xs, axis=0)", "Joins arrays of one shape along a new axis.",
          [](const Variables& xs, int axis) { return F::stack(xs, axis); });
    forms("hstack(xs)", "Joins arrays along axis 1, or 1-d arrays along axis 0.",
          [](const Variables& xs) { return F::hstack(xs); });
    forms("vstack(xs)", "Joins arrays along axis 0; 1-d arrays become rows.",
          [](const Variables& xs) { return F::vstack(xs); });
    forms("dstack(xs)", "Joins arrays along axis 2.",
          [](const Variables& xs) { return F::dstack(xs); });
    forms("separate(x, axis=0)", "The parts along an axis, without that axis.",
          [](const Variable& x, int axis) { return F::separate(x, axis); });
}

}  // namespace

void add_forms(PyObject* module) {
    Owned forms_module = checked(PyModule_New("catena._core.forms"));
    Forms forms(forms_module.get(), "catena.functions");
    add_shapes(forms);
    checked(PyModule_AddObject(module, "forms", forms_module.get()));
    forms_module.release();
}

}  // namespace catena::python
