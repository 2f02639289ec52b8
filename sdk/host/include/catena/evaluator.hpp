// Evaluator: evaluates a net on a data set.
#pragma once

#include <catena/core/config.hpp>
#include <catena/minibatches.hpp>
#include <catena/summary.hpp>

namespace catena {

//     const auto measure = [&](std::span<const Array> batch) {
//         const Variable y = model(as_variable(batch[0])), t = as_variable(batch[1]);
//         return std::vector{F::softmax_cross_entropy(y, t).data(), F::accuracy(y, t).data()};
//     };
//     const Evaluator test(digits.test, 1000, {"loss", "accuracy"}, measure);
//     test().mean("accuracy");
//
// A call iterates over the data once, in order, with config().train off and without a graph. It
// returns the means over all examples.
class Evaluator {
public:
    using Body = std::function<std::vector<Array>(std::span<const Array> batch)>;

    // device: where minibatches are made, default Device::current(). Throws the errors of
    // Minibatches.
    Evaluator(Dataset data, std::int64_t batch_size, std::vector<std::string> names, Body body,
              Device device = {})
        : batches_(std::move(data), batch_size, 0, false, device),
          names_(std::move(names)),
          body_(std::move(body)) {}
    Summary operator()() const {
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

private:
    Minibatches batches_;  // at the start of the data
    std::vector<std::string> names_;
    Body body_;
};

}  // namespace catena
