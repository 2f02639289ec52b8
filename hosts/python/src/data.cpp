// Files of datasets in Python.
#include "array.hpp"
#include "parts.hpp"

namespace catena::python {
namespace {

Owned py_read_idx(PyObject*, PyObject* file_name, PyObject* axes) {
    const std::string path = path_of(file_name);
    const int ndim = narrow(integer_of(axes), "[read_idx] ndim");
    const Array array = [&] {
        const WithoutLock others;
        const IdxFile file = read_idx(path, ndim);
        return Array::from(file.values, Shape(file.shape), cuda::host());
    }();
    return to_python(array);
}

Owned py_data_folders(PyObject*, PyObject* name) {
    Owned list = checked(PyList_New(0));
    for (const auto& folder : data_folders(std::string(text_of(name))))
        checked(
            PyList_Append(list.get(), checked(PyUnicode_DecodeFSDefault(folder.c_str())).get()));
    return list;
}

}  // namespace

void add_data(PyObject* module) {
    add_functions(
        module,
        {method<py_read_idx>("read_idx",
                             "read_idx(path, ndim, /)\n--\n\nThe bytes of an IDX file, which may "
                             "be compressed with "
                             "gzip, as an array with ndim axes."),
         method<py_data_folders>(
             "data_folders",
             "data_folders(name, /)\n--\n\nThe folders in which a dataset is looked for.")});
}

}  // namespace catena::python
