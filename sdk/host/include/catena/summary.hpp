// Summary: means of the values that a loop's steps report. Evaluator: those of a net on a data set.
#pragma once

#include <catena/core/config.hpp>
#include <catena/lists.hpp>
#include <catena/minibatches.hpp>

namespace catena {

// Means by name, weighted by the number of items, such as words. Values stay on their device until
// a mean is read, so reading one in each step waits for each step. Can be part of a snapshot.
//
//     Summary training{"loss", "accuracy"};
//     training.add({loss.data(), F::accuracy(y, t).data()}, t.size());
//     training.mean("loss");
class Summary final : public Visitable {
public:
    Summary(std::initializer_list<std::string_view> names);
    explicit Summary(std::vector<std::string> names);

    // Adds an array of one element for each name. Throws ShapeError for another number of arrays,
    // InvalidError for a weight that is not finite and positive.
    void add(const ArrayList& values, double weight);

    // NaN before the first add(). Throws InvalidError if the name does not exist.
    double mean(std::string_view name) const;
    double weight() const noexcept { return weight_; }  // the total weight
    const std::vector<std::string>& names() const noexcept { return names_; }
    void clear();

    void visit(Visitor& visitor) override;

private:
    struct Pending {
        std::vector<Array> values;
        double weight;
    };
    void settle() const;

    std::vector<std::string> names_;
    mutable std::vector<double> sums_;
    mutable std::vector<Pending> pending_;
    double weight_ = 0;
};

// Evaluates a net on a data set:
//
//     const auto measure = [&](std::span<const Array> batch) {
//         const Variable y = model(as_variable(batch[0])), t = as_variable(batch[1]);
//         return std::vector{F::softmax_cross_entropy(y, t).data(), F::accuracy(y, t).data()};
//     };
//     const Evaluator test(digits.test, 1000, {"loss", "accuracy"}, measure);
//     test().mean("accuracy");
//
// A call iterates over the data once, in order, with config().train off and without a graph. It
// returns the means over all examples, or those of a Share: see distributed::allreduce().
class Evaluator {
public:
    using Body = std::function<std::vector<Array>(std::span<const Array> batch)>;

    // device: that of the minibatches, default Device::current(). Throws the errors of Minibatches.
    Evaluator(Dataset data, std::int64_t batch_size, std::vector<std::string> names, Body body,
              Device device = {}, const Share& share = {})
        : batches_(std::move(data), batch_size, 0, false, device),
          names_(std::move(names)),
          body_(std::move(body)) {
        batches_.set_share(share);
    }
    Summary operator()() const {
        const no_backprop_mode no_graph;
        const using_config testing(&Config::train, false);
        Minibatches batches = batches_;
        Summary summary(names_);
        while (batches.epoch() == 0) {
            const std::vector<Array> batch = batches.next();
            const std::int64_t n = batch[0].shape()[0];
            if (n > 0) summary.add(body_(batch), static_cast<double>(n));
        }
        return summary;
    }

private:
    Minibatches batches_;  // at the start of the data
    std::vector<std::string> names_;
    Body body_;
};

}  // namespace catena
