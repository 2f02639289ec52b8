// One step of training, and the evaluation.
#include "training.hpp"

using namespace catena;

void Score::add(const Variable& loss, const Variable& y, const Variable& t) {
    const no_backprop_mode scope;
    const auto n = t.size();
    loss_sum += loss.data().item<double>() * static_cast<double>(n);
    correct += F::accuracy(y, t).data().item<double>() * static_cast<double>(n);
    images += n;
}

Training::Training(Mlp network, std::unique_ptr<Optimizer> how, Minibatches data, Device device)
    : model(std::move(network)),
      optimizer(std::move(how)),
      batches(std::move(data)),
      random(device) {
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
