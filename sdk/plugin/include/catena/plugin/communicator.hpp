// Helpers for plugins with a table catena.communicator/1: see catena/abi/ext/communicator.h.
#pragma once

#include <catena/abi/ext/communicator.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "catena/plugin/tables.hpp"

namespace catena::plugin {

// A running operation. The functions throw Error(CATENA_E_DEVICE, text) if it has failed.
class Work {
public:
    virtual ~Work() = default;
    virtual bool test() = 0;
    virtual void wait() = 0;
    virtual void wait_on(catena_stream*) {}
};

// One rank's membership of a group. The destructor is close().
class Group {
public:
    virtual ~Group() = default;
    virtual catena_comm_info info() const noexcept = 0;
    // Returns null for color < 0.
    virtual std::unique_ptr<Group> split(std::int32_t color, std::int32_t key) = 0;
    // The operation is one that check_operation() accepts. The work may outlive the handle that is
    // returned here: keep another one while it runs.
    virtual std::shared_ptr<Work> start(const catena_operation& operation) = 0;
    virtual void abort(std::string_view reason) noexcept = 0;
};

// ---- time

using Clock = std::chrono::steady_clock;
// Times of 1e9 seconds and more are no limit.
inline Clock::duration duration_of(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(std::min(seconds, 1e9)));
}
inline Clock::time_point after(double seconds) { return Clock::now() + duration_of(seconds); }

// ---- operations

const char* name_of_operation(std::int32_t kind);  // "allreduce"
const char* name_of_reduction(std::int32_t reduction);
std::size_t item_bytes(catena_dtype dtype);
constexpr bool reduces(std::int32_t kind) {
    return kind == CATENA_OP_ALLREDUCE || kind == CATENA_OP_REDUCE ||
           kind == CATENA_OP_REDUCE_SCATTER;
}
constexpr bool is_pair(std::int32_t kind) {
    return kind == CATENA_OP_SEND || kind == CATENA_OP_RECV;
}
// Operations whose counts the ranks compare apart from agreement().
constexpr bool exchanges(std::int32_t kind) {
    return kind == CATENA_OP_GATHER || kind == CATENA_OP_SCATTER || kind == CATENA_OP_ALLTOALL;
}

// Throws Error for an operation that a rank can refuse alone: an unknown kind or reduction, a
// reduction that the dtype does not have, a peer outside the group, a negative timeout, missing
// memory or counts.
void check_operation(const catena_operation& operation, const catena_comm_info& info);

// The element counts of pieces, and where each begins. offsets has one entry more: the total.
struct Pieces {
    std::vector<std::uint64_t> counts, offsets;
    std::uint64_t total() const { return offsets.back(); }
};
// The pieces of send or recv, for operations whose data has them on this rank; else no pieces.
Pieces send_pieces(const catena_operation& operation, const catena_comm_info& info);
Pieces recv_pieces(const catena_operation& operation, const catena_comm_info& info);

// A copy of an operation for the time after start(). Its label is the copy's, its counts are in the
// pieces, and its timeout is above 0.
struct OperationCopy {
    // timeout: that of the group, for an operation without one.
    OperationCopy(const catena_operation& operation, const catena_comm_info& info, double timeout);
    OperationCopy(const OperationCopy&) = delete;
    OperationCopy& operator=(const OperationCopy&) = delete;

    const std::byte* send() const { return static_cast<const std::byte*>(o.send); }
    std::byte* recv() const { return static_cast<std::byte*>(o.recv); }
    std::uint64_t bytes(std::uint64_t elements) const { return elements * item; }

    const std::string label;
    catena_operation o;
    const std::uint64_t item;  // bytes of an element
    const Pieces sends, recvs;
    const Clock::time_point started = Clock::now(), deadline;
};

// Whether two blocks of memory share bytes.
bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes);

// The arguments that must be equal on all ranks, as a text and as its hash: "allreduce sum of
// float32 x 10", "bcast of float32 x 10 from rank 0". The counts of gather, scatter and alltoall
// are not in it.
std::string agreement(const catena_operation& operation, const catena_comm_info& info);
std::uint64_t hash_of(std::string_view text);
// The rank whose text the others are compared with, given the texts of all ranks: the first one of
// those with the most common text.
std::size_t usual_rank(const std::vector<std::string>& texts);

inline std::string rank_text(std::integral auto rank) { return "rank " + std::to_string(rank); }
// "[allreduce] l1/W".
std::string name_of(const catena_operation& operation);
// "rank 1: [allreduce] l1/W".
std::string place_of(const catena_comm_info& info, const catena_operation& operation);
// "rank 1: [allreduce] l1/W: expected X, got Y", the text of failures between ranks.
std::string failure(const catena_comm_info& info, const catena_operation& operation,
                    std::string_view expected, std::string_view got);

// into[i] = into[i] op from[i]; MEAN adds. Halves are added in float and rounded.
void reduce_into(void* into, const void* from, std::uint64_t n, catena_dtype dtype,
                 std::int32_t reduction);
// The end of MEAN: data[i] /= ranks.
void divide(void* data, std::uint64_t n, catena_dtype dtype, std::int32_t ranks);

// ---- the table

namespace detail {

using Open = std::unique_ptr<Group> (*)(const catena_comm_options& options);
catena_status open_group(catena_ctx* ctx, const catena_comm_options* options, catena_comm** comm,
                         Open open) noexcept;
catena_status start_on_cpu(catena_ctx* ctx, catena_comm* comm, const catena_operation* operation,
                           catena_work** work) noexcept;
// The callbacks that do not depend on the class.
extern const catena_communicator group_callbacks;

}  // namespace detail

// The table of a communicator. open: joins a group; throws Error.
//     constexpr auto table = communicator_table<open>("mpi", "ranks as processes, on MPI", "cpu");
template <detail::Open open>
catena_communicator communicator_table(const char* name, const char* doc, const char* devices) {
    catena_communicator table = detail::group_callbacks;
    table.name = name;
    table.doc = doc;
    table.devices = devices;
    if (std::string_view(devices) == "cpu") {  // it has no streams
        table.start = detail::start_on_cpu;
        table.wait_on = nullptr;
    }
    table.open = [](catena_ctx* ctx, const catena_comm_options* options,
                    catena_comm** comm) noexcept -> catena_status {
        return detail::open_group(ctx, options, comm, open);
    };
    return table;
}

}  // namespace catena::plugin
