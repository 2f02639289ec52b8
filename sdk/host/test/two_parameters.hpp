// A link for tests of optimizers.
#pragma once

#include <catena/optimizer.hpp>

#include <doctest/doctest.h>

namespace {

using namespace catena;

// Two parameters; set_grad() leaves the second without a gradient.
struct Two : Link {
    Parameter p{Array::from({1.F, -2.F}, {2})};
    Parameter q{Array::from({5.F}, {1})};
    void visit(Visitor& v) override { v("p", p)("q", q); }
    std::vector<float> values() const { return p.data().to_vector<float>(); }
    std::vector<float> grads() const { return p.grad().to_vector<float>(); }
    void set_grad() const { p.set_grad(Array::from({0.5F, -0.25F}, {2}, p.device())); }
};

void check_steps(Optimizer& optimizer, float first, float second) {
    const Two two;
    optimizer.setup(two);
    two.set_grad();
    for (int i = 0; i < 3; ++i) optimizer.update();
    CHECK(optimizer.t() == 3);
    CHECK(two.values()[0] == doctest::Approx(first).epsilon(1e-6));
    CHECK(two.values()[1] == doctest::Approx(second).epsilon(1e-6));
    CHECK(two.q.data().item<float>() == 5);
    CHECK(two.grads() == std::vector<float>{0.5F, -0.25F});
}

}  // namespace
