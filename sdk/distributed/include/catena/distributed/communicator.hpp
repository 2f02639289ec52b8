// Communicator: a group of processes or threads (ranks) that exchange arrays.
#pragma once

#include <catena/core/array.hpp>

namespace catena::distributed {

enum class Reduction { sum, mean, min, max, prod };

// An operation that was started. The arrays must not be used until it is done: wait() first. The
// destructor waits too, and ignores failures; while an exception unwinds the stack, it does not
// wait, and the arrays are kept until the group closes.
class [[nodiscard]] Work {
public:
    Work() noexcept;  // done
    Work(Work&&) noexcept;
    Work& operator=(Work&& other) noexcept;
    ~Work();

    bool done() const;
    // Waits for arrays in host memory. For arrays of an asynchronous device, makes the thread's
    // current stream wait and returns at once. Throws DeviceError if the operation failed.
    void wait();

private:
    friend class Communicator;
    struct State;
    explicit Work(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

struct CommunicatorOptions {
    int rank = -1;             // -1: given by the launcher's environment, such as mpirun's
    int size = 0;              // 0: likewise
    std::string address = {};  // in the plugin's format: see its README; empty: the environment
    Device device = {};        // the rank's device, default Device::current()
    // Seconds after which an operation fails that another rank has not started. 0: the
    // environment's CATENA_COMMUNICATOR_TIMEOUT, or 300.
    double timeout = 0;
};

// Settings of one operation.
struct OperationOptions {
    std::string label = {};  // names the data in messages
    double timeout = 0;      // seconds; 0: that of the group
};

// A shared handle. All ranks of a group call the same operations in the same order with the same
// shapes. Each operation starts and returns a Work; a plugin (catena.communicator/1) executes it.
//
//     const Communicator comm = Communicator::open("mpi");      // mpirun -n 4 PROGRAM
//     comm.allreduce(gradient, Reduction::mean).wait();
//
// If a rank ends, hangs, aborts or calls something else, all others get a DeviceError within the
// timeout, which names the rank, the operation, what was expected and what happened. The group has
// failed then: every later call throws the same error. Arrays in memory that the plugin does not
// take are copied: to the host's, or to the rank's device if it takes no host memory. Elements are
// counted in row-major order; shapes may differ from those given below if the numbers of elements
// are equal. One thread at a time calls operations of a group; abort() may be called by any.
class Communicator {
public:
    // The group of this process alone, which needs no plugin: operations copy.
    Communicator();
    // Joins a group through the plugin with this name; returns when all ranks have. Throws
    // PluginError, with the names that exist, if there is none.
    static Communicator open(std::string_view name, const CommunicatorOptions& options = {});
    // The communicators of the loaded plugins, sorted.
    static std::vector<std::string> names();

    const std::string& name() const noexcept;  // "mpi"; "" for the process alone
    int rank() const noexcept;
    int size() const noexcept;
    int local_rank() const noexcept;  // among the ranks of the same machine
    int local_size() const noexcept;
    // Forms groups of the ranks with the same color, ordered by key, then by rank. Called by all.
    // With color < 0, the result is the group of this process alone.
    Communicator split(int color, int key = 0) const;
    // Makes all ranks fail with this reason, now or later, also in groups of split().
    void abort(std::string_view reason) const noexcept;

    Work barrier() const;
    // y = the reduction over all ranks of x; in place without y.
    Work allreduce(const Array& x, Reduction reduction = Reduction::sum,
                   const OperationOptions& options = {}) const;
    Work allreduce(const Array& x, const Array& y, Reduction reduction = Reduction::sum,
                   const OperationOptions& options = {}) const;
    // The same for the root only; other ranks may pass an empty y.
    Work reduce(const Array& x, const Array& y, int root, Reduction reduction = Reduction::sum,
                const OperationOptions& options = {}) const;
    // x of every rank = the root's.
    Work bcast(const Array& x, int root = 0, const OperationOptions& options = {}) const;
    // y, of shape (ranks, ...) = the x of all ranks. With counts, rank r sends counts[r] elements.
    Work allgather(const Array& x, const Array& y, std::span<const std::int64_t> counts = {},
                   const OperationOptions& options = {}) const;
    // y = this rank's piece of the reduction of x (ranks, ...), or counts[r] elements for rank r.
    Work reduce_scatter(const Array& x, const Array& y, Reduction reduction = Reduction::sum,
                        std::span<const std::int64_t> counts = {},
                        const OperationOptions& options = {}) const;
    // As allgather(), for the root; others may pass an empty y, and no counts.
    Work gather(const Array& x, const Array& y, int root, std::span<const std::int64_t> counts = {},
                const OperationOptions& options = {}) const;
    // y = this rank's piece of the root's x, of shape (ranks, ...); others may pass an empty x.
    Work scatter(const Array& x, const Array& y, int root,
                 std::span<const std::int64_t> counts = {},
                 const OperationOptions& options = {}) const;
    // Piece r of y = rank r's piece of x for this rank; both have shape (ranks, ...).
    Work alltoall(const Array& x, const Array& y, std::span<const std::int64_t> send_counts = {},
                  std::span<const std::int64_t> recv_counts = {},
                  const OperationOptions& options = {}) const;
    Work send(const Array& x, int to, int tag = 0, const OperationOptions& options = {}) const;
    Work recv(const Array& y, int from, int tag = 0, const OperationOptions& options = {}) const;

    // Texts, for small messages: each waits.
    std::string bcast_text(std::string text, int root = 0) const;            // the root's
    std::vector<std::string> allgather_text(const std::string& text) const;  // by rank

    bool operator==(const Communicator& other) const = default;

private:
    struct Group;
    friend class Work;
    struct Request;
    explicit Communicator(std::shared_ptr<Group> group);
    static void check_alone(const Request& request);
    Work start(const Request& request, const OperationOptions& options) const;

    std::shared_ptr<Group> group_;
};

// Runs body in n threads of this process, each with its rank of a new group of the plugin
// "threads", on devices[rank] if devices are given. Returns when all have ended. An exception of
// one rank aborts the group, so that all end; the first is rethrown, a DeviceError last.
void run_ranks(int n, const std::function<void(const Communicator&)>& body,
               const std::vector<Device>& devices = {}, double timeout = 0);

}  // namespace catena::distributed
