// The network, and everything that a snapshot of its training has.
#pragma once

#include "options.hpp"

#include <catena/catena.hpp>

#include <memory>

namespace F = catena::functions;

struct Mlp : catena::Chain {
    Mlp(std::int64_t n_in, std::int64_t n_units, std::int64_t n_out, double dropout_ratio)
        : l1(n_in, n_units), l2(n_units, n_units), l3(n_units, n_out), dropout(dropout_ratio) {}

    catena::Variable operator()(const catena::Variable& x) override {
        return l3(hidden(l2, hidden(l1, x)));
    }
    void visit(catena::Visitor& v) override { v("l1", l1)("l2", l2)("l3", l3); }

    catena::links::Linear l1, l2, l3;
    double dropout;

private:
    catena::Variable hidden(catena::links::Linear& layer, const catena::Variable& x) const {
        const catena::Variable h = F::relu(layer(x));
        return dropout > 0 ? F::dropout(h, dropout) : h;
    }
};

// Means over the images seen.
struct Score : catena::Visitable {
    double loss_sum = 0;
    double correct = 0;
    std::int64_t images = 0;

    void add(const catena::Variable& loss, const catena::Variable& y, const catena::Variable& t);
    double loss() const { return loss_sum / static_cast<double>(images); }
    double accuracy() const { return correct / static_cast<double>(images); }
    void visit(catena::Visitor& v) override {
        v("loss_sum", loss_sum)("correct", correct)("images", images);
    }
};

struct Training : catena::Visitable {
    Mlp model;
    std::unique_ptr<catena::Optimizer> optimizer;
    catena::Minibatches batches;
    catena::RandomStream random;  // of dropout
    Score score;                  // of this epoch

    Training(const Options& how, const catena::Dataset& data, catena::Device device);
    void step();  // one minibatch
    // With the options that decide the result: a snapshot goes on under the same ones alone.
    void visit(catena::Visitor& v) override;

private:
    Options options_;
};

// Without dropout and without a graph.
Score evaluate(Mlp& model, const catena::Dataset& data, std::int64_t batch_size,
               catena::Device device);
