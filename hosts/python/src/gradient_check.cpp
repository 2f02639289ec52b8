// Numerical gradients of functions that Python defines.
#include "array.hpp"
#include "parts.hpp"

#include <catena/gradient_check.hpp>

namespace catena::python {
namespace {

Owned py_numerical_grad(PyObject*, PyObject* function, PyObject* inputs, PyObject* grad_outputs,
                        PyObject* eps, PyObject* detect, PyObject* atol, PyObject* rtol) {
    constexpr std::string_view what = "[numerical_grad] arrays";
    const auto f = [&] { return arrays_of(checked(PyObject_CallNoArgs(function)).get(), what); };
    try {
        const Arrays gradients = gradient_check::numerical_grad(
            f, arrays_of(inputs, what), arrays_of(grad_outputs, what),
            {.eps = scalar_of(eps).value(),
             .detect_nondifferentiable = truth_of(detect),
             .diff_atol = scalar_of(atol).value(),
             .diff_rtol = scalar_of(rtol).value()});
        return tuple_of(gradients.size(), [&](std::size_t i) { return wrap(gradients[i]); });
    } catch (const gradient_check::NondifferentiableError& error) {
        const Owned module = checked(PyImport_ImportModule("catena.gradient_check"));
        raise(checked(PyObject_GetAttrString(module.get(), "NondifferentiableError")).get(),
              error.what());
    }
}

}  // namespace

void add_gradient_check(PyObject* module) {
    add_functions(
        module,
        {method<py_numerical_grad>(
            "numerical_grad",
            "numerical_grad(f, inputs, grad_outputs, eps, detect, diff_atol, diff_rtol, /)\n--\n\n"
            "The gradients of f(), which reads the arrays, by finite differences.")});
}

}  // namespace catena::python
