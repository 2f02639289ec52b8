// Links whose parameters or minibatches are divided over the ranks of a communicator.
#pragma once

#include <catena/distributed/communicator.hpp>
#include <catena/links.hpp>

namespace catena::distributed {

// A Linear whose parameters are divided over ranks that compute one loss together ("Megatron-LM",
// Shoeybi et al., 2019). Its values are those of rank 0's Linear. All ranks call it with the same
// minibatch; variables are whole or parts, with gradients as in distributed/functions.hpp. If a
// row-parallel link follows a column-parallel one, only the result of the second is sent:
//
//     ColumnParallelLinear l1(comm, 784, 1000);
//     RowParallelLinear l2(comm, 1000, 10);
//     y = l2(F::relu(l1(x)));  // x and y are whole
//
// A file of a snapshot has this rank's part. bcast_data() and MultiNodeOptimizer are for other
// communicators, whose ranks have the same part: Communicator::split() makes both. Constructors
// throw ShapeError for fewer outputs or inputs than ranks.
//
// ColumnParallelLinear: each rank has some of the outputs.
// y = x W^T + b: x (..., in_size) is whole; y (..., own) is a part of out_size values, or whole
// (..., out_size) with gather_output. own is the size of part_of(out_size, rank, size).
// Parameters: W (own, in_size); b (own), unless nobias.
class ColumnParallelLinear : public Link {
public:
    ColumnParallelLinear(const Communicator& comm, std::int64_t in_size, std::int64_t out_size,
                         bool gather_output = false, double wscale = 1, double bias = 0,
                         bool nobias = false);
    // Takes the values of rank 0's link.
    ColumnParallelLinear(const Communicator& comm, const links::Linear& whole,
                         bool gather_output = false);

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("W", W)("b", b); }

    catena::Parameter W;
    catena::Parameter b;  // empty with nobias

private:
    Communicator comm_;
    std::int64_t out_size_;
    bool gather_output_;
};

// RowParallelLinear: each rank has some of the inputs.
// y = the sum over all ranks of x W^T, + b: y (..., out_size) is whole; x (..., own) is a part of
// in_size values, or whole (..., in_size) with split_input. own is as above.
// Parameters: W (out_size, own); b (out_size), equal on all ranks, unless nobias.
class RowParallelLinear : public Link {
public:
    RowParallelLinear(const Communicator& comm, std::int64_t in_size, std::int64_t out_size,
                      bool split_input = false, double wscale = 1, double bias = 0,
                      bool nobias = false);
    // Takes the values of rank 0's link.
    RowParallelLinear(const Communicator& comm, const links::Linear& whole,
                      bool split_input = false);

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("W", W)("b", b); }

    catena::Parameter W;
    catena::Parameter b;  // empty with nobias

private:
    Communicator comm_;
    bool split_input_;
};

// MultiNodeBatchNormalization: a BatchNormalization that uses the minibatches of all ranks.
// In training, mean and var are those of the values of all ranks, which may have different numbers
// of examples, or none. Running averages are equal on all ranks. All ranks call it equally often;
// gradients follow the rules of distributed/functions.hpp: the loss is the sum of all ranks'. So if
// minibatches differ in size, multiply the loss by their weight before backward(), instead of
// MultiNodeOptimizer::set_weight(). Files are those of a BatchNormalization.
class MultiNodeBatchNormalization : public links::BatchNormalization {
public:
    MultiNodeBatchNormalization(const Communicator& comm, const Ints& size, double decay = 0.9,
                                double eps = 2e-5);
};

// Makes each BatchNormalization in a net a MultiNodeBatchNormalization, and returns their number.
// The net keeps its links and parameters; copies of it stay so too.
//
//     models::VGG16 model;  // or any other net
//     create_multi_node_bn(comm, model);
int create_multi_node_bn(const Communicator& comm, Link& net);

}  // namespace catena::distributed
