// A small net, and its training on generated data: t = sin(3 x).
#pragma once

#include <catena/catena.hpp>

#include <string_view>

// A 1-32-1 net whose activation is a function of one array, found by its name.
struct Net : catena::Chain {
    explicit Net(std::string_view activation) : f(activation) {}
    void visit(catena::Visitor& v) override { v("l1", l1)("l2", l2); }
    catena::Variable operator()(const catena::Variable& x) const override;

    catena::PluginFunction f;
    catena::links::Linear l1{1, 32}, l2{32, 1};
};

struct Losses {
    double first;
    double last;
};
// Returns the mean squared errors before the first and after the last step.
Losses train(Net& net, int steps);
