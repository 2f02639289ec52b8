// Mixed precision: products in half precision, while arrays, sums and parameters stay float32.
#pragma once

#include <catena/core/config.hpp>
#include <catena/optimizer.hpp>

namespace catena {

// In this scope and thread, products of float32 arrays may round their operands to bfloat16 or
// float16, where that makes them faster: matrix products and convolutions on GPUs, on CPUs with AMX
// and on AMD's with AVX512-BF16, and attention on the latter. CPUs compute in float32 instead of
// float16. All arrays stay float32: results, gradients and parameters; so does every sum. A
// gradient rounds if its forward call did:
//
//     const Variable loss = [&] {
//         autocast scope(Dtype::bfloat16);
//         return F::softmax_cross_entropy(net(x), t);
//     }();
//     loss.backward();
//
// Dtype::float32 ends the effect of an outer scope. Throws InvalidError for another dtype.
class [[nodiscard]] autocast : private using_config<Products> {
public:
    explicit autocast(Dtype dtype = Dtype::bfloat16);
};

// Keeps small gradients from vanishing in float16: multiplies the loss, and divides the gradients
// before the update. The factor is halved, and the update is skipped, if a gradient is not finite;
// it is doubled after `patience` updates in a row. (Micikevicius et al., "Mixed Precision
// Training", 2018.) bfloat16 has the range of float32 and needs no scaling.
//
//     LossScale scale;
//     ...
//     optimizer.cleargrads();
//     scale(loss).backward();
//     scale.update(optimizer);
class LossScale : public Visitable {
public:
    // Throws InvalidError unless value is finite and positive, and patience is positive.
    explicit LossScale(double value = 65536, std::int64_t patience = 2000);

    double value() const noexcept { return value_; }
    Variable operator()(const Variable& loss) const;  // loss * value()

    // Divides the gradients by value() and calls optimizer.update(), whose hooks see the divided
    // gradients. Returns false, and leaves parameters and optimizer as they are, if a gradient is
    // not finite. Waits for the gradients, so it cannot be recorded. An exception of the optimizer
    // leaves the gradients divided.
    bool update(Optimizer& optimizer);

    void visit(Visitor& visitor) override;  // saves value and the number of updates in a row

private:
    double value_;
    std::int64_t patience_;
    std::int64_t good_ = 0;
};

}  // namespace catena
