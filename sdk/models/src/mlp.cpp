// Mlp: three layers.
#include <catena/functions.hpp>
#include <catena/models/mlp.hpp>

namespace catena::models {
namespace F = functions;

Mlp::Mlp(Shape image, std::int64_t classes, std::int64_t units, double dropout)
    : Classifier(image, classes),
      l1(image.size(), units),
      l2(units, units),
      l3(units, classes),
      dropout_(dropout) {}

Variable Mlp::operator()(const Variable& x) const {
    const auto hidden = [&](const links::Linear& layer, const Variable& below) {
        const Variable h = F::relu(layer(below));
        return dropout_ > 0 ? F::dropout(h, dropout_) : h;
    };
    return l3(hidden(l2, hidden(l1, x)));
}

}  // namespace catena::models
