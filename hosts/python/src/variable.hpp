// catena.Variable, and its parts that other files of the module use.
#pragma once

#include "array.hpp"

namespace catena::python {

// What Python last saw of an array: the same object is returned until the array is replaced.
struct Seen {
    PyObject* object = nullptr;
    Array array;
};

struct PyVariable {
    PyObject_HEAD Variable variable;  // empty: a parameter without a shape, or Variable(None)
    Seen data, grad;
    PyObject* dict;
    PyObject* weak_references;
};
extern PyTypeObject* variable_type;

inline bool is_variable(PyObject* object) {
    return Py_TYPE(object) == variable_type || PyObject_TypeCheck(object, variable_type) != 0;
}
Owned wrap(Variable variable);
Owned wrap_all(std::vector<Variable> variables);  // a tuple

// The object's variable; an array becomes a constant, which `made` keeps. None, and a variable
// without an array, are an empty variable. Raises TypeError for anything else.
const Variable& variable_of(PyObject* object, Variable& made, std::string_view what);
inline Variable variable_of(PyObject* object, std::string_view what) {
    Variable made;
    return variable_of(object, made, what);
}
// A list or tuple of such; one variable or array counts as a list.
std::vector<Variable> variables_of(PyObject* object, std::string_view what);

// Visits the Python objects that the graph behind the variable owns, and that nothing else reaches.
int visit_graph(const Variable& variable, visitproc visit, void* argument);

void add_variable(PyObject* module);

}  // namespace catena::python
