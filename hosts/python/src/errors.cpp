// Exceptions of C++ as exceptions of Python, and back.
#include "python.hpp"

#include <catena/catena.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <new>
#include <thread>

#include <unistd.h>

namespace catena::python {
namespace {

// The end of the interpreter has begun, or is over. While it lasts, only its thread can use Python.
std::atomic<bool> ending = false, over = false;
thread_local bool ends_interpreter = false;
bool sees_the_end = false;

struct Classes {
    PyObject *error, *invalid_type, *invalid, *dtype, *shape, *unsupported, *memory, *device,
        *internal, *not_differentiable, *value, *nan, *plugin, *graph, *data, *index;
};
Classes classes{};

PyObject* class_of(const Error& error) {
    if (dynamic_cast<const PluginError*>(&error) != nullptr) return classes.plugin;
    if (dynamic_cast<const GraphError*>(&error) != nullptr) return classes.graph;
    if (dynamic_cast<const DataError*>(&error) != nullptr) return classes.data;
    switch (error.status()) {
        case CATENA_E_DTYPE: return classes.dtype;
        case CATENA_E_SHAPE: return classes.shape;
        case CATENA_E_UNSUPPORTED: return classes.unsupported;
        case CATENA_E_NOMEM: return classes.memory;
        case CATENA_E_DEVICE: return classes.device;
        case CATENA_E_INTERNAL: return classes.internal;
        case CATENA_E_NOT_DIFFERENTIABLE: return classes.not_differentiable;
        case CATENA_E_VALUE: return classes.value;
        default: return classes.invalid;
    }
}

PyObject* note_end(PyObject*, PyObject*) {
    ends_interpreter = sees_the_end;
    ending = true;
    Py_RETURN_NONE;
}
PyMethodDef note_end_method{"_note_end", note_end, METH_NOARGS, nullptr};

}  // namespace

bool interpreter_runs() noexcept {
    return ending ? ends_interpreter && !over : Py_IsInitialized() != 0;
}

void wait_for_the_end() noexcept {
    for (;;) pause();
}

struct PythonError::State {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    std::string text;
    ~State() {
        for (PyObject* const each : {type, value, traceback}) drop_anywhere(each);
    }
};

PythonError::PythonError() : state_(std::make_shared<State>()) {
    PyErr_Fetch(&state_->type, &state_->value, &state_->traceback);
    if (state_->type == nullptr) return;
    PyErr_NormalizeException(&state_->type, &state_->value, &state_->traceback);
    const Owned text(PyObject_Str(state_->value));
    const char* const utf8 = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
    if (utf8 != nullptr) state_->text = utf8;
    else PyErr_Clear();
}

const char* PythonError::what() const noexcept { return state_->text.c_str(); }

void PythonError::restore() const {
    Py_XINCREF(state_->type);
    Py_XINCREF(state_->value);
    Py_XINCREF(state_->traceback);
    PyErr_Restore(state_->type, state_->value, state_->traceback);
}

namespace {

// The text may quote a file name.
void set_error(PyObject* type, std::string_view text) noexcept {
    const Owned message = text_of_any_bytes(text);
    if (message) PyErr_SetObject(type, message.get());
}

// Without the places of calls that the debug mode adds: here they are functions of the interpreter.
std::string without_places(std::string text) {
    constexpr std::string_view begin = "; the call was made at\n  ";
    for (std::size_t at; (at = text.find(begin)) != text.npos;) {
        std::size_t end = text.find('\n', at) + 1;
        while (text.compare(end, 2, "  ") == 0)
            end = std::min(text.find('\n', end), text.size() - 1) + 1;
        text.replace(at, end - at, end == text.size() ? "" : "\n");
    }
    return text;
}

}  // namespace

std::string with_advice(std::string text) {
    const auto has = [&](const char* part) { return text.find(part) != text.npos; };
    if (has("expected a device of ") && has("got 'cuda") && !has("cuda ("))
        text += "\nGPUs need the package catena-cuda: pip install catena-cuda";
    return text;
}

void raise(PyObject* type, const std::string& message) {
    set_error(type, message);
    throw PythonError();
}

void set_python_error() noexcept {
    try {
        throw;
    } catch (const PythonError& error) {
        error.restore();
    } catch (const NanError& error) {
        set_error(classes.nan, without_places(error.what()));
    } catch (const Error& error) {
        set_error(class_of(error), with_advice(error.what()));
    } catch (const std::bad_alloc&) {
        set_error(classes.memory, "expected enough memory, got too little");
    } catch (const std::exception& error) {
        set_error(classes.error, error.what());
    } catch (...) {
        set_error(classes.error, "unknown C++ exception");
    }
}

void expect(bool is, std::string_view what, const char* expected, PyObject* got) {
    if (!is)
        raise(PyExc_TypeError,
              std::string(what) + ": expected " + expected + ", got " + type_name(got));
}

std::string_view text_of(PyObject* string) {
    if (PyUnicode_Check(string) == 0)
        raise(PyExc_TypeError, "expected a str, got " + type_name(string));
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(string, &size);
    if (text == nullptr) throw PythonError();
    return {text, static_cast<std::size_t>(size)};
}

Owned text_of_any_bytes(std::string_view text) {
    return Owned(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                                      "backslashreplace"));
}

std::string path_of(PyObject* object) {
    PyObject* bytes = nullptr;
    if (PyUnicode_FSConverter(object, &bytes) == 0) throw PythonError();
    const Owned owned(bytes);
    return PyBytes_AsString(bytes);
}

std::string type_name(PyObject* object) {
    const auto type = as<PyObject>(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    const Owned name = checked(PyObject_GetAttrString(type, "__qualname__"));
    const Owned module(PyObject_GetAttrString(type, "__module__"));
    if (!module) PyErr_Clear();
    const std::string text(text_of(name.get()));
    if (!module || PyUnicode_Check(module.get()) == 0) return text;
    const std::string_view where = text_of(module.get());
    return where == "builtins" ? text : std::string(where) + '.' + text;
}

PyTypeObject* add_type(PyObject* module, Type parts) {
    static auto* const all = new std::deque<Type>();  // as long as the types
    Type& kept = all->emplace_back(std::move(parts));
    const auto add = [&](int slot, auto& list) {
        list.emplace_back();
        kept.slots.push_back({slot, list.data()});
    };
    add(Py_tp_getset, kept.attributes);
    add(Py_tp_methods, kept.methods);
    add(Py_tp_members, kept.members);
    kept.slots.push_back({Py_tp_doc, const_cast<char*>(kept.doc)});
    kept.slots.emplace_back();
    PyType_Spec spec{kept.name, static_cast<int>(kept.size), 0, kept.flags, kept.slots.data()};
    Owned type = checked(PyType_FromSpec(&spec));
    const Owned members = checked(PyImport_ImportModule("catena._members"));
    checked(PyObject_CallMethod(members.get(), "add_members", "O", type.get()));
    const char* const name = std::strrchr(spec.name, '.') + 1;
    checked(PyObject_SetAttrString(module, name, type.get()));
    return reinterpret_cast<PyTypeObject*>(type.release());
}

void add_functions(PyObject* module, std::vector<PyMethodDef> functions) {
    static auto* const all = new std::deque<std::vector<PyMethodDef>>();  // as long as the module
    functions.emplace_back();
    checked(PyModule_AddFunctions(module, all->emplace_back(std::move(functions)).data()));
}

void add_errors(PyObject* module) {
    const auto add = [&](const char* name, const char* doc, PyObject* base, PyObject* other) {
        const Owned bases = other == nullptr ? checked(PyTuple_Pack(1, base))
                                             : checked(PyTuple_Pack(2, base, other));
        const std::string full = std::string("catena.") + name;
        Owned made = checked(PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.get(), nullptr));
        checked(PyObject_SetAttrString(module, name, made.get()));
        return made.release();
    };
    Classes& c = classes;
    c.error = add("Error", "The base class of catena's exceptions.", PyExc_Exception, nullptr);
    c.invalid_type =
        add("InvalidType", "Arrays of a wrong number, shape or dtype.", c.error, nullptr);
    c.shape = add("ShapeError", "Shapes do not fit.", c.invalid_type, PyExc_ValueError);
    c.dtype = add("DtypeError", "Dtypes do not fit.", c.invalid_type, PyExc_TypeError);
    c.invalid = add("InvalidError", "An argument is wrong.", c.error, PyExc_ValueError);
    c.index =
        add("InvalidIndexError", "An index does not fit an array.", c.invalid, PyExc_IndexError);
    c.value = add("InvalidValueError", "An element of an array is wrong, such as a label.", c.error,
                  PyExc_ValueError);
    c.nan = add("NanError", "The debug mode found a NaN.", c.value, PyExc_RuntimeError);
    c.unsupported = add("UnsupportedError", "No plugin or device can compute it.", c.error,
                        PyExc_NotImplementedError);
    c.memory =
        add("OutOfMemoryError", "A device has not enough memory.", c.error, PyExc_MemoryError);
    c.device = add("DeviceError", "A device is missing, or failed.", c.error, PyExc_RuntimeError);
    c.internal = add("InternalError", "A plugin or catena has a bug.", c.error, PyExc_RuntimeError);
    c.not_differentiable = add("NotDifferentiableError", "A function has no such gradient.",
                               c.error, PyExc_RuntimeError);
    c.plugin = add("PluginError", "A plugin, or its function, is missing or was refused.", c.error,
                   PyExc_LookupError);
    c.graph =
        add("GraphError", "The graph cannot be used in this way.", c.error, PyExc_RuntimeError);
    c.data = add("DataError", "A file cannot be read or written.", c.error, PyExc_OSError);

    sees_the_end = Py_AtExit([] {
                       over = true;
                       for (int ms = 0; Working::count() > 0 && ms < 5000; ++ms)
                           std::this_thread::sleep_for(std::chrono::milliseconds(1));
                   }) == 0;
    const Owned function = checked(PyCFunction_NewEx(&note_end_method, nullptr, nullptr));
    const Owned atexit = checked(PyImport_ImportModule("atexit"));
    checked(PyObject_CallMethod(atexit.get(), "register", "O", function.get()));
}

PyObject* python_class_of_index_errors() { return classes.index; }
PyObject* python_class_of_shape_errors() { return classes.shape; }

}  // namespace catena::python
