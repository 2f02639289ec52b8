// New arrays.
#include "forms.hpp"

namespace catena::python {

void add_creation_forms(Forms& forms) {
    namespace F = functions;
    forms("full(shape, value, dtype='float32', device=None)", "An array of one value.",
          [](const Shape& shape, Scalar value, Dtype dtype, Device device) {
              return array_of_number(shape, value, dtype, device);
          });
    forms("arange(start, stop=None, step=1, dtype=None, device=None)",
          "start, start + step, ... below stop; with one number, from 0 to it.",
          [](Scalar start, std::optional<Scalar> stop, Scalar step, std::optional<Dtype> dtype,
             Device device) {
              if (stop) return F::arange(start, *stop, step, dtype, device);
              return F::arange(start.is_integer() ? Scalar(0) : Scalar(0.0), start, step, dtype,
                               device);
          });
    forms("full_like(x, value, dtype=None)", "An array of one value, in the shape of x.",
          [](const Variable& x, Scalar value, std::optional<Dtype> dtype) {
              return array_of_number(x.shape(), value, dtype.value_or(x.dtype()), x.device());
          });
}

}  // namespace catena::python
