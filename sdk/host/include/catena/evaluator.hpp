// Evaluator: evaluates a net on a data set.
#pragma once

#include <catena/minibatches.hpp>
#include <catena/summary.hpp>

#include <functional>
#include <span>
#include <string>
#include <vector>

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
              Device device = {});
    Summary operator()() const;

private:
    Minibatches batches_;  // at the start of the data
    std::vector<std::string> names_;
    Body body_;
};

}  // namespace catena
