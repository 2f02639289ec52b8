// catena.Array, and arrays of other libraries as arrays of catena.
#include "array.hpp"

#include "dlpack.hpp"
#include "numpy.hpp"
#include "operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace catena::python {

PyTypeObject* array_type = nullptr;

namespace {

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
    Array array = Array::wrap(device, data != nullptr ? data : &nothing, shape, dtype,
                              [object] { drop_anywhere(object); });
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

Array from_numpy(PyObject* object, const NumpyMemory& memory, std::string_view what, bool* same) {
    if (!memory.dtype) raise_dtype(what, object);
    if (!memory.is_ndarray && attribute(object, "mask") && attribute(object, "filled"))
        raise(PyExc_TypeError,
              std::string(what) + ": expected an array without a mask, got a " + type_name(object));
    if (memory.can_share) {
        if (same != nullptr) *same = memory.is_ndarray;
        return share(Owned::borrow(object), device_of_numpy(), memory.data, memory.shape,
                     *memory.dtype);
    }
    const Owned source = numpy("asarray", object);
    const Owned dtype = checked(PyObject_GetAttrString(source.get(), "dtype"));
    const Owned native = checked(PyObject_CallMethod(dtype.get(), "newbyteorder", "s", "="));
    const Owned copy =
        checked(PyObject_CallMethod(source.get(), "astype", "Os", native.get(), "C"));
    return from_numpy(copy.get(), *numpy_memory(copy.get()), what, nullptr);
}

}  // namespace

Owned wrap(Array array) { return hold(array_type, std::move(array)); }

bool is_array_like(PyObject* object) {
    return is_array(object) || is_numpy_array(object) || attribute(object, "__array_struct__") ||
           attribute(object, "__dlpack__");
}

Array array_of(PyObject* object, std::string_view what, bool* same) {
    if (is_variable(object)) return data_of(object);
    if (is_array(object)) {
        const Array& array = held<Array>(object);
        if (same != nullptr) *same = array && !has_numpy_arrays(array.device());
        return array;
    }
    if (const auto memory = numpy_memory(object)) return from_numpy(object, *memory, what, same);
    if (attribute(object, "__dlpack__")) return from_dlpack(object, what);
    raise(PyExc_TypeError, std::string(what) + ": expected a numpy.ndarray or another array, got " +
                               type_name(object));
}

Array operand_of(PyObject* object, Dtype dtype, bool keep) {
    constexpr std::string_view what = "[operator] operand";
    const auto cast = [&](PyObject* array) {
        const Owned name = python_text(catena::name(dtype));
        return checked(PyObject_CallMethod(array, "astype", "O", name.get()));
    };
    if (is_floating(dtype) && !is_array(object)) {  // also of dtypes that catena does not have
        const auto memory = numpy_memory(object);
        if (memory && !memory->dtype && numpy_kind(object) != 0) {
            const Owned converted = cast(object);
            return array_of(converted.get(), what);
        }
    }
    const Array array = array_of(object, what);
    const bool both = is_floating(dtype) && is_floating(array.dtype());
    return both && !keep ? array.astype(dtype) : array;
}

Owned to_python(const Array& array) {
    if (!array) return none();
    if (!has_numpy_arrays(array.device())) return wrap(array);
    if (array.dtype() != Dtype::bfloat16) return numpy_view(array);
    const Owned dtype = python_dtype(Dtype::bfloat16);
    if (PyUnicode_Check(dtype.get()) != 0) return wrap(array);
    const Owned raw = numpy_view(array);
    return checked(PyObject_CallMethod(raw.get(), "view", "O", dtype.get()));
}

Owned python_shape(const Shape& shape) {
    return tuple_of(static_cast<std::size_t>(shape.ndim()), [&](std::size_t i) {
        return checked(PyLong_FromLongLong(shape[static_cast<int>(i)]));
    });
}

std::vector<std::int64_t> integers_of(PyObject* object, std::string_view what) {
    if (PyIndex_Check(object) != 0 && PySequence_Check(object) == 0) return {integer_of(object)};
    const Owned list = elements_in(object, what, "an integer or a sequence of integers");
    return vector_of(list.get(), integer_of);
}

std::int64_t integer_of(PyObject* object) {
    const Owned number = checked(PyNumber_Index(object));
    const std::int64_t result = PyLong_AsLongLong(number.get());
    if (result == -1 && PyErr_Occurred() != nullptr) throw PythonError();
    return result;
}

int narrow(std::int64_t value, std::string_view what) {
    if (!std::in_range<int>(value))
        raise(PyExc_OverflowError,
              std::string(what) + ": expected an integer of 32 bits, got " + std::to_string(value));
    return static_cast<int>(value);
}

Owned elements_in(PyObject* object, std::string_view what, const char* expected) {
    Owned tuple(PySequence_Tuple(object));
    if (tuple) return tuple;
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw PythonError();  // of a generator
    PyErr_Clear();
    raise(PyExc_TypeError,
          std::string(what) + ": expected " + expected + ", got " + type_name(object));
}

std::vector<Array> arrays_of(PyObject* object, std::string_view what) {
    const Owned list = elements_in(object, what, "a sequence");
    return vector_of(list.get(), [&](PyObject* each) {
        return each == Py_None ? Array() : array_of(each, what);
    });
}

Shape shape_of(PyObject* object, std::string_view what) {
    return Shape(std::span<const std::int64_t>(integers_of(object, what)));
}

namespace {

std::array<PyObject*, dtype_count> dtypes_of_python{};  // those that python_dtype() has returned

}  // namespace

Owned python_dtype(Dtype dtype) {
    PyObject*& known = dtypes_of_python[static_cast<std::size_t>(dtype)];
    if (known != nullptr) return Owned::borrow(known);
    Owned type = python_text(name(dtype));
    const Owned package(dtype == Dtype::bfloat16 ? PyImport_ImportModule("ml_dtypes") : nullptr);
    if (package) type = checked(PyObject_GetAttrString(package.get(), "bfloat16"));
    else PyErr_Clear();
    if (package || dtype != Dtype::bfloat16) type = numpy("dtype", type.get());
    if (known == nullptr) known = Owned::borrow(type.get()).release();
    return type;
}

Dtype dtype_from(PyObject* object, std::string_view what) {
    const auto& known = dtypes_of_python;
    const auto found = std::find(known.begin(), known.end(), object);
    if (found != known.end()) return static_cast<Dtype>(found - known.begin());
    Owned text = Owned::borrow(object);
    if (PyUnicode_Check(object) == 0 || text_of(object) != "bfloat16") {
        const Owned dtype = numpy("dtype", object);
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
    return PyFloat_Check(object) || PyLong_Check(object) || numpy_number(object) != 0;
}

Scalar scalar_of(PyObject* object) {
    if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
    const char kind = PyLong_Check(object) != 0 ? 'i' : numpy_number(object);
    if (kind == 0)
        raise(PyExc_TypeError, "[number] expected an int or float, got a " + type_name(object));
    const Owned number = checked(kind == 'f' ? PyNumber_Float(object) : PyNumber_Long(object));
    if (kind == 'f') return PyFloat_AsDouble(number.get());
    const long long value = PyLong_AsLongLong(number.get());
    if (value == -1 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        const double wide = PyLong_AsDouble(number.get());
        if (wide == -1 && PyErr_Occurred() != nullptr) throw PythonError();
        return Scalar::wide_integer(wide);
    }
    return value;
}

Array number_array(Scalar c, Dtype dtype, Device device) {
    if (is_floating(dtype) || dtype == Dtype::bool8 || !(c.is_integer() || c.is_wide_integer()))
        return Array::full({}, c.value(), dtype, device);
    const Array array = Array::from({c.integer()}, {}, device).astype(dtype);
    if (c.is_wide_integer() || array.item<std::int64_t>() != c.integer())
        throw ValueError(
            "[number] expected an integer in the range of " + std::string(name(dtype)) + ", got " +
            (c.is_integer() ? std::to_string(c.integer()) : fmt::format("{:.0f}", c.value())));
    return array;
}
Array array_of_number(const Shape& shape, Scalar c, Dtype dtype, Device device) {
    const Array one = number_array(c, dtype, device);
    const double value = one.item<double>();
    const bool exact = dtype != Dtype::int64 || std::abs(value) < 0x1p53;
    return exact ? Array::full(shape, value, dtype, device)
                 : functions::broadcast_to(one, shape).copy();
}

namespace {

// Array(object, dtype=None, device=None): a copy of the object on a device.
PyObject* new_array(PyTypeObject*, PyObject* args, PyObject* kwargs) {
    return result_of([&] {
        PyObject *object = nullptr, *dtype = Py_None, *device = Py_None;
        parse(args, kwargs, "O|OO:Array", {"object", "dtype", "device"}, &object, &dtype, &device);
        Array array = array_of(object, "[catena.Array] object");
        if (dtype != Py_None) array = array.astype(dtype_from(dtype, "[catena.Array] dtype"));
        const Device target = device == Py_None ? array.device() : device_from(device);
        Array made = Array::empty(array.shape(), array.dtype(), target);
        made.copy_from(array);
        return wrap(std::move(made));
    });
}

Owned array_copy(PyObject* self) { return wrap(held<Array>(self).copy()); }
Owned array_to(PyObject* self, PyObject* device) {
    return wrap(held<Array>(self).to(device_from(device)));
}
Owned array_astype(PyObject* self, PyObject* dtype) {
    return wrap(held<Array>(self).astype(dtype_from(dtype, "[astype] dtype")));
}
Owned array_reshape(PyObject* self, PyObject* args) {
    PyObject* const shape = PyTuple_Size(args) == 1 ? PyTuple_GetItem(args, 0) : args;
    std::vector<std::int64_t> extents = integers_of(shape, "[reshape] shape");
    const Array& array = held<Array>(self);
    const auto unknown = std::find(extents.begin(), extents.end(), -1);
    if (unknown != extents.end()) {
        *unknown = 1;
        const std::int64_t others = Shape(std::span<const std::int64_t>(extents)).size();
        *unknown = others > 0 ? array.size() / others : 0;
    }
    return wrap(array.reshape(Shape(std::span<const std::int64_t>(extents))));
}
void array_fill(PyObject* self, PyObject* value) {
    const Array& array = held<Array>(self);
    if (is_floating(array.dtype())) array.fill(scalar_of(value).value());
    else
        array.copy_from(
            array_of_number(array.shape(), scalar_of(value), array.dtype(), array.device()));
}
void array_copy_from(PyObject* self, PyObject* source) {
    held<Array>(self).copy_from(array_of(source, "[copy_from] source"));
}
Owned array_item(PyObject* self) { return item(held<Array>(self)); }
// The elements as a numpy.ndarray in host memory; a copy if the host cannot access the array.
Owned array_numpy(PyObject* self, PyObject* args, PyObject* kwargs) {
    PyObject *dtype = Py_None, *copy = Py_None;
    parse(args, kwargs, "|OO:__array__", {"dtype", "copy"}, &dtype, &copy);
    Array array = held<Array>(self);
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
    if (dtype == Py_None) return result;
    return checked(PyObject_CallMethod(result.get(), "astype", "O", dtype));
}
void array_synchronize(PyObject* self) {
    const Array array = held<Array>(self);
    const WithoutLock others;
    array.synchronize();
}
Owned array_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
    return export_dlpack(held<Array>(self), args, kwargs);
}
Owned array_dlpack_device(PyObject* self) { return dlpack_device(held<Array>(self)); }

Owned array_shape(PyObject* self) { return python_shape(held<Array>(self).shape()); }
Owned array_dtype(PyObject* self) { return python_dtype(held<Array>(self).dtype()); }
int array_ndim(PyObject* self) { return held<Array>(self).ndim(); }
std::int64_t array_size(PyObject* self) { return held<Array>(self).size(); }
std::int64_t array_nbytes(PyObject* self) {
    return static_cast<std::int64_t>(held<Array>(self).nbytes());
}
Owned array_device(PyObject* self) { return python_device(held<Array>(self).device()); }
PyObject* array_repr(PyObject* self) {
    return result_of([&] {
        const Array& array = held<Array>(self);
        return array ? to_string(array) : "array(None)";
    });
}
int array_assign(PyObject* self, PyObject* key, PyObject* value) {
    return guarded([&]() -> int {
        if (value == nullptr)
            raise(PyExc_TypeError, "elements of a catena.Array cannot be deleted");
        assign(held<Array>(self), key, value);
        return 0;
    });
}
Py_ssize_t array_length(PyObject* self) {
    return guarded([&]() -> Py_ssize_t { return length(held<Array>(self)); });
}
PyObject* array_subscript(PyObject* self, PyObject* key) {
    return result_of([&] { return wrap(subscript(held<Array>(self), key)); });
}

// A new array; uninitialized if the value is None.
Owned full(PyObject*, PyObject* extents, PyObject* value, PyObject* type, PyObject* place) {
    const Shape shape = shape_of(extents, "[full] shape");
    const Dtype dtype = dtype_from(type, "[full] dtype");
    const Device device = device_from(place);
    return wrap(value == Py_None ? Array::empty(shape, dtype, device)
                                 : array_of_number(shape, scalar_of(value), dtype, device));
}

}  // namespace

void add_array(PyObject* module) {
    open_numpy();
    add_functions(module, {method<full>("full")});
    Type type{
        .name = "catena.Array",
        .doc = "An array on a device, dense and row-major.",
        .size = sizeof(Holder<Array>),
        .attributes = {property<array_shape>("shape"), property<array_dtype>("dtype"),
                       property<array_ndim>("ndim"), property<array_size>("size"),
                       property<array_nbytes>("nbytes"), property<array_device>("device")},
        .methods =
            {method<array_copy>("copy", "A copy on the same device."),
             method<array_to>("to_device", "The array on a device; itself if it is there."),
             method<array_astype>("astype", "The array in another dtype; itself if it has it."),
             with_tuple<array_reshape>("reshape", "A view with another shape."),
             method<array_fill>("fill", "Sets all elements to a number."),
             method<array_copy_from>("copy_from",
                                     "Copies the elements of another array, of any device."),
             method<array_item>("item", "The only element as a number."),
             method<array_synchronize>("synchronize", "Waits for all work on the array."),
             with_keywords<array_numpy>("__array__", "The elements as a numpy.ndarray."),
             with_keywords<array_dlpack>("__dlpack__", "A DLPack capsule that shares the memory."),
             method<array_dlpack_device>("__dlpack_device__", "DLPack's device type and number.")},
        .slots = {slot(Py_tp_new, new_array), slot(Py_tp_dealloc, free_object<Array>),
                  slot(Py_tp_repr, array_repr), slot(Py_sq_length, array_length),
                  slot(Py_mp_subscript, array_subscript), slot(Py_mp_ass_subscript, array_assign),
                  slot(Py_tp_hash, hash_address), slot(Py_nb_inplace_add, in_place<Array, AddTo>),
                  slot(Py_nb_inplace_subtract, in_place<Array, SubtractFrom>),
                  slot(Py_nb_inplace_multiply, in_place<Array, MultiplyBy>),
                  slot(Py_nb_inplace_true_divide, in_place<Array, DivideBy>)}};
    const auto operators = number_slots<Array>();
    type.slots.insert(type.slots.end(), operators.begin(), operators.end());
    array_type = add_type(module, std::move(type));
}

}  // namespace catena::python
