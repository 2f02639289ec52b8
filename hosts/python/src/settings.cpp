// Devices, plugins, the configuration, random numbers, and grad().
#include "settings.hpp"

#include "operators.hpp"

#include <catena/core/grad.hpp>

#include <fmt/format.h>

#include <charconv>

namespace catena::python {
namespace {

struct PyDevice {
    PyObject_HEAD Device device;
};
PyTypeObject* device_type = nullptr;
Device& device_self(PyObject* object) { return as<PyDevice>(object)->device; }

PyObject* new_device(PyTypeObject*, PyObject* args, PyObject* kwargs) {
    return guarded([&] {
        static const char* names[] = {"name", nullptr};
        PyObject* name = nullptr;
        if (PyArg_ParseTupleAndKeywords(args, kwargs, "O:Device", const_cast<char**>(names),
                                        &name) == 0)
            throw PythonError();
        return python_device(device_from(name)).release();
    });
}
PyObject* device_repr(PyObject* self) {
    return guarded([&] {
        return python_text(fmt::format("catena.Device('{}')", device_self(self).name())).release();
    });
}
PyObject* device_compare(PyObject* left, PyObject* right, int operation) {
    if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(right) != device_type)
        return ask_the_other();
    return compare_addresses(device_self(left).state(), device_self(right).state(), operation);
}
Py_hash_t device_hash(PyObject* self) { return hash_of(device_self(self).state()); }

// The number of a GPU; -1 for other devices.
int gpu_number(Device device) {
    if (!cuda::is_gpu(device)) return -1;
    return device.ordinal() - (device.backend() == cuda::host().backend() ? 1 : 0);
}

#define CATENA_GETTER(NAME, ...)                     \
    PyObject* NAME(PyObject* self, void*) {          \
        return guarded([&] { return __VA_ARGS__; }); \
    }
CATENA_GETTER(device_name, python_text(device_self(self).name()).release())
CATENA_GETTER(device_backend, python_text(device_self(self).backend()).release())
CATENA_GETTER(device_ordinal, PyLong_FromLong(device_self(self).ordinal()))
CATENA_GETTER(get_host_accessible, PyBool_FromLong(device_self(self).host_accessible()))
CATENA_GETTER(device_id, PyLong_FromLong(gpu_number(device_self(self))))
CATENA_GETTER(get_is_gpu, PyBool_FromLong(cuda::is_gpu(device_self(self))))
CATENA_GETTER(device_get_threads, PyLong_FromLong(device_self(self).threads()))
#undef CATENA_GETTER

int device_set_threads(PyObject* self, PyObject* value, void*) {
    return guarded([&] {
        if (value == nullptr) raise(PyExc_AttributeError, "cannot delete the attribute");
        device_self(self).set_threads(narrow(integer_of(value), "[catena.Device] threads"));
        return 0;
    });
}

// The devices that were current before the `with` blocks that the thread is in.
std::vector<Device>& devices_before() {
    static thread_local constinit PerThread<std::vector<Device>> devices;
    return devices.get();
}
PyObject* device_enter(PyObject* self, PyObject* const*, Py_ssize_t) {
    return guarded([&] {
        std::vector<Device>& before = devices_before();
        before.push_back(Device::current());
        try {
            use_device(device_self(self));
        } catch (...) {
            before.pop_back();
            throw;
        }
        return Owned::borrow(self).release();
    });
}
PyObject* device_exit(PyObject*, PyObject* const*, Py_ssize_t) {
    return guarded([]() -> PyObject* {
        std::vector<Device>& before = devices_before();
        if (before.empty()) raise(PyExc_RuntimeError, "[Device] __exit__: without __enter__");
        use_device(before.back());
        before.pop_back();
        Py_RETURN_NONE;
    });
}
PyObject* device_use(PyObject* self, PyObject* const*, Py_ssize_t) {
    return guarded([&]() -> PyObject* {
        use_device(device_self(self));
        Py_RETURN_NONE;
    });
}
PyObject* device_synchronize(PyObject* self, PyObject* const*, Py_ssize_t) {
    return guarded([&]() -> PyObject* {
        {
            const WithoutLock others;
            device_self(self).synchronize();
        }
        Py_RETURN_NONE;
    });
}
PyObject* device_memory(PyObject* self, PyObject* const*, Py_ssize_t) {
    return guarded([&] {
        const MemoryStats stats = device_self(self).memory();
        return Py_BuildValue("{sLsLsLsL}", "in_use", stats.in_use, "peak", stats.peak, "cached",
                             stats.cached, "system_calls", stats.system_calls);
    });
}

PyObject* current_device(PyObject*, PyObject*) {
    return guarded([] { return python_device(Device::current()).release(); });
}
PyObject* device_names(PyObject*, PyObject*) {
    return guarded([] {
        Owned list = checked(PyList_New(0));
        for (const std::string& name : Device::list())
            checked(PyList_Append(list.get(), python_text(name).get()));
        return list.release();
    });
}

PyObject* gpu_count(PyObject*, PyObject*) {
    return guarded([] { return PyLong_FromLong(cuda::device_count()); });
}
PyObject* gpu_reason(PyObject*, PyObject*) {
    return guarded([] { return python_text(with_advice(cuda::reason())).release(); });
}
PyObject* set_gpu_backend(PyObject*, PyObject* name) {
    return guarded([&]() -> PyObject* {
        cuda::set_backend(text_of(name));
        Py_RETURN_NONE;
    });
}
PyObject* gpu(PyObject*, PyObject* number) {
    return guarded([&] {
        if (number == Py_None) return python_device(cuda::get_device()).release();
        return python_device(device_from(number)).release();
    });
}

PyObject* init_gpu(PyObject*, PyObject* device) {
    return guarded([&]() -> PyObject* {
        if (device == Py_None) cuda::init();
        else cuda::init(device_from(device));
        Py_RETURN_NONE;
    });
}
PyObject* shutdown_gpus(PyObject*, PyObject*) {
    {
        const WithoutLock others;
        cuda::shutdown();
    }
    Py_RETURN_NONE;
}

// ---- plugins

// Runs load(path) for a str, bytes or path object.
template <class Load>
PyObject* load_from(PyObject* path, const Load& load) {
    return guarded([&]() -> PyObject* {
        PyObject* bytes = nullptr;
        if (PyUnicode_FSConverter(path, &bytes) == 0) throw PythonError();
        const Owned text(bytes);
        const std::string name = PyBytes_AsString(bytes);
        {
            const WithoutLock others;
            load(name);
        }
        Py_RETURN_NONE;
    });
}
PyObject* load_one(PyObject*, PyObject* path) {
    return load_from(path, [](const std::string& name) { load_plugin(name); });
}
PyObject* load_folder(PyObject*, PyObject* path) {
    return load_from(path, [](const std::string& name) { load_plugins(name); });
}
PyObject* report(PyObject*, PyObject*) {
    return guarded([] {
        const std::string text = to_string(plugin_report());  // names of files may be no UTF-8
        return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                                    "backslashreplace");
    });
}

// ---- configuration

bool Config::*flag_of(std::string_view name) {
    if (name == "train") return &Config::train;
    if (name == "enable_backprop") return &Config::enable_backprop;
    if (name == "deterministic") return &Config::deterministic;
    if (name == "debug") return &Config::debug;
    if (name == "compositions") return &Config::compositions;
    return nullptr;
}

// get_flag(name, of_all_threads)
PyObject* get_flag(PyObject*, PyObject* const* args, Py_ssize_t) {
    return guarded([&] {
        const Config& from = args[1] == Py_True ? global_config() : config();
        const std::string_view name = text_of(args[0]);
        if (const auto flag = flag_of(name)) return PyBool_FromLong(from.*flag);
        if (name == "products")
            return PyLong_FromUnsignedLong(static_cast<unsigned>(from.products));
        const auto found = from.named.find(name);
        if (found == from.named.end()) return Owned::borrow(Py_None).release();
        return PyLong_FromLongLong(found->second);
    });
}
// set_flag(name, value, of_all_threads); None removes a named setting.
PyObject* set_flag(PyObject*, PyObject* const* args, Py_ssize_t) {
    return guarded([&]() -> PyObject* {
        Config& to = args[2] == Py_True ? global_config() : config();
        const std::string name(text_of(args[0]));
        if (const auto flag = flag_of(name)) {
            to.*flag = truth_of(args[1]);
            Py_RETURN_NONE;
        }
        if (args[1] == Py_None) {
            to.named.erase(name);
            Py_RETURN_NONE;
        }
        const long long value = PyLong_AsLongLong(args[1]);
        if (value == -1 && PyErr_Occurred() != nullptr) throw PythonError();
        if (name == "products") to.products = static_cast<Products>(value);
        else to.named.insert_or_assign(name, value);
        Py_RETURN_NONE;
    });
}

PyObject* set_seed(PyObject*, PyObject* value) {
    return guarded([&]() -> PyObject* {
        const Owned integer = checked(PyNumber_Index(value));
        const unsigned long long number = PyLong_AsUnsignedLongLong(integer.get());
        if (PyErr_Occurred() != nullptr) throw PythonError();
        seed(number);
        Py_RETURN_NONE;
    });
}

PyObject* get_random_state(PyObject*, PyObject* device) {
    return guarded([&] {
        const RandomState state = random_state(device_from(device));
        return Py_BuildValue("KK", static_cast<unsigned long long>(state.seed),
                             static_cast<unsigned long long>(state.offset));
    });
}
PyObject* put_random_state(PyObject*, PyObject* args) {
    return guarded([&]() -> PyObject* {
        PyObject* device = nullptr;
        unsigned long long seed = 0, offset = 0;
        if (PyArg_ParseTuple(args, "OKK", &device, &seed, &offset) == 0) throw PythonError();
        set_random_state(device_from(device), {seed, offset});
        Py_RETURN_NONE;
    });
}

// grad(outputs, inputs, grad_outputs, grad_inputs, set_grad, retain_grad, enable_double_backprop)
PyObject* run_grad(PyObject*, PyObject* const* args, Py_ssize_t) {
    return guarded([&] {
        const Variables outputs = variables_of(args[0], "[grad] outputs");
        const Variables inputs = variables_of(args[1], "[grad] inputs");
        const Variables grad_outputs =
            args[2] == Py_None ? Variables() : variables_of(args[2], "[grad] grad_outputs");
        const Variables grad_inputs =
            args[3] == Py_None ? Variables() : variables_of(args[3], "[grad] grad_inputs");
        const GradOptions options{args[4] == Py_True, args[5] == Py_True, args[6] == Py_True};
        Variables found = [&] {
            const WithoutLockOn others(InUse::By::gradients,
                                       pointers_to({outputs, inputs, grad_outputs, grad_inputs}));
            return grad(outputs, inputs, grad_outputs, grad_inputs, options);
        }();
        return wrap_all(std::move(found)).release();
    });
}

// backward(outputs, grad_outputs, enable_double_backprop)
PyObject* run_backward_from_all(PyObject*, PyObject* const* args, Py_ssize_t) {
    return guarded([&]() -> PyObject* {
        const Variables outputs = variables_of(args[0], "[backward] outputs");
        const Variables grad_outputs =
            args[1] == Py_None ? Variables() : variables_of(args[1], "[backward] grad_outputs");
        BackwardOptions options;
        options.enable_double_backprop = args[2] == Py_True;
        {
            const WithoutLockOn others(InUse::By::gradients, pointers_to({outputs, grad_outputs}));
            backward(outputs, grad_outputs, options);
        }
        Py_RETURN_NONE;
    });
}

PyObject* dtype_of(PyObject*, PyObject* object) {
    return guarded([&] { return python_dtype(dtype_from(object, "[dtype]")).release(); });
}
PyObject* run_from_dlpack(PyObject*, PyObject* object) {
    return guarded([&] { return wrap(from_dlpack(object, "[from_dlpack]")).release(); });
}
PyObject* as_array(PyObject*, PyObject* object) {
    return guarded([&] { return wrap(array_of(object, "[as_array]")).release(); });
}
PyObject* as_python(PyObject*, PyObject* object) {
    return guarded([&] { return to_python(array_of(object, "[to_numpy]")).release(); });
}

}  // namespace

Owned python_device(Device device) {
    if (!device) return Owned::borrow(Py_None);
    Owned made = checked(PyType_GenericAlloc(device_type, 0));
    device_self(made.get()) = device;
    return made;
}

Device device_from(PyObject* object) {
    if (Py_TYPE(object) == device_type) return device_self(object);
    const auto numbered = [](long id) {
        return id < 0 ? cuda::host() : cuda::get_device(static_cast<int>(std::min(id, 1000000L)));
    };
    if (PyUnicode_Check(object) != 0) {
        const std::string_view name = text_of(object);
        if (name == "@numpy") return cuda::host();
        const std::string_view number = name.substr(name.starts_with("@cupy:") ? 6 : 0);
        long id = 0;
        const auto [end, error] = std::from_chars(number.begin(), number.end(), id);
        if (error == std::errc() && end == number.end()) return numbered(id);
        if (name.starts_with('@'))
            raise(PyExc_ValueError, "[Device] name: expected '@numpy' or '@cupy:NUMBER', got '" +
                                        std::string(name) + '\'');
        return Device::get(name);
    }
    if (PyIndex_Check(object) != 0) {
        const Owned integer = checked(PyNumber_Index(object));
        const long id = PyLong_AsLong(integer.get());
        if (id == -1 && PyErr_Occurred() != nullptr) throw PythonError();
        return numbered(id);
    }
    raise(PyExc_TypeError,
          "[Device] name: expected a catena.Device, a name such as 'cpu:0', the number of a GPU, "
          "or a negative number for the host, got " +
              type_name(object));
}

void add_settings(PyObject* module) {
    static PyGetSetDef attributes[] = {
        {"name", device_name, nullptr, "\"BACKEND:NUMBER\"", nullptr},
        {"backend", device_backend, nullptr, "The part of the name before the colon.", nullptr},
        {"ordinal", device_ordinal, nullptr, "The number after the colon.", nullptr},
        {"host_accessible", get_host_accessible, nullptr,
         "Whether NumPy can share the memory of its arrays.", nullptr},
        {"id", device_id, nullptr, "The number of the GPU; -1 if it is none.", nullptr},
        {"is_gpu", get_is_gpu, nullptr, nullptr, nullptr},
        {"threads", device_get_threads, device_set_threads, "The number of threads of kernels.",
         nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr}};
    static PyMethodDef methods[] = {
        fast<device_use, 0>("use", "Makes it the current device of the thread."),
        fast<device_enter, 0>("__enter__", "Makes it the current device in a with block."),
        fast<device_exit, 3>("__exit__", nullptr),
        fast<device_synchronize, 0>("synchronize", "Waits for all work on the device."),
        fast<device_memory, 0>("memory", "The bytes in use, at most in use, and cached."),
        {nullptr, nullptr, 0, nullptr}};
    static PyType_Slot slots[] = {
        {Py_tp_doc,
         const_cast<char*>(
             "Device(name)\n--\n\n"
             "A device of a backend, such as the one that arrays are on: \"cpu:0\", \"cuda:1\", "
             "\"@numpy\" for the host, \"@cupy:1\" or 1 for a GPU, -1 for the host. In a with "
             "block it is the current device of the thread, on which new arrays are made.")},
        {Py_tp_new, reinterpret_cast<void*>(new_device)},
        {Py_tp_dealloc, reinterpret_cast<void*>(free_object<PyDevice>)},
        {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
        {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
        {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
        {Py_tp_getset, attributes},
        {Py_tp_methods, methods},
        {0, nullptr}};
    static PyType_Spec spec{"catena.Device", sizeof(PyDevice), 0, Py_TPFLAGS_DEFAULT, slots};
    device_type = add_type(module, spec);

    static PyMethodDef functions[] = {
        {"current_device", current_device, METH_NOARGS, "The current device of the thread."},
        {"device_names", device_names, METH_NOARGS, "The names of all devices."},
        {"gpu_count", gpu_count, METH_NOARGS, nullptr},
        {"gpu_reason", gpu_reason, METH_NOARGS, nullptr},
        {"gpu", gpu, METH_O, nullptr},
        {"init_gpu", init_gpu, METH_O, nullptr},
        {"shutdown_gpus", shutdown_gpus, METH_NOARGS, nullptr},
        {"set_gpu_backend", set_gpu_backend, METH_O, nullptr},
        {"load_plugin", load_one, METH_O,
         "load_plugin(path, /)\n--\n\nLoads a plugin from a file. Its functions are then found."},
        {"load_plugins", load_folder, METH_O,
         "load_plugins(folder, /)\n--\n\nLoads all plugins of a folder."},
        {"plugin_report", report, METH_NOARGS, "What was loaded and refused, as text."},
        fast<get_flag, 2>("get_flag", nullptr),
        fast<set_flag, 3>("set_flag", nullptr),
        {"set_seed", set_seed, METH_O, nullptr},
        {"dtype", dtype_of, METH_O, nullptr},
        {"random_state", get_random_state, METH_O,
         "random_state(device, /)\n--\n\nThe seed and the position of the device's random "
         "numbers."},
        {"set_random_state", put_random_state, METH_VARARGS,
         "set_random_state(device, seed, offset, /)\n--\n\nContinues at a position."},
        fast<run_grad, 7>("grad", nullptr),
        fast<run_backward_from_all, 3>("backward", nullptr),
        {"from_dlpack", run_from_dlpack, METH_O,
         "from_dlpack(object, /)\n--\n\nA catena.Array that shares the memory of another library's "
         "array."},
        {"as_array", as_array, METH_O, "as_array(object, /)\n--\n\nA catena.Array of any array."},
        {"as_python", as_python, METH_O, nullptr},
        {nullptr, nullptr, 0, nullptr}};
    checked(PyModule_AddFunctions(module, functions));
}

}  // namespace catena::python
