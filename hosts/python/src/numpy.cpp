// NumPy's C interface.
#include "numpy.hpp"

#include <algorithm>
#include <iterator>

namespace catena::python {
namespace {

// The start of NumPy's PyArray_Descr and PyArrayObject.
struct NumpyDtype {
    PyObject_HEAD PyTypeObject* type;
    char kind, letter, byteorder, unused;
    int number;
};
struct NumpyArray {
    PyObject_HEAD char* data;
    int ndim;
    Py_ssize_t *shape, *strides;
    PyObject* base;
    NumpyDtype* dtype;
    int flags;
};
constexpr int dense = 0x1, aligned = 0x100, native = 0x200, writable = 0x400;

// The struct in the capsule __array_struct__.
struct ArrayInterface {
    int two;
    int ndim;
    char kind;
    int size;
    int flags;
    Py_ssize_t *shape, *strides;
    void* data;
    PyObject* description;
};

struct Code {
    char kind;
    int size;
    int number;  // NumPy's NPY_FLOAT, ...; for bfloat16, that of uint16
};
constexpr Code codes[dtype_count] = {{'f', 2, 23}, {'V', 2, 4}, {'f', 4, 11}, {'f', 8, 12},
                                     {'i', 4, 5},  {'i', 8, 7}, {'u', 1, 2},  {'b', 1, 0}};

std::optional<Dtype> find_dtype(const auto& matches) {
    const auto found = std::find_if(std::begin(codes), std::end(codes), matches);
    if (found == std::end(codes)) return {};
    return static_cast<Dtype>(found - std::begin(codes));
}

Shape shape_from(int ndim, const Py_ssize_t* extents) {
    if (ndim > CATENA_MAX_NDIM)
        raise(PyExc_ValueError,
              "[numpy.ndarray] axes: expected at most 16, got " + std::to_string(ndim));
    return Shape(std::span<const std::int64_t>(extents, static_cast<std::size_t>(ndim)));
}

PyObject* module = nullptr;
PyTypeObject* ndarray = nullptr;
PyTypeObject* generic = nullptr;   // the base of NumPy's scalars
PyTypeObject* floating = nullptr;  // and of those of floating dtypes
using New = PyObject* (*)(PyTypeObject*, int, const Py_ssize_t*, int, const Py_ssize_t*, void*, int,
                          int, PyObject*);
New new_array = nullptr;
int (*set_base)(PyObject* array, PyObject* base) = nullptr;

}  // namespace

void open_numpy() {
    module = checked(PyImport_ImportModule("numpy")).release();
    Owned inner(PyImport_ImportModule("numpy._core._multiarray_umath"));
    if (!inner) {  // before NumPy 2
        PyErr_Clear();
        inner = checked(PyImport_ImportModule("numpy.core._multiarray_umath"));
    }
    const Owned capsule = checked(PyObject_GetAttrString(inner.get(), "_ARRAY_API"));
    void* const* const table =
        static_cast<void* const*>(PyCapsule_GetPointer(capsule.get(), nullptr));
    if (table == nullptr) throw PythonError();
    ndarray = static_cast<PyTypeObject*>(table[2]);
    generic = static_cast<PyTypeObject*>(table[10]);
    floating = static_cast<PyTypeObject*>(table[16]);
    new_array = reinterpret_cast<New>(table[93]);
    set_base = reinterpret_cast<decltype(set_base)>(table[282]);
}

Owned numpy(const char* name, PyObject* argument) {
    return checked(PyObject_CallMethod(module, name, "O", argument));
}

Owned attribute(PyObject* object, const char* name) {
    Owned found(PyObject_GetAttrString(object, name));
    if (found) return found;
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw PythonError();
    PyErr_Clear();
    return found;
}

Owned numpy_view(const Array& array) {
    array.synchronize();
    const Shape shape = array.shape();
    const catena_dl_tensor& memory = array.body()->tensor.dl;
    Owned owner = wrap(array);
    Owned view = checked(new_array(ndarray, shape.ndim(), shape.data(),
                                   codes[static_cast<int>(array.dtype())].number, nullptr,
                                   static_cast<char*>(memory.data) + memory.byte_offset, 0,
                                   dense | aligned | writable, nullptr));
    checked(set_base(view.get(), owner.release()));
    return view;
}

bool is_numpy_scalar(PyObject* object) { return PyObject_TypeCheck(object, generic) != 0; }

bool is_numpy_array(PyObject* object) { return PyObject_TypeCheck(object, ndarray) != 0; }

char numpy_number(PyObject* object) {
    if (is_numpy_array(object))
        return as<NumpyArray>(object)->ndim == 0 ? numpy_kind(object) : '\0';
    if (PyObject_TypeCheck(object, floating) != 0) return 'f';
    return is_numpy_scalar(object) ? numpy_kind(object) : '\0';
}

char numpy_kind(PyObject* object) {
    const Owned dtype = checked(PyObject_GetAttrString(object, "dtype"));
    const Owned text = checked(PyObject_GetAttrString(dtype.get(), "kind"));
    const char kind = text_of(text.get())[0];
    return kind == 'f' || kind == 'i' || kind == 'u' || kind == 'b' ? kind : '\0';
}

std::optional<NumpyMemory> numpy_memory(PyObject* object) {
    if (Py_TYPE(object) == ndarray) {
        const NumpyArray& array = *as<NumpyArray>(object);
        const auto dtype = find_dtype([&](const Code& code) {
            return code.kind == array.dtype->kind && code.number == array.dtype->number;
        });
        constexpr int shared = dense | aligned | writable;
        if (dtype && (array.flags & shared) == shared &&
            (array.dtype->byteorder == '=' || array.dtype->byteorder == '|'))
            return NumpyMemory{array.data, shape_from(array.ndim, array.shape), dtype, true, true};
    }
    const Owned capsule = attribute(object, "__array_struct__");
    if (!capsule || PyCapsule_IsValid(capsule.get(), nullptr) == 0) return {};
    const auto& given =
        *static_cast<const ArrayInterface*>(PyCapsule_GetPointer(capsule.get(), nullptr));
    auto dtype = find_dtype(
        [&](const Code& code) { return code.kind == given.kind && code.size == given.size; });
    if (dtype == Dtype::bfloat16) {  // 'V' stands for any dtype that NumPy does not know
        const Owned numpy_dtype = checked(PyObject_GetAttrString(object, "dtype"));
        const Owned name = checked(PyObject_GetAttrString(numpy_dtype.get(), "name"));
        if (text_of(name.get()) != "bfloat16") dtype.reset();
    }
    constexpr int shared = dense | aligned | native | writable;
    // The memory of NumPy's scalars lives only as long as the capsule.
    const bool can_share = (given.flags & shared) == shared && !is_numpy_scalar(object);
    return NumpyMemory{given.data, shape_from(given.ndim, given.shape), dtype, can_share,
                       Py_TYPE(object) == ndarray};
}

}  // namespace catena::python
