// Data sets and results of evaluations that are divided over ranks.
#pragma once

#include <catena/distributed/communicator.hpp>
#include <catena/summary.hpp>

namespace catena::distributed {

// Divides the root's data set: each rank gets part_of(size, rank, ranks) of its examples, in their
// order or shuffled, in host memory. Other ranks pass an empty Dataset. For minibatches that do not
// depend on the number of ranks, give each rank the whole data set and call set_share() of its
// Minibatches. Throws the errors of Dataset::size() and Communicator, DeviceError unless the data
// is in host memory, InvalidError for a wrong root.
Dataset scatter_dataset(const Communicator& comm, const Dataset& data, bool shuffle = false,
                        std::uint64_t seed = 0, int root = 0);

// Adds up the sums and weights of all ranks, so that means are those over all ranks' items. All
// ranks have the same names, else this throws InvalidError. To evaluate a net on several ranks:
//
//     const Share share{comm.rank(), comm.size()};
//     Summary result = Evaluator(test_data, 1000, {"loss", "accuracy"}, measure, {}, share)();
//     allreduce(comm, result);
void allreduce(const Communicator& comm, Summary& summary);

}  // namespace catena::distributed
