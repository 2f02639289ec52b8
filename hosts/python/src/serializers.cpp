// See serializers.hpp.
#include "serializers.hpp"

#include <catena/read_file.hpp>
#include <catena/serializer.hpp>

#include <map>

namespace catena::python {
namespace {

class NamedArrays final : public Visitable {
public:
    void visit(Visitor& visitor) override {
        for (auto& [name, array] : arrays) visitor(name, array);
    }
    std::map<std::string, Array> arrays;
};

// store(name, value) for each entry of a dict.
void each_entry(PyObject* dict, const auto& store) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t place = 0;
    while (PyDict_Next(dict, &place, &key, &value) != 0) store(std::string(text_of(key)), value);
}

// save_safetensors(file, arrays): a dict of arrays.
PyObject* run_save(PyObject*, PyObject* args) {
    return guarded([&]() -> PyObject* {
        const char* file = nullptr;
        PyObject* dict = nullptr;
        if (PyArg_ParseTuple(args, "sO!:save_safetensors", &file, &PyDict_Type, &dict) == 0)
            throw PythonError();
        NamedArrays all;
        each_entry(dict, [&](const std::string& name, PyObject* value) {
            all.arrays[name] = array_of(value, "[save_safetensors] " + name);
        });
        {
            const WithoutLock others;
            save_safetensors(file, all);
        }
        Py_RETURN_NONE;
    });
}

// load_safetensors(file, kinds): the arrays of a dict with a dtype and a shape for each name.
PyObject* run_load(PyObject*, PyObject* args) {
    return guarded([&]() -> PyObject* {
        const char* file = nullptr;
        PyObject* dict = nullptr;
        if (PyArg_ParseTuple(args, "sO!:load_safetensors", &file, &PyDict_Type, &dict) == 0)
            throw PythonError();
        NamedArrays all;
        each_entry(dict, [&](const std::string& name, PyObject* value) {
            PyObject *dtype = nullptr, *shape = nullptr;
            const std::string what = "[load_safetensors] " + name;
            expect(PyTuple_Check(value) != 0, what, "a tuple of a dtype and a shape", value);
            if (PyArg_ParseTuple(value, "OO", &dtype, &shape) == 0) throw PythonError();
            all.arrays[name] = Array::empty(shape_of(shape, what), dtype_from(dtype, what));
        });
        {
            const WithoutLock others;
            LoadOptions options;
            options.strict = false;
            load_safetensors(file, all, options);
        }
        Owned result = checked(PyDict_New());
        for (auto& [name, array] : all.arrays)
            checked(PyDict_SetItemString(result.get(), name.c_str(), wrap(array).get()));
        return result.release();
    });
}

// file_kind(file): what a file is, for messages; "" if that is unknown.
PyObject* run_file_kind(PyObject*, PyObject* file) {
    return guarded([&]() -> PyObject* {
        PyObject* bytes = nullptr;
        if (PyUnicode_FSConverter(file, &bytes) == 0) throw PythonError();
        const Owned owned(bytes);
        char* name = nullptr;
        if (PyBytes_AsStringAndSize(bytes, &name, nullptr) != 0) throw PythonError();
        const std::string text =
            file_kind(name);  // may quote a folder's name, which can have any bytes
        return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                                    "backslashreplace");
    });
}

}  // namespace

void add_serializers(PyObject* module) {
    static PyMethodDef methods[] = {{"save_safetensors", run_save, METH_VARARGS, nullptr},
                                    {"load_safetensors", run_load, METH_VARARGS, nullptr},
                                    {"file_kind", run_file_kind, METH_O, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};
    checked(PyModule_AddFunctions(module, methods));
}

}  // namespace catena::python
