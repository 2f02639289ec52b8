// Devices, plugins, the configuration, random numbers, and grad().
#include "dlpack.hpp"
#include "operators.hpp"
#include "parts.hpp"

#include <catena/core/grad.hpp>

#include <fmt/format.h>

#include <charconv>

namespace catena::python {
namespace {

PyTypeObject* device_type = nullptr;

PyObject* new_device(PyTypeObject*, PyObject* args, PyObject* kwargs) {
    return result_of([&] {
        PyObject* name = nullptr;
        parse(args, kwargs, "O:Device", {"name"}, &name);
        return python_device(device_from(name));
    });
}
PyObject* device_repr(PyObject* self) {
    return result_of([&] { return fmt::format("catena.Device('{}')", held<Device>(self).name()); });
}
PyObject* device_compare(PyObject* left, PyObject* right, int operation) {
    if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(right) != device_type)
        return ask_the_other();
    return compare_addresses(held<Device>(left).state(), held<Device>(right).state(), operation);
}
Py_hash_t device_hash(PyObject* self) { return hash_of(held<Device>(self).state()); }

// The number of a GPU; -1 for other devices.
int gpu_number(Device device) {
    if (!cuda::is_gpu(device)) return -1;
    return device.ordinal() - (device.backend() == cuda::host().backend() ? 1 : 0);
}

std::string device_name(PyObject* self) { return held<Device>(self).name(); }
std::string_view device_backend(PyObject* self) { return held<Device>(self).backend(); }
int device_ordinal(PyObject* self) { return held<Device>(self).ordinal(); }
bool device_host_accessible(PyObject* self) { return held<Device>(self).host_accessible(); }
int device_id(PyObject* self) { return gpu_number(held<Device>(self)); }
bool device_is_gpu(PyObject* self) { return cuda::is_gpu(held<Device>(self)); }
int device_threads(PyObject* self) { return held<Device>(self).threads(); }
void set_device_threads(PyObject* self, PyObject* value) {
    const std::int64_t threads = integer_of(not_deleted(value));
    held<Device>(self).set_threads(narrow(threads, "[catena.Device] threads"));
}

// The devices that were current before the `with` blocks that the thread is in.
std::vector<Device>& devices_before() {
    static thread_local constinit PerThread<std::vector<Device>> devices;
    return devices.get();
}
Owned device_enter(PyObject* self) {
    std::vector<Device>& before = devices_before();
    before.push_back(Device::current());
    try {
        use_device(held<Device>(self));
    } catch (...) {
        before.pop_back();
        throw;
    }
    return Owned::borrow(self);
}
void device_exit(PyObject*, PyObject*, PyObject*, PyObject*) {
    std::vector<Device>& before = devices_before();
    if (before.empty()) raise(PyExc_RuntimeError, "[Device] __exit__: without __enter__");
    use_device(before.back());
    before.pop_back();
}
void device_use(PyObject* self) { use_device(held<Device>(self)); }
void device_synchronize(PyObject* self) {
    const WithoutLock others;
    held<Device>(self).synchronize();
}
PyObject* device_memory(PyObject* self) {
    const MemoryStats stats = held<Device>(self).memory();
    return Py_BuildValue("{sLsLsLsL}", "in_use", stats.in_use, "peak", stats.peak, "cached",
                         stats.cached, "system_calls", stats.system_calls);
}

Owned current_device(PyObject*) { return python_device(Device::current()); }
Owned device_names(PyObject*) {
    Owned list = checked(PyList_New(0));
    for (const std::string& name : Device::list())
        checked(PyList_Append(list.get(), python_text(name).get()));
    return list;
}

int gpu_count(PyObject*) { return cuda::device_count(); }
std::string gpu_reason(PyObject*) { return with_advice(cuda::reason()); }
void set_gpu_backend(PyObject*, PyObject* name) { cuda::set_backend(text_of(name)); }
Owned gpu(PyObject*, PyObject* number) {
    return python_device(number == Py_None ? cuda::get_device() : device_from(number));
}

void init_gpu(PyObject*, PyObject* device) {
    if (device == Py_None) cuda::init();
    else cuda::init(device_from(device));
}
void shutdown_gpus(PyObject*) {
    const WithoutLock others;
    cuda::shutdown();
}

// ---- plugins

void load_one(PyObject*, PyObject* path) {
    const std::string name = path_of(path);
    const WithoutLock others;
    load_plugin(name);
}
void load_folder(PyObject*, PyObject* path) {
    const std::string name = path_of(path);
    const WithoutLock others;
    load_plugins(name);
}
Owned report(PyObject*) { return text_of_any_bytes(to_string(plugin_report())); }

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
PyObject* get_flag(PyObject*, PyObject* flag_name, PyObject* of_all_threads) {
    const Config& from = of_all_threads == Py_True ? global_config() : config();
    const std::string_view name = text_of(flag_name);
    if (const auto flag = flag_of(name)) return PyBool_FromLong(from.*flag);
    if (name == "products") return PyLong_FromUnsignedLong(static_cast<unsigned>(from.products));
    const auto found = from.named.find(name);
    if (found == from.named.end()) return none().release();
    return PyLong_FromLongLong(found->second);
}
// set_flag(name, value, of_all_threads); None removes a named setting.
void set_flag(PyObject*, PyObject* flag_name, PyObject* value, PyObject* of_all_threads) {
    Config& to = of_all_threads == Py_True ? global_config() : config();
    const std::string name(text_of(flag_name));
    if (const auto flag = flag_of(name)) {
        to.*flag = truth_of(value);
    } else if (value == Py_None) {
        to.named.erase(name);
    } else {
        const std::int64_t number = integer_of(value);
        if (name == "products") to.products = static_cast<Products>(number);
        else to.named.insert_or_assign(name, number);
    }
}

void set_seed(PyObject*, PyObject* value) {
    const Owned integer = checked(PyNumber_Index(value));
    const unsigned long long number = PyLong_AsUnsignedLongLong(integer.get());
    if (PyErr_Occurred() != nullptr) throw PythonError();
    seed(number);
}

PyObject* get_random_state(PyObject*, PyObject* device) {
    const RandomState state = random_state(device_from(device));
    return Py_BuildValue("KK", static_cast<unsigned long long>(state.seed),
                         static_cast<unsigned long long>(state.offset));
}
void put_random_state(PyObject*, PyObject* args) {
    PyObject* device = nullptr;
    unsigned long long seed = 0, offset = 0;
    parse(args, "OKK", &device, &seed, &offset);
    set_random_state(device_from(device), {seed, offset});
}

Variables variables_or_none(PyObject* object, std::string_view what) {
    return object == Py_None ? Variables() : variables_of(object, what);
}

Owned run_grad(PyObject*, PyObject* ys, PyObject* xs, PyObject* grad_ys, PyObject* grad_xs,
               PyObject* set_grad, PyObject* retain_grad, PyObject* double_backprop) {
    const Variables outputs = variables_of(ys, "[grad] outputs");
    const Variables inputs = variables_of(xs, "[grad] inputs");
    const Variables grad_outputs = variables_or_none(grad_ys, "[grad] grad_outputs");
    const Variables grad_inputs = variables_or_none(grad_xs, "[grad] grad_inputs");
    const GradOptions options{set_grad == Py_True, retain_grad == Py_True,
                              double_backprop == Py_True};
    return wrap_all([&] {
        const WithoutLockOn others(InUse::By::gradients,
                                   pointers_to({outputs, inputs, grad_outputs, grad_inputs}));
        return grad(outputs, inputs, grad_outputs, grad_inputs, options);
    }());
}

void run_backward_from_all(PyObject*, PyObject* ys, PyObject* grad_ys, PyObject* double_backprop) {
    const Variables outputs = variables_of(ys, "[backward] outputs");
    const Variables grad_outputs = variables_or_none(grad_ys, "[backward] grad_outputs");
    BackwardOptions options;
    options.enable_double_backprop = double_backprop == Py_True;
    const WithoutLockOn others(InUse::By::gradients, pointers_to({outputs, grad_outputs}));
    backward(outputs, grad_outputs, options);
}

Owned dtype_of(PyObject*, PyObject* object) { return python_dtype(dtype_from(object, "[dtype]")); }
Owned run_from_dlpack(PyObject*, PyObject* object) {
    return wrap(from_dlpack(object, "[from_dlpack]"));
}
Owned as_array(PyObject*, PyObject* object) { return wrap(array_of(object, "[as_array]")); }
Owned as_python(PyObject*, PyObject* object) { return to_python(array_of(object, "[to_numpy]")); }

}  // namespace

Owned python_device(Device device) { return device ? hold(device_type, device) : none(); }

Device device_from(PyObject* object) {
    if (Py_TYPE(object) == device_type) return held<Device>(object);
    const auto numbered = [](std::int64_t id) {
        return id < 0 ? cuda::host()
                      : cuda::get_device(static_cast<int>(std::min<std::int64_t>(id, 1000000)));
    };
    if (PyUnicode_Check(object) != 0) {
        const std::string_view name = text_of(object);
        if (name == "@numpy") return cuda::host();
        const std::string_view number = name.substr(name.starts_with("@cupy:") ? 6 : 0);
        std::int64_t id = 0;
        const auto [end, error] = std::from_chars(number.begin(), number.end(), id);
        if (error == std::errc() && end == number.end()) return numbered(id);
        if (name.starts_with('@'))
            raise(PyExc_ValueError, "[Device] name: expected '@numpy' or '@cupy:NUMBER', got '" +
                                        std::string(name) + '\'');
        return Device::get(name);
    }
    if (PyIndex_Check(object) != 0) return numbered(integer_of(object));
    raise(PyExc_TypeError,
          "[Device] name: expected a catena.Device, a name such as 'cpu:0', the number of a GPU, "
          "or a negative number for the host, got " +
              type_name(object));
}

void add_settings(PyObject* module) {
    device_type = add_type(
        module,
        {.name = "catena.Device",
         .doc = "Device(name)\n--\n\n"
                "A device of a backend, such as the one that arrays are on: \"cpu:0\", \"cuda:1\", "
                "\"@numpy\" for the host, \"@cupy:1\" or 1 for a GPU, -1 for the host. In a with "
                "block it is the current device of the thread, on which new arrays are made.",
         .size = sizeof(Holder<Device>),
         .attributes = {property<device_name>("name", "\"BACKEND:NUMBER\""),
                        property<device_backend>("backend",
                                                 "The part of the name before the colon."),
                        property<device_ordinal>("ordinal", "The number after the colon."),
                        property<device_host_accessible>(
                            "host_accessible", "Whether NumPy can share the memory of its arrays."),
                        property<device_id>("id", "The number of the GPU; -1 if it is none."),
                        property<device_is_gpu>("is_gpu"),
                        property<device_threads, set_device_threads>(
                            "threads", "The number of threads of kernels.")},
         .methods = {method<device_use>("use", "Makes it the current device of the thread."),
                     method<device_enter>("__enter__",
                                          "Makes it the current device in a with block."),
                     method<device_exit>("__exit__"),
                     method<device_synchronize>("synchronize", "Waits for all work on the device."),
                     method<device_memory>("memory",
                                           "The bytes in use, at most in use, and cached.")},
         .slots = {slot(Py_tp_new, new_device), slot(Py_tp_dealloc, free_object<Device>),
                   slot(Py_tp_repr, device_repr), slot(Py_tp_richcompare, device_compare),
                   slot(Py_tp_hash, device_hash)}});

    add_functions(
        module,
        {method<current_device>("current_device", "The current device of the thread."),
         method<device_names>("device_names", "The names of all devices."),
         method<gpu_count>("gpu_count"),
         method<gpu_reason>("gpu_reason"),
         method<gpu>("gpu"),
         method<init_gpu>("init_gpu"),
         method<shutdown_gpus>("shutdown_gpus"),
         method<set_gpu_backend>("set_gpu_backend"),
         method<load_one>("load_plugin",
                          "load_plugin(path, /)\n--\n\nLoads a plugin from a file. Its functions "
                          "are then found."),
         method<load_folder>("load_plugins",
                             "load_plugins(folder, /)\n--\n\nLoads all plugins of a folder."),
         method<report>("plugin_report", "What was loaded and refused, as text."),
         method<get_flag>("get_flag"),
         method<set_flag>("set_flag"),
         method<set_seed>("set_seed"),
         method<dtype_of>("dtype"),
         method<get_random_state>(
             "random_state",
             "random_state(device, /)\n--\n\nThe seed and the position of the device's random "
             "numbers."),
         with_tuple<put_random_state>(
             "set_random_state",
             "set_random_state(device, seed, offset, /)\n--\n\nContinues at a position."),
         method<run_grad>("grad"),
         method<run_backward_from_all>("backward"),
         method<run_from_dlpack>("from_dlpack",
                                 "from_dlpack(object, /)\n--\n\nA catena.Array that shares the "
                                 "memory of another library's "
                                 "array."),
         method<as_array>("as_array", "as_array(object, /)\n--\n\nA catena.Array of any array."),
         method<as_python>("as_python")});
}

}  // namespace catena::python
