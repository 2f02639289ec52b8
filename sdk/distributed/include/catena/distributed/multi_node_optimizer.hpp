// MultiNodeOptimizer: an optimizer whose gradients are averaged over the ranks of a communicator.
#pragma once

#include <catena/distributed/communicator.hpp>
#include <catena/optimizer.hpp>

namespace catena::distributed {

// Gives every rank the root's parameters and persistent values of a link, and waits.
void bcast_data(const Communicator& communicator, Link& link, int root = 0);
// Averages the persistent values of a link over the ranks, such as running means of normalization,
// and waits: floating ones by mean. Call it before evaluating or saving a model.
void allreduce_persistent(const Communicator& communicator, Link& link);

struct MultiNodeOptions {
    // Gradients are sent in buckets of about this size, filled from the last parameter on.
    std::int64_t bucket_bytes = std::int64_t{25} << 20;
    // Sends a bucket in backward(), when all its gradients are computed. Else update() sends all.
    bool overlap = true;
    // The dtype of gradients on the wire: float16 or bfloat16 halve the traffic, and round sums.
    std::optional<Dtype> wire = {};
    // update() uses the gradients of the previous step, which were sent during this one. The first
    // update() changes nothing, and the last gradients are not used. Not for a LossScale.
    bool double_buffering = false;
    // Every k-th update() changes the parameters, by the mean gradient of k minibatches, sent once.
    std::int64_t accumulate = 1;
    // ZeRO stage 1 (Rajbhandari et al., 2020): each rank has the optimizer's state for a part of
    // the parameters, updates it and sends it to the others. Results are those without it. The
    // update rule must be a function of a plugin that treats each element alone, so not Lamb's.
    bool shard = false;
    // Adds gradients pairwise in the order of minibatches, so that results depend only on
    // size() * accumulate if that is a power of two. By default config().deterministic at setup().
    std::optional<bool> pairwise = {};
};

// Makes update() of an optimizer use the mean gradient over all ranks:
//
//     const Communicator comm = Communicator::open("mpi");
//     optimizers::Adam adam;
//     MultiNodeOptimizer optimizer(adam, comm);
//     optimizer.setup(model);  // every rank gets rank 0's parameters
//     while (...) {
//         ...
//         optimizer.cleargrads();
//         loss.backward();
//         optimizer.update();
//     }
//
// The ranks call update() equally often. A parameter without a gradient on one rank counts as zero
// there; one without a gradient on all ranks is not updated. Parameters that require no gradient
// at setup() are not sent; those that the optimizer's set_group() freezes are.
//
// Hooks of the optimizer, clip_grads() and compute_grads_norm() see the mean gradients; with
// `accumulate` or double buffering, only hooks may call them, else they throw InvalidError. With
// overlap, a gradient that is set or computed again after it was sent makes update() throw
// InvalidError: change gradients in hooks of the optimizer. All ranks may give up a step by
// cleargrads(), which may give up the earlier ones of the `accumulate` minibatches too. With
// `shard`, parameters have no gradient after update(). Not for a RecordedStep. A failure between
// ranks throws DeviceError: see Communicator.
class MultiNodeOptimizer {
public:
    // Called by all ranks; operations have a group of their own, made by split(). The optimizer
    // must outlive this object, whose destructor detaches it; with `shard`, call setup() of the
    // optimizer then. Throws InvalidError for invalid options, and if the optimizer has one.
    MultiNodeOptimizer(Optimizer& optimizer, Communicator communicator,
                       MultiNodeOptions options = {});
    MultiNodeOptimizer(const MultiNodeOptimizer&) = delete;
    ~MultiNodeOptimizer();

    // Calls bcast_data(), and setup() of the optimizer. Call it again after the parameters moved to
    // another device or dtype, or after others require gradients. With overlap, it sets the
    // parameters' grad hooks. Throws InvalidError for different parameters, and for such a hook.
    void setup(Link& link);

    // The factor of this rank's gradients, for minibatches of different sizes: own items times
    // ranks / items of all ranks. Set it before backward(), else this throws InvalidError; it
    // applies to each minibatch until it is set again.
    void set_weight(double weight);

    // Asks all ranks to stop together: after the next update() that changes parameters,
    // stop_requested() is true on every rank if any has called it.
    void request_stop();
    bool stop_requested() const noexcept;

    void cleargrads() const { optimizer_.cleargrads(); }
    void update() { optimizer_.update(); }
    Optimizer& optimizer() const noexcept { return optimizer_; }
    const Communicator& communicator() const noexcept;
    // Bytes of the optimizer's state on this rank.
    std::int64_t state_bytes() const;

private:
    class Exchange;
    Optimizer& optimizer_;
    std::shared_ptr<Exchange> exchange_;
};

}  // namespace catena::distributed
