// Files of datasets in Python.
#include "settings.hpp"

namespace catena::python {
namespace {

PyObject* py_read_idx(PyObject*, PyObject* const* args, Py_ssize_t n) {
    return guarded([&] {
        if (n != 2) raise(PyExc_TypeError, "read_idx: expected 2 arguments");
        PyObject* bytes = nullptr;
        if (PyUnicode_FSConverter(args[0], &bytes) == 0) throw PythonError();
        const Owned path(bytes);
        const int ndim = narrow(integer_of(args[1]), "[read_idx] ndim");
        const Array array = [&] {
            const WithoutLock others;
            const IdxFile file = read_idx(PyBytes_AsString(bytes), ndim);
            return Array::from(file.values, Shape(file.shape), cuda::host());
        }();
        return to_python(array).release();
    });
}

PyObject* py_data_folders(PyObject*, PyObject* name) {
    return guarded([&] {
        Owned list = checked(PyList_New(0));
        for (const auto& folder : data_folders(std::string(text_of(name))))
            checked(PyList_Append(list.get(),
                                  checked(PyUnicode_DecodeFSDefault(folder.c_str())).get()));
        return list.release();
    });
}

}  // namespace

void add_data(PyObject* module) {
    static PyMethodDef functions[] = {
        fast(
            "read_idx", py_read_idx,
            "read_idx(path, ndim, /)\n--\n\nThe bytes of an IDX file, which may be compressed with "
            "gzip, as an array with ndim axes."),
        {"data_folders", py_data_folders, METH_O,
         "data_folders(name, /)\n--\n\nThe folders in which a dataset is looked for."},
        {nullptr, nullptr, 0, nullptr}};
    checked(PyModule_AddFunctions(module, functions));
}

}  // namespace catena::python
