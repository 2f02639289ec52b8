// One step of training, and the evaluation.
#include "training.hpp"

#include <fmt/format.h>

using namespace catena;

namespace {

std::unique_ptr<Optimizer> make_optimizer(const Options& options) {
    if (options.optimizer == "adam") return std::make_unique<optimizers::Adam>(options.lr);
    return std::make_unique<optimizers::SGD>(options.lr);
}

struct Mlp : Chain {
    Mlp(std::int64_t n_in, std::int64_t n_units, std::int64_t n_out, double dropout_ratio)
        : l1(n_in, n_units), l2(n_units, n_units), l3(n_units, n_out), dropout(dropout_ratio) {}

    Variable operator()(const Variable& x) override { return l3(hidden(l2, hidden(l1, x))); }
    void visit(Visitor& v) override { v("l1", l1)("l2", l2)("l3", l3); }

    links::Linear l1, l2, l3;
    double dropout;

private:
    Variable hidden(links::Linear& layer, const Variable& x) const {
        const Variable h = F::relu(layer(x));
        return dropout > 0 ? F::dropout(h, dropout) : h;
    }
};

// Two layers of 5x5 filters, each with a pooling, and two of units. (LeCun, Bottou, Bengio and Haffner,
// "Gradient-Based Learning Applied to Document Recognition", 1998, in the sizes of today.)
struct Cnn : Chain {
    Cnn(std::int64_t n_units, std::int64_t n_out, double dropout_ratio)
        : conv1(1, 20, 5),
          conv2(20, 50, 5),
          l1(800, n_units),
          l2(n_units, n_out),
          dropout(dropout_ratio) {}

    Variable operator()(const Variable& x) override {
        const Variable images = F::reshape(x, {x.shape()[0], 1, 28, 28});
        const Variable edges = F::max_pooling_2d(F::relu(conv1(images)), {2});
        const Variable parts = F::max_pooling_2d(F::relu(conv2(edges)), {2});
        const Variable h = F::relu(l1(parts));
        return l2(dropout > 0 ? F::dropout(h, dropout) : h);
    }
    void visit(Visitor& v) override { v("conv1", conv1)("conv2", conv2)("l1", l1)("l2", l2); }

    links::Convolution2D conv1, conv2;
    links::Linear l1, l2;
    double dropout;
};

}  // namespace

std::unique_ptr<Chain> make_model(const Options& options, std::int64_t n_in) {
    if (options.model == "cnn") return std::make_unique<Cnn>(options.units, 10, options.dropout);
    return std::make_unique<Mlp>(n_in, options.units, 10, options.dropout);
}

void Score::add(const Array& loss, const Array& accuracy, std::int64_t n) {
    images_ += n;
    pending_.push_back({loss, accuracy, n});
    if (pending_.size() >= 256) settled();
}
const Score& Score::settled() const {
    for (const Pending& each : pending_) {
        loss_sum_ += each.loss.item<double>() * static_cast<double>(each.n);
        correct_ += each.accuracy.item<double>() * static_cast<double>(each.n);
    }
    pending_.clear();
    return *this;
}

Training::Training(const Options& how, const Dataset& data, Device device)
    : model(make_model(how, data.arrays[0].shape()[1])),
      optimizer(make_optimizer(how)),
      batches(data, how.batch, static_cast<std::uint64_t>(how.seed)),
      random(device),
      options_(how),
      recorded_(*optimizer, [this](std::span<const Array> batch) { return learn(batch); }) {
    optimizer->setup(*model);
}

std::vector<Array> Training::learn(std::span<const Array> batch) {
    const Variable x = as_variable(batch[0]);
    const Variable t = as_variable(batch[1]);
    const Variable y = (*model)(x);
    const Variable loss = F::softmax_cross_entropy(y, t);
    optimizer->cleargrads();
    loss.backward();
    optimizer->update();
    return {loss.data(), F::accuracy(y.data(), t.data())};
}

void Training::step() {
    const auto batch = batches.next();
    const std::vector<Array> result = options_.record ? recorded_(batch) : learn(batch);
    const auto own = [&](const Array& a) { return options_.record ? a.copy() : a; };
    score.add(own(result[0]), own(result[1]), batch[1].size());
}

void Training::visit(Visitor& v) {
    v.require("options/model", options_.model);
    v.require("options/units", options_.units).require("options/batch", options_.batch);
    v.require("options/optimizer", options_.optimizer);
    v.require("options/lr", fmt::format("{}", options_.lr));
    v.require("options/dropout", fmt::format("{}", options_.dropout));
    v.require("options/seed", options_.seed);
    v("model", *model)("optimizer", *optimizer)("batches", batches);
    v("random", random)("score", score);
}

Score evaluate(Chain& model, const Dataset& data, std::int64_t batch_size, Device device) {
    const no_backprop_mode no_graph;
    const using_config testing(&Config::train, false);
    Minibatches batches(data, batch_size, 0, false, device);
    Score score;
    while (batches.epoch() == 0) {
        const auto batch = batches.next();
        const Variable x = as_variable(batch[0]);
        const Variable t = as_variable(batch[1]);
        const Variable y = model(x);
        score.add(F::softmax_cross_entropy(y, t).data(), F::accuracy(y, t).data(), t.size());
    }
    return score;
}
