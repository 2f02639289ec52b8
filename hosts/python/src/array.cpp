#include "array.hpp"

#include "dlpack.hpp"
#include "operators.hpp"

#include <array>
#include <cstring>

namespace catena::python {

PyTypeObject* array_type = nullptr;

namespace {

// ---- NumPy's array interface, which is stable and needs none of NumPy's headers

struct ArrayInterface {
    int two;
    int nd;
    char typekind;
    int itemsize;
    int flags;
    Py_ssize_t* shape;
    Py_ssize_t* strides;  // in bytes
    void* data;
    PyObject* descr;
};
constexpr int dense = 0x1, aligned = 0x100, native = 0x200, writable = 0x400;

struct Code {
    char kind;
    int size;
};
constexpr Code codes[dtype_count] = {{'f', 2}, {'V', 2}, {'f', 4}, {'f', 8},
                                     {'i', 4}, {'i', 8}, {'u', 1}, {'b', 1}};

// numpy.NAME
Owned numpy(const char* name) {
    static PyObject* const module = checked(PyImport_ImportModule("numpy")).release();
    return checked(PyObject_GetAttrString(module, name));
}

struct Exported {
    ArrayInterface interface;
    Array array;
    Py_ssize_t shape[CATENA_MAX_NDIM], strides[CATENA_MAX_NDIM];
};

void free_exported(PyObject* capsule) {
    delete static_cast<Exported*>(PyCapsule_GetPointer(capsule, nullptr));
}

PyObject* array_struct(PyObject* self, void*) {
    return guarded([&]() -> PyObject* {
        const Array& array = as<PyArray>(self)->array;
        if (!array.device().host_accessible())
            raise(PyExc_AttributeError,
                  "__array_struct__: the host cannot access " + array.device().name());
        array.synchronize();
        auto exported = std::make_unique<Exported>();
        exported->array = array;
        const Shape shape = array.shape();
        const std::int64_t size = item_size(array.dtype());
        std::int64_t stride = size;
        for (int i = shape.ndim() - 1; i >= 0; --i) {
            exported->shape[i] = shape[i];
            exported->strides[i] = stride;
            stride *= shape[i];
        }
        const Code code = codes[static_cast<int>(array.dtype())];
        const catena_dl_tensor& memory = array.body()->tensor.dl;
        exported->interface = {2,
                               shape.ndim(),
                               code.kind,
                               code.size,
                               dense | aligned | native | writable,
                               exported->shape,
                               exported->strides,
                               static_cast<char*>(memory.data) + memory.byte_offset,
                               nullptr};
        Owned capsule = checked(PyCapsule_New(exported.get(), nullptr, free_exported));
        exported.release();
        return capsule.release();
    });
}

// Whether Python has arrays of this device as numpy.ndarrays. A logical CPU device that counts as a
// GPU is not such a device, so that programs behave as on GPUs.
bool has_numpy_arrays(Device device) { return device.host_accessible() && !cuda::is_gpu(device); }

// The device of NumPy's memory: the current one, or the host's if that is a GPU.
Device device_of_numpy() {
    const Device current = Device::current();
    return has_numpy_arrays(current) ? current : host_device();
}

// An array that shares memory with `owner`, which lives as long as the array.
Array share(Owned owner, Device device, void* data, const Shape& shape, Dtype dtype) {
    static double nothing;
    PyObject* const object = owner.get();
    Array array = Array::wrap(device, data != nullptr ? data : &nothing, shape, dtype, [object] {
        if (!interpreter_runs()) return;
        const WithLock lock;
        Py_DECREF(object);
    });
    owner.release();
    return array;
}

[[noreturn]] void raise_dtype(std::string_view what, PyObject* object) {
    const Owned dtype = checked(PyObject_GetAttrString(object, "dtype"));
    const Owned text = checked(PyObject_Str(dtype.get()));
    raise(PyExc_TypeError, std::string(what) +
                               ": expected an array of float16, bfloat16, float32, float64, int32, "
                               "int64, uint8 or bool, got " +
                               std::string(text_of(text.get())));
}

Array from_interface(PyObject* object, const Owned& capsule, std::string_view what, bool* same) {
    const auto* const given =
        static_cast<const ArrayInterface*>(PyCapsule_GetPointer(capsule.get(), nullptr));
    if (given == nullptr) throw PythonError();
    const auto found = std::find_if(std::begin(codes), std::end(codes), [&](const Code& code) {
        return code.kind == given->typekind && code.size == given->itemsize;
    });
    if (found == std::end(codes)) raise_dtype(what, object);
    const auto dtype = static_cast<Dtype>(found - std::begin(codes));
    if (dtype == Dtype::bfloat16) {  // 'V' stands for any type that NumPy does not know
        const Owned numpy_dtype = checked(PyObject_GetAttrString(object, "dtype"));
        const Owned name = checked(PyObject_GetAttrString(numpy_dtype.get(), "name"));
        if (text_of(name.get()) != "bfloat16") raise_dtype(what, object);
    }
    if (given->nd > CATENA_MAX_NDIM)
        raise(PyExc_ValueError,
              std::string(what) + ": expected at most 16 axes, got " + std::to_string(given->nd));
    std::array<std::int64_t, CATENA_MAX_NDIM> extents;
    std::copy_n(given->shape, given->nd, extents.begin());
    const Shape shape(std::span(extents.data(), static_cast<std::size_t>(given->nd)));
    if ((given->flags & (dense | aligned | native | writable)) ==
        (dense | aligned | native | writable)) {
        if (same != nullptr) {
            static PyObject* const ndarray = numpy("ndarray").release();
            *same = reinterpret_cast<PyObject*>(Py_TYPE(object)) == ndarray;
        }
        return share(Owned::borrow(object), device_of_numpy(), given->data, shape, dtype);
    }
    static PyObject* const asarray = numpy("asarray").release();
    const Owned source = checked(PyObject_CallFunctionObjArgs(asarray, object, nullptr));
    const Owned numpy_dtype = checked(PyObject_GetAttrString(source.get(), "dtype"));
    const Owned native_dtype =
        checked(PyObject_CallMethod(numpy_dtype.get(), "newbyteorder", "s", "="));
    const Owned copy =
        checked(PyObject_CallMethod(source.get(), "astype", "Os", native_dtype.get(), "C"));
    const Owned copy_capsule = checked(PyObject_GetAttrString(copy.get(), "__array_struct__"));
    return from_interface(copy.get(), copy_capsule, what, nullptr);
}

// The attribute, or nothing if there is none.
Owned attribute(PyObject* object, const char* name) {
    Owned found(PyObject_GetAttrString(object, name));
    if (!found) PyErr_Clear();
    return found;
}

}  // namespace

Owned wrap(Array array) {
    auto* const made = as<PyArray>(PyType_GenericAlloc(array_type, 0));
    if (made == nullptr) throw PythonError();
    new (&made->array) Array(std::move(array));
    return Owned(reinterpret_cast<PyObject*>(made));
}

bool is_array_like(PyObject* object) {
    return is_array(object) || attribute(object, "__array_struct__") ||
           attribute(object, "__dlpack__");
}

Array array_of(PyObject* object, std::string_view what, bool* same) {
    if (is_array(object)) {
        const Array& array = as<PyArray>(object)->array;
        if (same != nullptr) *same = array && !has_numpy_arrays(array.device());
        return array;
    }
    if (const Owned capsule = attribute(object, "__array_struct__")) {
        if (PyCapsule_IsValid(capsule.get(), nullptr) != 0)
            return from_interface(object, capsule, what, same);
    }
    if (attribute(object, "__dlpack__")) return from_dlpack(object, what);
    raise(PyExc_TypeError, std::string(what) + ": expected a numpy.ndarray or another array, got " +
                               type_name(object));
}

Owned to_python(const Array& array) {
    if (!array) return Owned::borrow(Py_None);
    Owned ours = wrap(array);
    if (!has_numpy_arrays(array.device())) return ours;
    if (array.dtype() != Dtype::bfloat16) {
        static PyObject* const asarray = numpy("asarray").release();
        return checked(PyObject_CallFunctionObjArgs(asarray, ours.get(), nullptr));
    }
    const Owned dtype = python_dtype(Dtype::bfloat16);
    if (PyUnicode_Check(dtype.get()) != 0) return ours;
    static PyObject* const asarray = numpy("asarray").release();
    const Owned raw = checked(PyObject_CallFunctionObjArgs(asarray, ours.get(), nullptr));
    return checked(PyObject_CallMethod(raw.get(), "view", "O", dtype.get()));
}

Owned python_shape(const Shape& shape) {
    Owned tuple = checked(PyTuple_New(shape.ndim()));
    for (int i = 0; i < shape.ndim(); ++i)
        checked(PyTuple_SetItem(tuple.get(), i, checked(PyLong_FromLongLong(shape[i])).release()));
    return tuple;
}

std::vector<std::int64_t> integers_of(PyObject* object, std::string_view what) {
    const auto integer = [](PyObject* value) -> std::int64_t {
        const Owned number = checked(PyNumber_Index(value));
        const std::int64_t result = PyLong_AsLongLong(number.get());
        if (result == -1 && PyErr_Occurred() != nullptr) throw PythonError();
        return result;
    };
    if (PyIndex_Check(object) != 0 && PySequence_Check(object) == 0) return {integer(object)};
    const Owned list(PySequence_Tuple(object));
    if (!list) {
        PyErr_Clear();
        raise(PyExc_TypeError, std::string(what) +
                                   ": expected an integer or a sequence of integers, got " +
                                   type_name(object));
    }
    std::vector<std::int64_t> values;
    for (Py_ssize_t i = 0; i < PyTuple_Size(list.get()); ++i)
        values.push_back(integer(PyTuple_GetItem(list.get(), i)));
    return values;
}

Shape shape_of(PyObject* object, std::string_view what) {
    return Shape(std::span<const std::int64_t>(integers_of(object, what)));
}

Owned python_dtype(Dtype dtype) {
    static std::array<PyObject*, dtype_count> made{};
    PyObject*& known = made[static_cast<std::size_t>(dtype)];
    if (known == nullptr) {
        Owned type = python_text(name(dtype));
        if (dtype == Dtype::bfloat16) {
            const Owned package(PyImport_ImportModule("ml_dtypes"));
            if (!package) {
                PyErr_Clear();
                return type;
            }
            type = checked(PyObject_GetAttrString(package.get(), "bfloat16"));
        }
        const Owned make = numpy("dtype");
        known = checked(PyObject_CallFunctionObjArgs(make.get(), type.get(), nullptr)).release();
    }
    return Owned::borrow(known);
}

Dtype dtype_from(PyObject* object, std::string_view what) {
    Owned text = Owned::borrow(object);
    if (PyUnicode_Check(object) == 0 || text_of(object) != "bfloat16") {
        const Owned make = numpy("dtype");
        const Owned dtype = checked(PyObject_CallFunctionObjArgs(make.get(), object, nullptr));
        text = checked(PyObject_GetAttrString(dtype.get(), "name"));
    }
    try {
        return dtype_from_name(text_of(text.get()));
    } catch (const Error&) {
        raise(PyExc_TypeError, std::string(what) +
                                   ": expected float16, bfloat16, float32, float64, int32, int64, "
                                   "uint8 or bool, got " +
                                   std::string(text_of(text.get())));
    }
}

bool is_number(PyObject* object) {
    if (PyFloat_Check(object) || PyLong_Check(object)) return true;
    if (PyIndex_Check(object) == 0) {
        // float() of the object's type, without its elements: NumPy's scalars and arrays have it
        const Owned method = attribute(object, "__float__");
        if (!method) return false;
    }
    const Owned ndim = attribute(object, "ndim");
    return ndim && PyLong_AsLong(ndim.get()) == 0 && attribute(object, "__array_struct__");
}

Scalar scalar_of(PyObject* object) {
    if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
    Owned number = Owned::borrow(object);
    if (PyLong_Check(object) == 0) {
        const Owned kind = attribute(object, "dtype");
        const Owned letter = kind ? attribute(kind.get(), "kind") : Owned();
        const bool integer = letter && text_of(letter.get()) != "f";
        number = checked(integer ? PyNumber_Long(object) : PyNumber_Float(object));
        if (!integer) return PyFloat_AsDouble(number.get());
    }
    const long long value = PyLong_AsLongLong(number.get());
    if (value == -1 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        const double wide = PyLong_AsDouble(number.get());
        if (wide == -1 && PyErr_Occurred() != nullptr) throw PythonError();
        return wide;
    }
    return value;
}

namespace {

void free_array(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    as<PyArray>(self)->array.~Array();
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

// Array(object, dtype=None, device=None): a copy of the object on a device.
PyObject* new_array(PyTypeObject*, PyObject* args, PyObject* kwargs) {
    return guarded([&]() -> PyObject* {
        static const char* names[] = {"object", "dtype", "device", nullptr};
        PyObject *object = nullptr, *dtype = Py_None, *device = Py_None;
        if (PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:Array", const_cast<char**>(names),
                                        &object, &dtype, &device) == 0)
            throw PythonError();
        Array array = array_of(object, "[catena.Array] object");
        if (dtype != Py_None) array = array.astype(dtype_from(dtype, "[catena.Array] dtype"));
        const Device target = device == Py_None ? array.device() : device_from(device);
        Array made = Array::empty(array.shape(), array.dtype(), target);
        made.copy_from(array);
        return wrap(std::move(made)).release();
    });
}

PyObject* array_copy(PyObject* self, PyObject* const*, Py_ssize_t) {
    return guarded([&] { return wrap(as<PyArray>(self)->array.copy()).release(); });
}
PyObject* array_to(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    return guarded([&] {
        if (n != 1) raise(PyExc_TypeError, "to_device() takes one argument: device");
        return wrap(as<PyArray>(self)->array.to(device_from(args[0]))).release();
    });
}
PyObject* array_astype(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    return guarded([&] {
        if (n != 1) raise(PyExc_TypeError, "astype() takes one argument: dtype");
        return wrap(as<PyArray>(self)->array.astype(dtype_from(args[0], "[astype] dtype")))
            .release();
    });
}
PyObject* array_reshape(PyObject* self, PyObject* args) {
    return guarded([&] {
        PyObject* const shape = PyTuple_Size(args) == 1 ? PyTuple_GetItem(args, 0) : args;
        std::vector<std::int64_t> extents = integers_of(shape, "[reshape] shape");
        const Array& array = as<PyArray>(self)->array;
        return wrap(array.reshape(Shape(std::span<const std::int64_t>(extents)))).release();
    });
}
PyObject* array_fill(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        if (n != 1) raise(PyExc_TypeError, "fill() takes one argument: value");
        as<PyArray>(self)->array.fill(scalar_of(args[0]).value());
        Py_RETURN_NONE;
    });
}
PyObject* array_copy_from(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        if (n != 1) raise(PyExc_TypeError, "copy_from() takes one argument: source");
        as<PyArray>(self)->array.copy_from(array_of(args[0], "[copy_from] source"));
        Py_RETURN_NONE;
    });
}
PyObject* array_item(PyObject* self, PyObject* const*, Py_ssize_t) {
    return guarded([&] { return item(as<PyArray>(self)->array).release(); });
}
// The elements as a numpy.ndarray in host memory; a copy if the host cannot access the array.
PyObject* array_numpy(PyObject* self, PyObject* args, PyObject* kwargs) {
    return guarded([&]() -> PyObject* {
        static const char* names[] = {"dtype", "copy", nullptr};
        PyObject *dtype = Py_None, *copy = Py_None;
        if (PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", const_cast<char**>(names),
                                        &dtype, &copy) == 0)
            throw PythonError();
        Array array = as<PyArray>(self)->array;
        const bool here = has_numpy_arrays(array.device());
        if (!here && copy == Py_False)
            raise(PyExc_ValueError, "[__array__] copy: " + array.device().name() +
                                        " is not accessible for the host without a copy");
        if (!here) array = array.to(host_device());
        else if (copy == Py_True) array = array.copy();
        Owned result = to_python(array);
        if (is_array(result.get()))
            raise(PyExc_TypeError,
                  "[__array__] dtype: NumPy has no bfloat16: install ml_dtypes, "
                  "or use astype(\"float32\")");
        if (dtype == Py_None) return result.release();
        return PyObject_CallMethod(result.get(), "astype", "O", dtype);
    });
}
PyObject* array_synchronize(PyObject* self, PyObject* const*, Py_ssize_t) {
    return guarded([&]() -> PyObject* {
        const Array array = as<PyArray>(self)->array;
        {
            const WithoutLock others;
            array.synchronize();
        }
        Py_RETURN_NONE;
    });
}
PyObject* array_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
    return guarded([&] { return export_dlpack(as<PyArray>(self)->array, args, kwargs).release(); });
}
PyObject* array_dlpack_device(PyObject* self, PyObject* const*, Py_ssize_t) {
    return guarded([&] { return dlpack_device(as<PyArray>(self)->array).release(); });
}

template <class Get>
constexpr getter getter_of(Get) {
    return [](PyObject* self, void*) -> PyObject* {
        return guarded([&] { return Owned(Get()(as<PyArray>(self)->array)).release(); });
    };
}
#define CATENA_GET(EXPRESSION) getter_of([](const Array& a) { return EXPRESSION; })

PyObject* array_repr(PyObject* self) {
    return guarded([&] {
        const Array& array = as<PyArray>(self)->array;
        return python_text(array ? to_string(array) : "array(None)").release();
    });
}
Py_ssize_t array_length(PyObject* self) {
    return guarded([&]() -> Py_ssize_t { return length(as<PyArray>(self)->array); });
}
PyObject* array_subscript(PyObject* self, PyObject* key) {
    return guarded([&] { return wrap(subscript(as<PyArray>(self)->array, key)).release(); });
}

}  // namespace

void add_array(PyObject* module) {
    static PyGetSetDef attributes[] = {
        {"shape", CATENA_GET(python_shape(a.shape()).release()), nullptr, nullptr, nullptr},
        {"dtype", CATENA_GET(python_dtype(a.dtype()).release()), nullptr, nullptr, nullptr},
        {"ndim", CATENA_GET(PyLong_FromLong(a.ndim())), nullptr, nullptr, nullptr},
        {"size", CATENA_GET(PyLong_FromLongLong(a.size())), nullptr, nullptr, nullptr},
        {"nbytes", CATENA_GET(PyLong_FromLongLong(a.nbytes())), nullptr, nullptr, nullptr},
        {"device", CATENA_GET(python_device(a.device()).release()), nullptr, nullptr, nullptr},
        {"__array_struct__", array_struct, nullptr, nullptr, nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr}};
    static PyMethodDef methods[] = {
        fast("copy", array_copy, "A copy on the same device."),
        fast("to_device", array_to, "The array on a device; itself if it is there."),
        fast("astype", array_astype, "The array in another dtype; itself if it has it."),
        {"reshape", array_reshape, METH_VARARGS, "A view with another shape."},
        fast("fill", array_fill, "Sets all elements to a number."),
        fast("copy_from", array_copy_from, "Copies the elements of another array, of any device."),
        fast("item", array_item, "The only element as a number."),
        fast("synchronize", array_synchronize, "Waits for all work on the array."),
        keywords("__array__", array_numpy, "The elements as a numpy.ndarray."),
        keywords("__dlpack__", array_dlpack, "A DLPack capsule that shares the memory."),
        fast("__dlpack_device__", array_dlpack_device, "DLPack's device type and number."),
        {nullptr, nullptr, 0, nullptr}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char*>("An array on a device, dense and row-major.")},
        {Py_tp_new, reinterpret_cast<void*>(new_array)},
        {Py_tp_dealloc, reinterpret_cast<void*>(free_array)},
        {Py_tp_repr, reinterpret_cast<void*>(array_repr)},
        {Py_tp_getset, attributes},
        {Py_tp_methods, methods},
        {Py_sq_length, reinterpret_cast<void*>(array_length)},
        {Py_mp_subscript, reinterpret_cast<void*>(array_subscript)},
        {Py_tp_hash, reinterpret_cast<void*>(hash_address)},
        CATENA_NUMBER_SLOTS(Array),
        CATENA_IN_PLACE_SLOTS(Array),
        {0, nullptr}};
    static PyType_Spec spec{"catena.Array", sizeof(PyArray), 0, Py_TPFLAGS_DEFAULT, slots};
    array_type = add_type(module, spec);
    checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(array_type), "__array_priority__",
                                   checked(PyLong_FromLong(100)).get()));
}

}  // namespace catena::python
