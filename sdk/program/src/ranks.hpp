// Helpers for programs that run in several processes.
#pragma once

#include <catena/distributed/communicator.hpp>

#include <map>

namespace catena {

// The seed of a rank's random numbers, which differ between ranks. Rank 0 has the given seed.
std::uint64_t stream_of_rank(std::uint64_t seed, int rank);
// A name of devices without an ordinal, for several processes on a machine: each gets its own.
std::string device_of_rank(const std::string& names);
// A message that names this process, if there are several and it does not yet.
std::string named_by_rank(std::string_view what);
// Whether processes have different values under this name in a snapshot: random numbers and scores.
bool differs_between_ranks(std::string_view name);
// Compares values by name between the ranks of a group. Returns "NAME: expected .., got .." for the
// first value that differs from rank 0's, or "". Called by all ranks.
std::string difference_between_ranks(const distributed::Communicator& communicator,
                                     const std::map<std::string, std::string>& values);
// The threads of a process, which divides them among the processes of the same place.
int threads_of_process(int threads, std::span<const std::string> places, int rank);
// Ends the other processes, if a communicator is open.
void abort_processes(std::string_view reason) noexcept;
void close_communicator();

}  // namespace catena
