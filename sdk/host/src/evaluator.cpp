// Evaluator: one pass.
#include <catena/core/config.hpp>
#include <catena/evaluator.hpp>

namespace catena {

Evaluator::Evaluator(Dataset data, std::int64_t batch_size, std::vector<std::string> names,
                     Body body, Device device)
    : batches_(std::move(data), batch_size, 0, false, device),
      names_(std::move(names)),
      body_(std::move(body)) {}

Summary Evaluator::operator()() const {
    const no_backprop_mode no_graph;
    const using_config testing(&Config::train, false);
    Minibatches batches = batches_;
    Summary summary(names_);
    while (batches.epoch() == 0) {
        const std::vector<Array> batch = batches.next();
        summary.add(body_(batch), static_cast<double>(batch[0].shape()[0]));
    }
    return summary;
}

}  // namespace catena
