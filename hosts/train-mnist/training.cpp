// One step of training, and the evaluation.
#include "training.hpp"

#include <fmt/format.h>

using namespace catena;

namespace {

std::unique_ptr<Optimizer> make_optimizer(const Options& options) {
    if (options.optimizer == "adam") return std::make_unique<optimizers::Adam>(options.lr);
    return std::make_unique<optimizers::SGD>(options.lr);
}

}  // namespace

void Score::add(const Variable& loss, const Variable& y, const Variable& t) {
    const no_backprop_mode scope;
    const auto n = t.size();
    loss_sum += loss.data().item<double>() * static_cast<double>(n);
    correct += F::accuracy(y, t).data().item<double>() * static_cast<double>(n);
    images += n;
}

Training::Training(const Options& how, const Dataset& data, Device device)
    : model(data.arrays[0].shape()[1], how.units, 10, how.dropout),
      optimizer(make_optimizer(how)),
      batches(data, how.batch, static_cast<std::uint64_t>(how.seed)),
      random(device),
      options_(how) {
    optimizer->setup(model);
}

void Training::step() {
    const auto batch = batches.next();
    const Variable x = as_variable(batch[0]);
    const Variable t = as_variable(batch[1]);
    const Variable y = model(x);
    const Variable loss = F::softmax_cross_entropy(y, t);
    optimizer->cleargrads();
    loss.backward();
    optimizer->update();
    score.add(loss, y, t);
}

void Training::visit(Visitor& v) {
    v.require("options/units", options_.units).require("options/batch", options_.batch);
    v.require("options/optimizer", options_.optimizer);
    v.require("options/lr", fmt::format("{}", options_.lr));
    v.require("options/dropout", fmt::format("{}", options_.dropout));
    v.require("options/seed", options_.seed);
    v("model", model)("optimizer", *optimizer)("batches", batches);
    v("random", random)("score", score);
}

Score evaluate(Mlp& model, const Dataset& data, std::int64_t batch_size, Device device) {
    const no_backprop_mode no_graph;
    const using_config testing(&Config::train, false);
    Minibatches batches(data, batch_size, 0, false, device);
    Score score;
    while (batches.epoch() == 0) {
        const auto batch = batches.next();
        const Variable x = as_variable(batch[0]);
        const Variable t = as_variable(batch[1]);
        const Variable y = model(x);
        score.add(F::softmax_cross_entropy(y, t), y, t);
    }
    return score;
}
