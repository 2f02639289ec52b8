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
    forms("linspace(start, stop, n=50, endpoint=True, dtype='float32', device=None)",
          "n numbers at equal distances from start to stop.",
          [](double start, double stop, std::int64_t n, bool endpoint, Dtype dtype, Device device) {
              return F::linspace(start, stop, n, endpoint, dtype, device);
          });
    forms("eye(n, m=None, k=0, dtype='float32', device=None)",
          "A matrix (n, m) of 1 in the k-th diagonal, else 0.",
          [](std::int64_t n, std::optional<std::int64_t> m, int k, Dtype dtype, Device device) {
              return F::eye(n, m.value_or(-1), k, dtype, device);
          });
    forms("tri(n, m=None, k=0, dtype='float32', device=None)",
          "A matrix (n, m) of 1 in the k-th diagonal and below, else 0.",
          [](std::int64_t n, std::optional<std::int64_t> m, int k, Dtype dtype, Device device) {
              return F::tri(n, m.value_or(-1), k, dtype, device);
          });
    forms("full_like(x, value, dtype=None)", "An array of one value, in the shape of x.",
          [](const Variable& x, Scalar value, std::optional<Dtype> dtype) {
              return array_of_number(x.shape(), value, dtype.value_or(x.dtype()), x.device());
          });
    forms("one_hot(t, depth, axis=-1, dtype='float32')",
          "Vectors along a new axis with 1 at index t, else 0.",
          [](const Variable& t, std::int64_t depth, int axis, Dtype dtype) {
              return F::one_hot(t.data(), depth, axis, dtype);
          });
}

}  // namespace catena::python
