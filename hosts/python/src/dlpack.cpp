#include "dlpack.hpp"

#include <catena/cuda/stream.hpp>

#include <array>
#include <optional>

namespace catena::python {
namespace {

// The structures of DLPack 1; Debian's header has version 0.6, without flags.
using Tensor = catena_dl_tensor;
struct Managed {
    Tensor tensor;
    void* context;
    void (*deleter)(Managed*);
};
struct Versioned {
    std::uint32_t major, minor;
    void* context;
    void (*deleter)(Versioned*);
    std::uint64_t flags;
    Tensor tensor;
};
constexpr std::uint64_t read_only = 1, copied = 2;
constexpr int on_host = 1;

template <class M>
struct Name;
template <>
struct Name<Managed> {
    static constexpr const char* fresh = "dltensor";
    static constexpr const char* used = "used_dltensor";
};
template <>
struct Name<Versioned> {
    static constexpr const char* fresh = "dltensor_versioned";
    static constexpr const char* used = "used_dltensor_versioned";
};

// ---- import

// The device with DLPack's type and number.
Device device_like(const Tensor& tensor) {
    const auto matches = [&](Device device) {
        const Array probe = Array::empty({0}, Dtype::uint8, device);
        const Tensor& dl = probe.body()->tensor.dl;
        return dl.device_type == tensor.device_type && dl.device_id == tensor.device_id;
    };
    const Device current = Device::current();
    if (matches(current)) return current;
    for (const std::string& name : Device::list()) {
        const Device device = Device::get(name);
        if (matches(device)) return device;
    }
    throw DeviceError("[from_dlpack] device: expected one of catena's devices, got DLPack's type " +
                      std::to_string(tensor.device_type) + ", number " +
                      std::to_string(tensor.device_id));
}

bool is_dense(const Tensor& tensor) {
    if (tensor.strides == nullptr) return true;
    std::int64_t expected = 1;
    for (int i = tensor.ndim - 1; i >= 0; --i) {
        if (tensor.shape[i] == 0) return true;
        if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
        expected *= tensor.shape[i];
    }
    return true;
}

template <class M>
Array adopt(PyObject* capsule, std::string_view what) {
    auto* const managed = static_cast<M*>(PyCapsule_GetPointer(capsule, Name<M>::fresh));
    if (managed == nullptr) throw PythonError();
    std::uint64_t flags = 0;
    if constexpr (std::is_same_v<M, Versioned>) {
        if (managed->major != 1)
            raise(PyExc_BufferError, std::string(what) + ": expected DLPack 1, got version " +
                                         std::to_string(managed->major));
        flags = managed->flags;
    }
    const Tensor& tensor = managed->tensor;
    Dtype dtype;
    if (!from_abi(tensor.dtype, dtype))
        raise(PyExc_TypeError, std::string(what) +
                                   ": expected float16, bfloat16, float32, float64, int32, int64, "
                                   "uint8 or bool, got " +
                                   name(tensor.dtype));
    const Shape shape(
        std::span<const std::int64_t>(tensor.shape, static_cast<std::size_t>(tensor.ndim)));
    char* const data = static_cast<char*>(tensor.data) + tensor.byte_offset;
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const bool shared = is_dense(tensor) && (flags & read_only) == 0 &&
                        address % static_cast<std::uintptr_t>(item_size(dtype)) == 0;
    if (!shared && tensor.device_type != on_host)
        raise(PyExc_ValueError, std::string(what) +
                                    ": expected an array that is dense, aligned and writable, "
                                    "such as x.contiguous(), got another one");
    if (!shared) {  // the caller's object lives until the copy is done
        return with_type(dtype, [&](auto type) {
            using T = decltype(type);
            if (address % alignof(T) != 0)
                raise(PyExc_ValueError,
                      std::string(what) + ": expected aligned elements, got unaligned ones");
            std::vector<std::int64_t> strides(static_cast<std::size_t>(tensor.ndim), 1);
            if (tensor.strides != nullptr) {
                strides.assign(tensor.strides, tensor.strides + tensor.ndim);
            } else {
                for (int i = tensor.ndim - 2; i >= 0; --i)
                    strides[static_cast<std::size_t>(i)] =
                        strides[static_cast<std::size_t>(i) + 1] * tensor.shape[i + 1];
            }
            return Array::from_strided(reinterpret_cast<const T*>(data), shape, strides.data());
        });
    }
    static double nothing;
    Array array =
        Array::wrap(device_like(tensor), shape.size() == 0 ? static_cast<void*>(&nothing) : data,
                    shape, dtype, [managed] {
                        if (managed->deleter == nullptr || !interpreter_runs()) return;
                        const WithLock lock;
                        managed->deleter(managed);
                    });
    checked(PyCapsule_SetName(capsule, Name<M>::used));
    return array;
}

// ---- export

template <class M>
struct Export {
    M managed;
    Array array;
};

template <class M>
void free_managed(M* managed) {
    delete static_cast<Export<M>*>(managed->context);
}
template <class M>
void free_capsule(PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, Name<M>::fresh) == 0) return;  // its user frees it
    free_managed(static_cast<M*>(PyCapsule_GetPointer(capsule, Name<M>::fresh)));
}

template <class M>
Owned capsule_of(Array array, bool is_copy) {
    auto exported = std::make_unique<Export<M>>();
    M& managed = exported->managed;
    if constexpr (std::is_same_v<M, Versioned>) {
        managed.major = 1;
        managed.minor = 0;
        managed.flags = is_copy ? copied : 0;
    }
    managed.tensor = array.body()->tensor.dl;
    managed.context = exported.get();
    managed.deleter = free_managed<M>;
    exported->array = std::move(array);
    Owned capsule = checked(PyCapsule_New(&managed, Name<M>::fresh, free_capsule<M>));
    exported.release();
    return capsule;
}

std::optional<std::pair<long, long>> pair_of(PyObject* object, const char* what) {
    if (object == nullptr || object == Py_None) return {};
    std::pair<int, int> pair;
    const Owned list = checked(PySequence_Tuple(object));
    if (PyTuple_Size(list.get()) != 2)
        raise(PyExc_ValueError, std::string("[__dlpack__] ") + what + ": expected two numbers");
    pair.first = static_cast<int>(PyLong_AsLong(PyTuple_GetItem(list.get(), 0)));
    pair.second = static_cast<int>(PyLong_AsLong(PyTuple_GetItem(list.get(), 1)));
    if (PyErr_Occurred() != nullptr) throw PythonError();
    return pair;
}

}  // namespace

Array from_dlpack(PyObject* object, std::string_view what) {
    const Owned method = checked(PyObject_GetAttrString(object, "__dlpack__"));
    const Owned empty = checked(PyTuple_New(0));
    const Owned version = checked(Py_BuildValue("{s(ii)}", "max_version", 1, 3));
    Owned capsule(PyObject_Call(method.get(), empty.get(), version.get()));
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError) != 0) {  // DLPack before version 1
        PyErr_Clear();
        capsule = checked(PyObject_CallNoArgs(method.get()));
    }
    if (!capsule) throw PythonError();
    if (PyCapsule_IsValid(capsule.get(), Name<Versioned>::fresh) != 0)
        return adopt<Versioned>(capsule.get(), what);
    return adopt<Managed>(capsule.get(), what);
}

Owned dlpack_device(const Array& array) {
    const Tensor& tensor = array.body()->tensor.dl;
    return checked(Py_BuildValue("(ii)", tensor.device_type, tensor.device_id));
}

Owned export_dlpack(const Array& array, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject *stream = Py_None, *max_version = Py_None, *dl_device = Py_None, *copy = Py_None;
    if (PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(names),
                                    &stream, &max_version, &dl_device, &copy) == 0)
        throw PythonError();
    Array exported = array;
    const Tensor& tensor = array.body()->tensor.dl;
    const auto target = pair_of(dl_device, "dl_device");
    if (target && *target != std::pair<long, long>(tensor.device_type, tensor.device_id)) {
        if (*target != std::pair<long, long>(on_host, 0) || copy == Py_False)
            raise(PyExc_BufferError,
                  "[__dlpack__] dl_device: expected the array's device, or the "
                  "host with copy != False, got another one");
        exported = array.to(cuda::host());
    } else if (copy == Py_True) {
        exported = array.copy();
    }
    {
        // The consumer may read from any stream, so the work must be done.
        const WithoutLock others(!exported.device().host_accessible());
        exported.synchronize();
    }
    const bool is_copy = exported.body() != array.body();
    const auto version = pair_of(max_version, "max_version");
    if (version && version->first >= 1) return capsule_of<Versioned>(std::move(exported), is_copy);
    return capsule_of<Managed>(std::move(exported), is_copy);
}

}  // namespace catena::python
