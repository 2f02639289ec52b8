// Differentiable operations between ranks: a graph on each rank, connected by messages.
#pragma once

#include <catena/distributed/communicator.hpp>
#include <catena/lists.hpp>

namespace catena::distributed {

// The loss is the sum of the losses of all ranks, each of which calls backward() for its own. The
// gradient of each operation is another one of these operations, so there are gradients of any
// order, and these rules apply to forward and backward computations:
//  - All ranks of the communicator call the same operations in the same order. backward() does so
//    if their graphs have the same form, which alone determines the order of its calls.
//  - x requires a gradient on all ranks or on none, and backward() reaches the results of all ranks
//    or of none.
// A rank that breaks them makes all fail within the timeout: see Communicator.
//
// Where a rank receives nothing, the result is a *delegate*: 0, float32 of shape () on the host.
// It represents the ranks that have the result. backward() must reach it, as theirs reach the
// result: connect it to the loss with pseudo_connect(), or call its backward(). Where a rank gives
// nothing, x is empty or a delegate of earlier operations, which backward() reaches then.
//
// Data is divided into pieces of whole rows along the first axis, in the order of ranks. rows[r]
// counts those of rank r; without rows, all have equally many. All operations wait. They throw
// InvalidError for an empty x, ShapeError for rows that do not fit, and the errors of Communicator.

using Rows = std::vector<std::int64_t>;

// y = the sum or mean over all ranks of x. Throws InvalidError for other reductions.
Variable allreduce(const Communicator& comm, const Variable& x,
                   Reduction reduction = Reduction::sum);
// The same for the root. Other ranks get a delegate.
Variable reduce(const Communicator& comm, const Variable& x, int root,
                Reduction reduction = Reduction::sum);
// y = the root's x, on Device::current(). Others give no x; their y requires a gradient if it does.
Variable bcast(const Communicator& comm, const Variable& x, int root = 0);
// y = the x of all ranks: (rows of all, ...). rows is the same on all ranks.
Variable allgather(const Communicator& comm, const Variable& x, Rows rows = {});
// y = this rank's rows of the sum or mean over all ranks of x. rows is the same on all ranks.
Variable reduce_scatter(const Communicator& comm, const Variable& x,
                        Reduction reduction = Reduction::sum, Rows rows = {});
// As allgather() for the root, which alone needs rows. Other ranks get a delegate.
Variable gather(const Communicator& comm, const Variable& x, int root, Rows rows = {});
// y = this rank's rows of the root's x. Other ranks give no x and no rows: see bcast().
Variable scatter(const Communicator& comm, const Variable& x, int root, Rows rows = {});
// y = this rank's rows of each rank's x. send_rows[r] go to rank r, recv_rows[r] come from it.
Variable alltoall(const Communicator& comm, const Variable& x, Rows send_rows = {},
                  Rows recv_rows = {});

// Sends x to another rank and returns a delegate. Messages with the same tag arrive in the order of
// sending. send() may wait until x is received, so two ranks that both send first may fail after
// the timeout.
// backward() of the delegate receives the gradient from backward() of the other rank, with the same
// tag: use different tags for messages whose order there may differ.
Variable send(const Communicator& comm, const Variable& x, int to, int tag = 0);
// Returns x of the send() of another rank, on Device::current(); it requires a gradient if x does.
// backward() sends the gradient back. It continues with the delegate of an earlier operation if one
// is given. For gradients of second order give a delegate in any case, such as
// Variable(Array::zeros({})), whose gradient is the delegate of the message sent in backward().
//
//     // rank 0                                   // rank 1
//     Variable sent = send(comm, f(x), 1);        Variable h = recv(comm, 0);
//     Variable y = recv(comm, 1, 0, sent);        send(comm, g(h), 0).backward();
//     loss(y).backward();
Variable recv(const Communicator& comm, int from, int tag = 0, const Variable& delegate = {});
// Returns variables with the values of x. backward() of any of them reaches the delegate too.
Variables pseudo_connect(const Variable& delegate, VariableList x);
Variable pseudo_connect(const Variable& delegate, const Variable& x);

// Operations for ranks that compute the same loss together, each with a part of the parameters
// ("Megatron-LM", Shoeybi et al., 2019). A *whole* variable is equal on all ranks, and so is its
// gradient; a *part* belongs to this rank. x requires a gradient on all ranks or on none, and gets
// gradients of any order.
//
// whole -> part: y = x; the gradient is summed.
Variable copy_to_ranks(const Communicator& comm, const Variable& x);
// part -> whole: y = the sum over all ranks of x.
Variable reduce_from_ranks(const Communicator& comm, const Variable& x);
// whole -> part: y = this rank's elements of the last axis, part_of(elements, rank, size).
Variable scatter_to_ranks(const Communicator& comm, const Variable& x);
// part -> whole: the inverse. y has `size` elements along its last axis.
Variable gather_from_ranks(const Communicator& comm, const Variable& x, std::int64_t size);

}  // namespace catena::distributed
