// Mlp: a net with two hidden layers.
#pragma once

#include <catena/links/linear.hpp>
#include <catena/models/classifier.hpp>

namespace catena::models {

// image-units-units-classes with ReLU, and, in training, dropout after each hidden layer.
class Mlp : public Classifier {
public:
    Mlp(Shape image, std::int64_t classes, std::int64_t units, double dropout = 0);
    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("l1", l1)("l2", l2)("l3", l3); }

    links::Linear l1, l2, l3;

private:
    double dropout_;
};

}  // namespace catena::models
