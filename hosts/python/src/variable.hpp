// catena.Variable, and its parts that other files of the module use.
#pragma once

#include "array.hpp"
#include "in_use.hpp"

namespace catena::python {

// The Python object of an array: the same one is returned until the array is replaced.
struct Seen {
    PyObject* object = nullptr;
    Array array;
};

// The properties of a variable that has no array yet.
struct Waiting {
    std::string name;
    Device device;  // empty: the host
    bool requires_grad = true;
    bool is_parameter = false;
    char first_grad = '0';  // of a parameter: 'n' NaN, 'z' zeros, '0' none
};

struct PyVariable {
    PyObject_HEAD Variable variable;  // empty: a parameter without a shape, or Variable(None)
    Seen data, grad;
    PyObject* grad_variable;  // a weak reference to what grad_var last returned or received
    std::unique_ptr<Waiting> waiting;  // null: the defaults, or there is an array
    PyObject* dict;
    PyObject* weak_references;
};
extern PyTypeObject* variable_type;

inline bool is_variable(PyObject* object) {
    return Py_TYPE(object) == variable_type || PyObject_TypeCheck(object, variable_type) != 0;
}
Owned wrap(Variable variable);
Owned wrap_all(std::vector<Variable> variables);  // a tuple

// The object's variable; an array becomes a constant, which `made` keeps, and None an empty
// variable. Raises RuntimeError for a variable without an array, TypeError for anything else.
const Variable& variable_of(PyObject* object, Variable& made, std::string_view what);
inline Variable variable_of(PyObject* object, std::string_view what) {
    Variable made;
    return variable_of(object, made, what);
}
// A list or tuple of such; one variable or array counts as a list.
std::vector<Variable> variables_of(PyObject* object, std::string_view what);

// False for an empty handle, and for the data of a variable of which the graph keeps the shape alone.
bool has_memory(const Array& array);

[[noreturn]] void raise_without_array(PyObject* error);
// The variable of a catena.Variable. Raises `error` if it has no array.
inline const Variable& present(PyObject* object, PyObject* error = PyExc_RuntimeError) {
    const Variable& variable = as<PyVariable>(object)->variable;
    if (!variable) raise_without_array(error);
    return variable;
}
// The data of a variable. Raises RuntimeError without an array, GraphError without memory.
const Array& data_of(PyObject* variable);

// For the garbage collector: visits the objects of Python that belong to roots.
int visit_graph(std::span<const Ref<VariableNode>> roots, visitproc visit, void* argument);

void add_variable(PyObject* module);

}  // namespace catena::python
