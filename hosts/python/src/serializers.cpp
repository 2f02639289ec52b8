// Files of arrays with names.
#include "array.hpp"
#include "parts.hpp"

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
void run_save(PyObject*, PyObject* args) {
    const char* file = nullptr;
    PyObject* dict = nullptr;
    parse(args, "sO!:save_safetensors", &file, &PyDict_Type, &dict);
    NamedArrays all;
    each_entry(dict, [&](const std::string& name, PyObject* value) {
        all.arrays[name] = array_of(value, "[save_safetensors] " + name);
    });
    const WithoutLock others;
    save_safetensors(file, all);
}

// load_safetensors(file, kinds): the arrays of a dict with a dtype and a shape for each name.
Owned run_load(PyObject*, PyObject* args) {
    const char* file = nullptr;
    PyObject* dict = nullptr;
    parse(args, "sO!:load_safetensors", &file, &PyDict_Type, &dict);
    NamedArrays all;
    each_entry(dict, [&](const std::string& name, PyObject* value) {
        PyObject *dtype = nullptr, *shape = nullptr;
        const std::string what = "[load_safetensors] " + name;
        expect(PyTuple_Check(value) != 0, what, "a tuple of a dtype and a shape", value);
        parse(value, "OO", &dtype, &shape);
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
    return result;
}

// file_kind(file): what a file is, for messages; "" if that is unknown.
Owned run_file_kind(PyObject*, PyObject* file) {
    return text_of_any_bytes(file_kind(path_of(file)));
}

}  // namespace

void add_serializers(PyObject* module) {
    add_functions(
        module, {with_tuple<run_save>("save_safetensors"), with_tuple<run_load>("load_safetensors"),
                 method<run_file_kind>("file_kind")});
}

}  // namespace catena::python
