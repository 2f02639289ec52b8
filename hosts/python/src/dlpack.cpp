// See dlpack.hpp.
#include "dlpack.hpp"

#include <catena/cuda/stream.hpp>

#include <optional>

namespace catena::python {
namespace {

// The structures of DLPack 1.3; Debian's header has version 0.6, without flags.
using Tensor = catena_dl_tensor;
struct Managed {
    static constexpr const char *fresh = "dltensor", *used = "used_dltensor";
    Tensor tensor;
    void* context;
    void (*deleter)(Managed*);
};
struct Versioned {
    static constexpr const char *fresh = "dltensor_versioned", *used = "used_dltensor_versioned";
    std::uint32_t major, minor;
    void* context;
    void (*deleter)(Versioned*);
    std::uint64_t flags;
    Tensor tensor;
};
constexpr std::uint64_t read_only = 1, copied = 2;
constexpr int on_host = 1;

// Functions that a type has as a capsule. They do not wait for work on a GPU, which the caller
// orders with the current stream. Those that return -1 have set a Python exception.
struct ExchangeApi {
    static constexpr const char *attribute = "__dlpack_c_exchange_api__",
                                *name = "dlpack_exchange_api";
    std::uint32_t major, minor;
    const ExchangeApi* older;
    int (*allocate)(Tensor* like, Versioned** made, void* context,
                    void (*fail)(void* context, const char* kind, const char* message));
    int (*from_object)(PyObject* object, Versioned** made);
    int (*to_object)(Versioned* managed, PyObject** made);  // takes ownership of managed
    int (*look_at)(PyObject* object, Tensor* seen);
    int (*current_stream)(std::int32_t type, std::int32_t id, void** stream);
};

const ExchangeApi* exchange_api(PyObject* type) {
    const Owned capsule(PyObject_GetAttrString(type, ExchangeApi::attribute));
    const void* const found =
        capsule ? PyCapsule_GetPointer(capsule.get(), ExchangeApi::name) : nullptr;
    if (found == nullptr) PyErr_Clear();
    const auto* api = static_cast<const ExchangeApi*>(found);
    while (api != nullptr && api->major > 1) api = api->older;
    return api;
}

// ---- import

template <class M>
struct FreeManaged {
    void operator()(M* managed) const {
        if (managed->deleter != nullptr) managed->deleter(managed);
    }
};
template <class M>
using OwnedTensor = std::unique_ptr<M, FreeManaged<M>>;

struct Place {
    std::int32_t type, id;
    bool operator==(const Place&) const = default;
};
Place place_of(const Tensor& tensor) { return {tensor.device_type, tensor.device_id}; }
Place place_of(const Array& array) { return place_of(array.body()->tensor.dl); }

Device device_at(Place place) {
    const auto matches = [&](Device device) {
        return place_of(Array::empty({0}, Dtype::uint8, device)) == place;
    };
    for (const Device device : {Device::current(), cuda::host()})
        if (matches(device)) return device;
    for (const std::string& name : Device::list()) {
        const Device device = Device::get(name);
        if (matches(device)) return device;
    }
    throw DeviceError("[from_dlpack] device: expected one of catena's devices, got DLPack's type " +
                      std::to_string(place.type) + ", number " + std::to_string(place.id));
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
Array adopt(OwnedTensor<M> managed, std::string_view what) {
    const auto fail = [&](PyObject* type, const std::string& text) {
        raise(type, std::string(what) + ": expected " + text);
    };
    std::uint64_t flags = 0;
    if constexpr (std::is_same_v<M, Versioned>) {
        if (managed->major != 1)
            fail(PyExc_BufferError, "DLPack 1, got version " + std::to_string(managed->major));
        flags = managed->flags;
    }
    const Tensor& tensor = managed->tensor;
    Dtype dtype;
    if (!from_abi(tensor.dtype, dtype))
        fail(PyExc_TypeError,
             "float16, bfloat16, float32, float64, int32, int64, uint8 or bool, got " +
                 name(tensor.dtype));
    const Shape shape(
        std::span<const std::int64_t>(tensor.shape, static_cast<std::size_t>(tensor.ndim)));
    char* const data = static_cast<char*>(tensor.data) + tensor.byte_offset;
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const Device device = device_at(place_of(tensor));
    static double nothing;
    if (shape.size() == 0) return Array::wrap(device, &nothing, shape, dtype);
    if (address % static_cast<std::uintptr_t>(item_size(dtype)) != 0)
        fail(PyExc_ValueError, "aligned elements, got an address that is no multiple of " +
                                   std::to_string(item_size(dtype)) + " bytes");
    if (!is_dense(tensor) || (flags & read_only) != 0) {
        if (tensor.device_type != on_host)
            fail(PyExc_ValueError,
                 "a dense and writable array, such as x.contiguous(), got another one");
        std::vector<std::int64_t> strides(static_cast<std::size_t>(tensor.ndim), 1);
        for (auto i = strides.size(); i-- > 0;) {
            if (tensor.strides != nullptr) strides[i] = tensor.strides[i];
            else if (i + 1 < strides.size()) strides[i] = strides[i + 1] * tensor.shape[i + 1];
        }
        return with_type(dtype, [&](auto type) {
            return Array::from_strided(reinterpret_cast<const decltype(type)*>(data), shape,
                                       strides.data(), device);
        });
    }
    Array array = Array::wrap(device, data, shape, dtype, [managed = managed.get()] {
        if (!interpreter_runs()) return;
        const WithLock lock;
        FreeManaged<M>()(managed);
    });
    managed.release();
    return array;
}

template <class M>
OwnedTensor<M> take_from(PyObject* capsule) {
    auto* const managed = static_cast<M*>(PyCapsule_GetPointer(capsule, M::fresh));
    if (managed == nullptr) throw PythonError();
    checked(PyCapsule_SetName(capsule, M::used));  // so that the capsule does not free it
    return OwnedTensor<M>(managed);
}

// Two numbers, or nothing for None.
std::optional<Place> pair_of(PyObject* object, const char* what) {
    if (object == Py_None) return {};
    Place pair{};
    const Owned list = checked(PySequence_Tuple(object));
    if (PyTuple_Size(list.get()) != 2)
        raise(PyExc_ValueError, std::string("[__dlpack__] ") + what + ": expected two numbers");
    pair.type = static_cast<std::int32_t>(PyLong_AsLong(PyTuple_GetItem(list.get(), 0)));
    pair.id = static_cast<std::int32_t>(PyLong_AsLong(PyTuple_GetItem(list.get(), 1)));
    if (PyErr_Occurred() != nullptr) throw PythonError();
    return pair;
}

// Calls object.__dlpack__().
Owned ask_for_capsule(PyObject* object) {
    const Owned method = checked(PyObject_GetAttrString(object, "__dlpack__"));
    const Owned where = checked(PyObject_CallMethod(object, "__dlpack_device__", nullptr));
    const auto place = pair_of(where.get(), "__dlpack_device__");
    const Owned none = checked(PyTuple_New(0));
    const Owned keywords = checked(Py_BuildValue("{s(ii)}", "max_version", 1, 3));
    if (place && place->type != on_host) {
        // The work on the array is done before that of catena's stream, on which wrap() relies.
        void* const stream = Stream::current(device_at(*place)).native();
        if (stream != nullptr)
            checked(PyDict_SetItemString(keywords.get(), "stream",
                                         checked(PyLong_FromVoidPtr(stream)).get()));
    }
    Owned capsule(PyObject_Call(method.get(), none.get(), keywords.get()));
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError) != 0) {  // DLPack before version 1
        PyErr_Clear();
        checked(PyDict_DelItemString(keywords.get(), "max_version"));
        capsule = Owned(PyObject_Call(method.get(), none.get(), keywords.get()));
    }
    if (!capsule) throw PythonError();
    return capsule;
}

bool requires_gradient(PyObject* object) {
    const Owned flag(PyObject_GetAttrString(object, "requires_grad"));
    if (!flag) PyErr_Clear();
    return flag == Py_True;
}

// The memory of an object on the host, if its type has functions for C; else nothing.
OwnedTensor<Versioned> by_exchange_api(PyObject* object) {
    const ExchangeApi* const api = exchange_api(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    if (api == nullptr || requires_gradient(object)) return nullptr;
    Versioned* made = nullptr;
    if (api->from_object(object, &made) != 0) {  // __dlpack__() explains better why not
        PyErr_Clear();
        return nullptr;
    }
    OwnedTensor<Versioned> managed(made);
    if (managed->tensor.device_type != on_host) managed.reset();
    return managed;
}

// ---- export

template <class M>
struct Export {
    M managed;
    Array array;
};

template <class M>
void free_export(M* managed) {
    delete static_cast<Export<M>*>(managed->context);
}
template <class M>
void free_capsule(PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, M::fresh) == 0) return;  // its user frees it
    free_export(static_cast<M*>(PyCapsule_GetPointer(capsule, M::fresh)));
}

template <class M>
OwnedTensor<M> exported(Array array, std::uint64_t flags = 0) {
    auto made = std::make_unique<Export<M>>();
    M& managed = made->managed;
    if constexpr (std::is_same_v<M, Versioned>) {
        managed.major = 1;
        managed.minor = 3;
        managed.flags = flags;
    }
    managed.tensor = array.body()->tensor.dl;
    managed.context = made.get();
    managed.deleter = free_export<M>;
    made->array = std::move(array);
    return OwnedTensor<M>(&made.release()->managed);
}

template <class M>
Owned capsule_of(OwnedTensor<M> managed) {
    Owned capsule = checked(PyCapsule_New(managed.get(), M::fresh, free_capsule<M>));
    managed.release();
    return capsule;
}

// Waits until another library may read the array from anywhere.
void finish(const Array& array) {
    const WithoutLock others(!array.device().host_accessible());
    array.synchronize();
}

// ---- the functions for C that catena.Array has

int allocate_array(Tensor* like, Versioned** made, void* context,
                   void (*fail)(void* context, const char* kind, const char* message)) noexcept {
    try {
        Dtype dtype;
        if (!from_abi(like->dtype, dtype))
            throw DtypeError("[dlpack] dtype: expected one of catena's, got " + name(like->dtype));
        const Shape shape(
            std::span<const std::int64_t>(like->shape, static_cast<std::size_t>(like->ndim)));
        *made =
            exported<Versioned>(Array::empty(shape, dtype, device_at(place_of(*like)))).release();
        return 0;
    } catch (const std::exception& error) {
        fail(context, "BufferError", error.what());
        return -1;
    }
}

// The array of the object, on which work of the current stream of its device may be launched.
const Array& ready(PyObject* object) {
    if (!is_array(object))
        raise(PyExc_TypeError, "[dlpack] expected a catena.Array, got " + type_name(object));
    const Array& array = held<Array>(object);
    if (!array) raise(PyExc_BufferError, "[dlpack] expected an array, got array(None)");
    if (array.device().host_accessible()) array.synchronize();
    else use(Stream::current(array.device()), array, true);
    return array;
}
int array_from_object(PyObject* object, Versioned** made) noexcept {
    return guarded([&] {
        *made = exported<Versioned>(ready(object)).release();
        return 0;
    });
}
int array_to_object(Versioned* managed, PyObject** made) noexcept {
    return guarded([&] {
        *made = wrap(adopt(OwnedTensor<Versioned>(managed), "[dlpack]")).release();
        return 0;
    });
}
int look_at_array(PyObject* object, Tensor* seen) noexcept {
    return guarded([&] {
        *seen = ready(object).body()->tensor.dl;
        return 0;
    });
}
int current_stream_of(std::int32_t type, std::int32_t id, void** stream) noexcept {
    return guarded([&] {
        *stream = type == on_host ? nullptr : Stream::current(device_at({type, id})).native();
        return 0;
    });
}

}  // namespace

Array from_dlpack(PyObject* object, std::string_view what) {
    if (auto managed = by_exchange_api(object)) return adopt(std::move(managed), what);
    const Owned capsule = PyObject_TypeCheck(object, &PyCapsule_Type) != 0
                              ? Owned::borrow(object)
                              : ask_for_capsule(object);
    if (PyCapsule_IsValid(capsule.get(), Versioned::fresh) != 0)
        return adopt(take_from<Versioned>(capsule.get()), what);
    if (PyCapsule_IsValid(capsule.get(), Managed::fresh) != 0)
        return adopt(take_from<Managed>(capsule.get()), what);
    const Owned text = checked(PyObject_Repr(capsule.get()));
    raise(PyExc_BufferError, std::string(what) +
                                 ": expected a DLPack capsule that nobody has used, got " +
                                 std::string(text_of(text.get())));
}

Owned dlpack_device(const Array& array) {
    const Place place = place_of(array);
    return checked(Py_BuildValue("(ii)", place.type, place.id));
}

Owned export_dlpack(const Array& array, PyObject* args, PyObject* kwargs) {
    PyObject *stream = Py_None, *max_version = Py_None, *dl_device = Py_None, *copy = Py_None;
    parse(args, kwargs, "|$OOOO:__dlpack__", {"stream", "max_version", "dl_device", "copy"},
          &stream, &max_version, &dl_device, &copy);
    Array given = array;
    const auto target = pair_of(dl_device, "dl_device");
    if (target && *target != place_of(array)) {
        if (*target != place_of(Array::empty({0}, Dtype::uint8, cuda::host())) || copy == Py_False)
            raise(PyExc_BufferError,
                  "[__dlpack__] dl_device: expected the array's device, or the "
                  "host with copy != False, got another one");
        given = array.to(cuda::host());
    } else if (copy == Py_True) {
        given = array.copy();
    }
    finish(given);  // also if the consumer names its stream: the work on a GPU has been done
    const auto version = pair_of(max_version, "max_version");
    if (!version || version->type < 1) return capsule_of(exported<Managed>(std::move(given)));
    const bool is_copy = given.body() != array.body();
    return capsule_of(exported<Versioned>(std::move(given), is_copy ? copied : 0));
}

Owned export_as(PyObject* type, const Array& array) {
    const ExchangeApi* const api = exchange_api(type);
    if (api == nullptr || place_of(array).type != on_host) return {};
    finish(array);
    PyObject* made = nullptr;
    checked(api->to_object(exported<Versioned>(array).release(), &made));
    return Owned(made);
}

void add_dlpack() {
    static const ExchangeApi api{1,
                                 3,
                                 nullptr,
                                 allocate_array,
                                 array_from_object,
                                 array_to_object,
                                 look_at_array,
                                 current_stream_of};
    const Owned capsule =
        checked(PyCapsule_New(const_cast<ExchangeApi*>(&api), ExchangeApi::name, nullptr));
    checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(array_type), ExchangeApi::attribute,
                                   capsule.get()));
}

}  // namespace catena::python
