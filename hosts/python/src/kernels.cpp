// Kernels from formulas that Python gives at run time.
#include "numpy.hpp"
#include "operators.hpp"
#include "parts.hpp"

#include <catena/elementwise.hpp>
#include <catena/reduction.hpp>

namespace catena::python {
namespace {

PyTypeObject* kernel_type = nullptr;

struct AnyKernel : FormulaKernel {
    template <class... A>
    explicit AnyKernel(const A&... arguments) : FormulaKernel(arguments...) {}
};

Owned wrapped(const FormulaKernel& kernel) { return hold(kernel_type, kernel); }

// elementwise_kernel(inputs, outputs, operation, name, preamble, loop_prep, after_loop, options,
//                    keep)
Owned elementwise_kernel(PyObject*, PyObject* args) {
    const char *in, *out, *operation, *name, *preamble, *loop_prep, *after_loop;
    PyObject* list = nullptr;
    int keep = 0;
    parse(args, "sssssssOp:elementwise_kernel", &in, &out, &operation, &name, &preamble, &loop_prep,
          &after_loop, &list, &keep);
    return wrapped(
        AnyKernel(in, out, operation, name,
                  ElementwiseOptions{preamble, loop_prep, after_loop, texts_of(list), keep != 0}));
}
// reduction_kernel(inputs, outputs, map, reduce, finish, identity, name, reduce_type, preamble,
//                  options, keep)
Owned reduction_kernel(PyObject*, PyObject* args) {
    const char *in, *out, *map, *reduce, *finish, *identity, *name, *type, *preamble;
    PyObject* list = nullptr;
    int keep = 0;
    parse(args, "sssssssssOp:reduction_kernel", &in, &out, &map, &reduce, &finish, &identity, &name,
          &type, &preamble, &list, &keep);
    return wrapped(AnyKernel(in, out, map, reduce, finish, identity, name,
                             ReductionOptions{type, preamble, texts_of(list), keep != 0}));
}
// reduce_kernel(arguments, map, reduce, neutral, name, dtype, preamble, options, keep): Chainer 1's
Owned reduce_kernel(PyObject*, PyObject* args) {
    const char *in, *map, *combine, *neutral, *name, *preamble;
    PyObject *dtype = nullptr, *list = nullptr;
    int keep = 0;
    parse(args, "sssssOsOp:reduce_kernel", &in, &map, &combine, &neutral, &name, &dtype, &preamble,
          &list, &keep);
    return wrapped(reduce(in, map, combine, neutral, name, dtype_from(dtype, "[reduce] dtype_out"),
                          ReductionOptions{{}, preamble, texts_of(list), keep != 0}));
}

// Python's numbers and NumPy's scalars. 0-d arrays are arrays.
bool is_scalar(PyObject* object) {
    return PyFloat_Check(object) || PyLong_Check(object) || is_numpy_scalar(object);
}
KernelArgument number_argument(PyObject* object) {
    if (PyBool_Check(object) != 0) return object == Py_True;
    const Scalar number = scalar_of(object);
    if (number.is_integer()) return number.integer();
    return number.value();
}

// call(arguments, size, axes, keepdims): size and axes may be None. Returns a tuple of the outputs.
Owned kernel_call(PyObject* self, PyObject* objects, PyObject* size, PyObject* axis,
                  PyObject* keepdims) {
    const FormulaKernel& kernel = held<FormulaKernel>(self);
    const std::string what = '[' + kernel.name() + "] argument";
    const Owned given = checked(PySequence_Tuple(objects));
    const auto count = static_cast<std::size_t>(PyTuple_Size(given.get()));
    std::vector<Array> arrays;
    arrays.reserve(count);  // arguments refer to its elements
    std::vector<KernelArgument> arguments;
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < count; ++i) {
        PyObject* const each = PyTuple_GetItem(given.get(), static_cast<Py_ssize_t>(i));
        if (is_scalar(each)) {
            arguments.push_back(number_argument(each));
            continue;
        }
        arrays.push_back(array_of(each, what));
        elements += size_of(arrays.back());
        arguments.push_back(arrays.back());
    }
    const over range(size == Py_None ? Shape() : shape_of(size, "[kernel] size"));
    if (size != Py_None) arguments.push_back(range);
    std::vector<int> axes;
    if (axis != Py_None)
        for (const std::int64_t each : integers_of(axis, "[kernel] axis"))
            axes.push_back(narrow(each, "[kernel] axis"));
    const along reduced(std::move(axes), keepdims == Py_True);
    if (axis != Py_None) arguments.push_back(reduced);
    std::vector<Array> outputs = [&] {
        const WithoutLock others(elements >= worth_unlocking);
        return kernel.call(arguments);
    }();
    const auto result = [&](std::size_t i) {
        const std::size_t place = kernel.inputs() + i;
        if (place >= count) return to_python(outputs[i]);
        return Owned::borrow(PyTuple_GetItem(given.get(), static_cast<Py_ssize_t>(place)));
    };
    return tuple_of(outputs.size(), result);
}

std::size_t kernel_inputs(PyObject* self) { return held<FormulaKernel>(self).inputs(); }
std::size_t kernel_outputs(PyObject* self) { return held<FormulaKernel>(self).outputs(); }

}  // namespace

void add_kernels(PyObject* module) {
    kernel_type = add_type(module, {.name = "catena.Kernel",
                                    .doc = "A compiled formula.",
                                    .size = sizeof(Holder<FormulaKernel>),
                                    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                    .attributes = {property<kernel_inputs>("inputs"),
                                                   property<kernel_outputs>("outputs")},
                                    .methods = {method<kernel_call>("call")},
                                    .slots = {slot(Py_tp_dealloc, free_object<FormulaKernel>)}});
    add_functions(module, {with_tuple<elementwise_kernel>("elementwise_kernel"),
                           with_tuple<reduction_kernel>("reduction_kernel"),
                           with_tuple<reduce_kernel>("reduce_kernel")});
}

}  // namespace catena::python
