// Functions of several results, copies to devices, indexing with the keys of NumPy.
#include "forms.hpp"

#include <catena/fail.hpp>
#include <catena/functions/indexing.hpp>

namespace catena::python {
namespace {

namespace F = functions;
using Ints64 = std::vector<std::int64_t>;

void add_lists(Forms& forms) {
    forms("separate(x, axis=0)", "The parts along an axis, without that axis.",
          [](const Variable& x, int axis) { return F::separate(x, axis); });
    forms("split_axis(x, indices_or_sections, axis, force_tuple=True)",
          "Splits an array along an axis: into a number of equal sections, or before each of the\n"
          "indices. A tuple; without force_tuple, a single section is a variable.",
          [](const Variable& x, PyObject* where, int axis, bool force_tuple) {
              const bool sections = PyIndex_Check(where) != 0 && PySequence_Check(where) == 0;
              const Ints64 numbers = integers_of(where, "[split_axis] indices_or_sections");
              Variables parts =
                  sections ? F::split_axis(x, numbers[0], axis) : F::split_axis(x, numbers, axis);
              return parts.size() == 1 && !force_tuple ? wrap(parts[0])
                                                       : wrap_all(std::move(parts));
          });
    forms("_broadcast(xs)", "Repeats arrays to the shape to which all broadcast.",
          [](const Variables& xs) { return F::broadcast(xs); });
}

void add_copies(Forms& forms) {
    forms("_copy_to_gpu(x, gpu)", "A copy on the GPU with a number; -1 is the host.",
          [](const Variable& x, int gpu) { return F::copy(x, gpu); });
    forms("_copy_to_device(x, device)", "A copy on a device.",
          [](const Variable& x, Device device) { return F::copy(x, device); });
}

void add_indexing(Forms& forms) {
    forms("get_item(x, slices)", "x[slices], with the keys of NumPy.",
          [](const Variable& x, PyObject* slices) { return subscript(x, slices); });
    forms("set_item(x, slices, value)",
          "x, but with x[slices] replaced by a value, which broadcasts.",
          [](const Variable& x, PyObject* slices, const Variable& value) {
              return F::set_item(x, indices_of(slices), value);
          });
    forms("nonzero(x)", "The indices of the elements that are not 0: int64, (n, ndim).",
          [](const Variable& x) { return F::nonzero(x.data()); });
    forms("scatter_add(a, slices, b)", "a, but with b, which broadcasts, added to a[slices].",
          [](const Variable& a, PyObject* slices, const Variable& b) {
              const Array all = F::arange(a.size(), {}, a.device()).reshape(a.shape());
              const Array places = subscript(all, slices);
              const Variable flat =
                  F::index_add(F::flatten(a), 0, as_variable(places.reshape({places.size()})),
                               F::flatten(F::broadcast_to(b, places.shape())));
              return F::reshape(flat, a.shape());
          });
}

}  // namespace

void add_shape_forms(Forms& forms) {
    add_lists(forms);
    add_copies(forms);
    add_indexing(forms);
}

}  // namespace catena::python
