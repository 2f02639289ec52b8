// TwoColumnMlp: columns and bridges.
#include <catena/copy.hpp>
#include <catena/functions.hpp>
#include <catena/models/two_column_mlp.hpp>
#include <catena/operators.hpp>

namespace catena::models {
namespace F = functions;

TwoColumnMlp::Column::Column(std::int64_t in, std::int64_t units, std::int64_t out)
    : l1(in, units),
      l2(units, units),
      l3(units, 2 * units),
      l4(2 * units, units),
      l5(units, units),
      l6(units, out) {}

Variable TwoColumnMlp::Column::below(const Variable& x) const {
    return F::relu(l3(F::relu(l2(F::relu(l1(x))))));
}
Variable TwoColumnMlp::Column::above(const Variable& h) const {
    return F::relu(l6(F::relu(l5(F::relu(l4(h))))));
}

TwoColumnMlp::TwoColumnMlp(Shape image, std::int64_t classes, std::int64_t units,
                           Device first_device, Device second_device)
    : Classifier(image, classes),
      first(image.size(), units, classes),
      second(image.size(), units, classes) {
    // Made on one device and moved: the same numbers wherever they go.
    first.to(first_device);
    second.to(second_device);
}

Variable TwoColumnMlp::operator()(const Variable& x) const {
    const Device here = first.l1.W.device(), there = second.l1.W.device();
    Variable h = first.below(x), other = second.below(F::copy(x, there));
    h = h + F::copy(other, here);
    other = F::copy(h, there);
    return first.above(h) + F::copy(second.above(other), here);
}

}  // namespace catena::models
