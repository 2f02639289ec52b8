// Numerical gradients of functions that Python defines.
#include "settings.hpp"

#include <catena/gradient_check.hpp>

namespace catena::python {
namespace {

Arrays arrays_of(PyObject* object) {
    const Owned list = elements_in(object, "[numerical_grad] arrays", "a sequence");
    Arrays arrays;
    for (Py_ssize_t i = 0; i < PyTuple_Size(list.get()); ++i) {
        PyObject* const array = PyTuple_GetItem(list.get(), i);
        arrays.push_back(array == Py_None ? Array() : array_of(array, "[numerical_grad] arrays"));
    }
    return arrays;
}

PyObject* py_numerical_grad(PyObject*, PyObject* const* args, Py_ssize_t) {
    return guarded([&] {
        const auto number = [&](int i) {
            const double value = PyFloat_AsDouble(args[i]);
            if (PyErr_Occurred() != nullptr) throw PythonError();
            return value;
        };
        const auto f = [&] {
            return arrays_of(checked(PyObject_CallFunctionObjArgs(args[0], nullptr)).get());
        };
        try {
            const Arrays gradients =
                gradient_check::numerical_grad(f, arrays_of(args[1]), arrays_of(args[2]),
                                               {.eps = number(3),
                                                .detect_nondifferentiable = truth_of(args[4]),
                                                .diff_atol = number(5),
                                                .diff_rtol = number(6)});
            return tuple_of(gradients.size(), [&](std::size_t i) { return wrap(gradients[i]); })
                .release();
        } catch (const gradient_check::NondifferentiableError& error) {
            const Owned module = checked(PyImport_ImportModule("catena.gradient_check"));
            raise(checked(PyObject_GetAttrString(module.get(), "NondifferentiableError")).get(),
                  error.what());
        }
    });
}

}  // namespace

void add_gradient_check(PyObject* module) {
    static PyMethodDef functions[] = {
        fast<py_numerical_grad, 7>(
            "numerical_grad",
            "numerical_grad(f, inputs, grad_outputs, eps, detect, diff_atol, diff_rtol, /)\n--\n\n"
            "The gradients of f(), which reads the arrays, by finite differences."),
        {nullptr, nullptr, 0, nullptr}};
    checked(PyModule_AddFunctions(module, functions));
}

}  // namespace catena::python
