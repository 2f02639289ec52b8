// Functions that rearrange, select and replace elements.
#include "forms.hpp"

#include <catena/fail.hpp>
#include <catena/functions/indexing.hpp>

namespace catena::python {
namespace {

namespace F = functions;
using Ints64 = std::vector<std::int64_t>;

void add_joins(Forms& forms) {
    forms("concat(xs, axis=1)", "Joins arrays along an axis.",
          [](const Variables& xs, std::int64_t axis) { return F::concat(xs, axis); });
    forms("stack(xs, axis=0)", "Joins arrays of one shape along a new axis.",
          [](const Variables& xs, int axis) { return F::stack(xs, axis); });
    forms("hstack(xs)", "Joins arrays along axis 1, or 1-d arrays along axis 0.",
          [](const Variables& xs) { return F::hstack(xs); });
    forms("vstack(xs)", "Joins arrays along axis 0; 1-d arrays become rows.",
          [](const Variables& xs) { return F::vstack(xs); });
    forms("dstack(xs)", "Joins arrays along axis 2.",
          [](const Variables& xs) { return F::dstack(xs); });
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
    forms("pad_sequence(xs, length=None, padding=0)",
          "Stacks sequences of different lengths; shorter ones end with the number `padding`.",
          [](const Variables& xs, std::optional<std::int64_t> length, double padding) {
              return F::pad_sequence(xs, length.value_or(-1), padding);
          });
}

void add_rearrangements(Forms& forms) {
    forms("expand_dims(x, axis)", "Inserts an axis of length 1, or several.",
          [](const Variable& x, const Ints64& axis) { return F::expand_dims(x, axis); });
    forms("squeeze(x, axis=None)", "Removes axes of length 1: all, or the given ones.",
          [](const Variable& x, const Axes& axis) {
              return axis ? F::squeeze(x, *axis) : F::squeeze(x);
          });
    forms("flatten(x)", "The elements as a 1-d array.",
          [](const Variable& x) { return F::flatten(x); });
    forms("moveaxis(x, source, destination)", "Moves axes to other positions.",
          [](const Variable& x, const Ints64& source, const Ints64& destination) {
              return F::moveaxis(x, source, destination);
          });
    forms("swapaxes(x, axis1, axis2)", "Exchanges two axes.",
          [](const Variable& x, int axis1, int axis2) { return F::swapaxes(x, axis1, axis2); });
    forms("rollaxis(x, axis, start=0)", "Moves an axis back until it is before axis `start`.",
          [](const Variable& x, int axis, int start) { return F::rollaxis(x, axis, start); });
    forms(
        "flip(x, axis=None)", "Reverses the order along axes; None: all.",
        [](const Variable& x, const Axes& axis) { return axis ? F::flip(x, *axis) : F::flip(x); });
    forms("fliplr(a)", "Reverses the order along axis 1.",
          [](const Variable& x) { return F::fliplr(x); });
    forms("flipud(a)", "Reverses the order along axis 0.",
          [](const Variable& x) { return F::flipud(x); });
    forms("roll(x, shift, axis=None)",
          "Moves elements along axes; those moved beyond the end continue at the beginning.",
          [](const Variable& x, const Ints64& shift, const Axes& axis) {
              if (axis) return F::roll(x, shift, *axis);
              if (shift.size() != 1)
                  fail<InvalidError>("[roll] shift: expected one number without axes, got {}",
                                     shift.size());
              return F::roll(x, shift[0]);
          });
    forms("tile(x, reps)", "Repeats the whole array along each axis.",
          [](const Variable& x, const Ints64& reps) { return F::tile(x, reps); });
    forms("repeat(x, repeats, axis=None)",
          "Repeats each element along an axis, or of the flattened array.",
          [](const Variable& x, const Ints64& repeats, std::optional<int> axis) {
              return axis ? F::repeat(x, repeats, *axis) : F::repeat(x, repeats);
          });
    forms("_pad(x, pad_width, mode, value)", "F.pad() with a flat list of widths.",
          [](const Variable& x, const Ints64& widths, std::string_view mode, double value) {
              return F::pad(x, widths, mode, value);
          });
    forms("tril(x, k=0)", "x with zeros above the k-th diagonal of the last two axes.",
          [](const Variable& x, int k) { return F::tril(x, k); });
    forms("triu(x, k=0)", "x with zeros below the k-th diagonal of the last two axes.",
          [](const Variable& x, int k) { return F::triu(x, k); });
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
    forms("gather(x, axis, indices)",
          "Elements at indices along an axis, as torch.gather(): for axis 1 of three,\n"
          "y[i, j, k] = x[i, indices[i, j, k], k].",
          [](const Variable& x, int axis, const Variable& indices) {
              return F::gather(x, axis, indices);
          });
    forms("scatter(x, axis, indices, src)",
          "x, but with elements replaced at indices along an axis, as torch.scatter().",
          [](const Variable& x, int axis, const Variable& indices, const Variable& src) {
              return F::scatter(x, axis, indices, src);
          });
    forms("index_add(x, axis, indices, src)",
          "x plus slices of src at indices along an axis, as torch.index_add().",
          [](const Variable& x, int axis, const Variable& indices, const Variable& src) {
              return F::index_add(x, axis, indices, src);
          });
    forms("put(x, indices, values)",
          "x, but with elements of the flattened array replaced at indices, as numpy.put().",
          [](const Variable& x, const Variable& indices, const Variable& values) {
              return F::put(x, indices, values);
          });
    forms("select_item(x, t)", "y[i] = x[i, t[i]].",
          [](const Variable& x, const Variable& t) { return F::select_item(x, t); });
    forms("permutate(x, indices, axis=0, inv=False)",
          "y[i] = x[indices[i]] along an axis, or y[indices[i]] = x[i] with inv.",
          [](const Variable& x, const Variable& indices, int axis, bool inv) {
              return F::permutate(x, indices, axis, inv);
          });
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
    add_joins(forms);
    add_rearrangements(forms);
    add_indexing(forms);
}

}  // namespace catena::python
