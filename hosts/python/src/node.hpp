// Calls in the graph as Python sees them, and functions that Python defines.
#pragma once

#include "variable.hpp"

namespace catena::python {

// The catena.FunctionNode that Python defined for the call, or a description of another call.
Owned python_call(GraphNode& call);
// The catena.VariableNode of a variable.
Owned python_node(VariableNode& node);

void add_nodes(PyObject* module);

}  // namespace catena::python
