// TwoColumnMlp: a net on two devices.
#pragma once

#include <catena/links/linear.hpp>
#include <catena/models/classifier.hpp>

namespace catena::models {

// Two columns of six layers with ReLU, one on each device, as in Chainer's manual. The columns are
// added after the third layer, and both continue from the sum, and again after the sixth layer, for
// the result. So little data is copied between devices. Inputs and scores are on the first device.
// Both devices may be the same.
class TwoColumnMlp : public Classifier {
public:
    TwoColumnMlp(Shape image, std::int64_t classes, std::int64_t units, Device first,
                 Device second);
    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("first", first)("second", second); }

    struct Column : Chain {
        Column(std::int64_t in, std::int64_t units, std::int64_t out);
        void visit(Visitor& v) override {
            v("l1", l1)("l2", l2)("l3", l3)("l4", l4)("l5", l5)("l6", l6);
        }
        Variable below(const Variable& x) const;  // layers 1 to 3
        Variable above(const Variable& h) const;  // layers 4 to 6

        links::Linear l1, l2, l3, l4, l5, l6;
    };
    Column first, second;
};

}  // namespace catena::models
