// Functions of several results, differentiable to any order. Results may share the memory of x.
// They throw ShapeError for shapes and axes that do not fit, InvalidError for empty handles.
#pragma once

#include <catena/lists.hpp>

namespace catena::functions {

// The parts along an axis, without that axis: the inverse of stack().
std::vector<Variable> separate(const Variable& x, int axis = 0);
std::vector<Array> separate(const Array& x, int axis = 0);
// Repeats arrays so that all have the shape to which they broadcast.
std::vector<Variable> broadcast(const VariableList& xs);
std::vector<Array> broadcast(const ArrayList& xs);

}  // namespace catena::functions
