// BatchNormalization: normalizes by the minibatch in training, else by running statistics.
#pragma once

#include <catena/link.hpp>

namespace catena::links {

// y = gamma (x - mean) / sqrt(var + eps) + beta for each channel (axis 1) of x (N, size, ...). A
// size that is a shape, Shape{a, b}, means x (N, a, b, ...) with a * b channels, which is `size`
// below. Parameters: gamma (size,), initially 1; beta (size,), initially 0. Persistent values:
// avg_mean (size,), 0; avg_var (size,), 1; N, the number of fine-tuning batches. New links are on
// the current device, in float32. (Ioffe and Szegedy, ICML 2015. Running statistics as in Chainer
// 7: for a minibatch with m values per channel, the mean and the unbiased variance m / (m - 1) var
// have weight 1 - decay.)
class BatchNormalization : public Link {
public:
    explicit BatchNormalization(std::int64_t size, double decay = 0.9, double eps = 1e-5);
    explicit BatchNormalization(const Shape& size, double decay = 0.9, double eps = 1e-5);

    // In training this uses the statistics of the minibatch and updates the running statistics in
    // place, also in a const link. With config().train = false it uses the running statistics and
    // changes nothing. Throws ShapeError if x does not fit.
    Variable operator()(const Variable& x) const override;
    // test: use the running statistics. finetune: set the running statistics to the mean over all
    // batches since start_finetuning(), instead of a decaying average.
    Variable operator()(const Variable& x, bool test) const;
    Variable operator()(const Variable& x, bool test, bool finetune);
    void start_finetuning() { N = 0; }

    void visit(Visitor& visitor) override {
        visitor("gamma", gamma)("beta", beta);
        visitor.running("avg_mean", avg_mean).running("avg_var", avg_var)("N", N);
    }

    catena::Parameter gamma;
    catena::Parameter beta;
    Array avg_mean;
    Array avg_var;
    std::int64_t N = 0;
    double decay;
    double eps;

private:
    // share: the weight of the old running statistics in the update. Without it, the call
    // normalizes by the running statistics and changes nothing.
    Variable call(const Variable& x, std::optional<double> share) const;
    Variable normalize(const Variable& x, std::optional<double> share) const;

    Shape size_;
};

}  // namespace catena::links
