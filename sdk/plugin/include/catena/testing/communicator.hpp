// Runs a communicator whose ranks are threads of this process, in tests of plugins.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "catena/abi/ext/communicator.h"
#include "catena/testing/world.hpp"

namespace catena::testing {

// The result of a call: its status and the text of its failure.
struct CallResult {
    catena_status status = CATENA_OK;
    std::string text = {};
    explicit operator bool() const { return status == CATENA_OK; }
};

// A started operation. The destructor releases it.
class StartedWork {
public:
    StartedWork() = default;
    StartedWork(const catena_communicator& table, catena_work* work)
        : table_(&table), work_(work, table.release) {}
    explicit operator bool() const { return work_ != nullptr; }
    CallResult wait() const;
    CallResult test(bool& done) const;
    void release() { work_.reset(); }

private:
    const catena_communicator* table_ = nullptr;
    std::unique_ptr<catena_work, decltype(catena_communicator::release)> work_{nullptr, nullptr};
};

// A rank's membership of a group. The destructor closes it.
class CommRank {
public:
    CommRank(const catena_communicator& table, catena_comm* comm)
        : table_(&table), comm_(comm, table.close) {}
    // Opens a group; `result` tells how that ended. The rank is closed if it failed.
    static CommRank open(const catena_communicator& table, const catena_comm_options& options,
                         CallResult& result);

    explicit operator bool() const { return comm_ != nullptr; }
    catena_comm_info info() const;
    int rank() const { return info().rank; }
    int size() const { return info().size; }
    CallResult start(const catena_operation& operation, StartedWork& work) const;
    CallResult run(const catena_operation& operation) const;  // start, wait, release
    CommRank split(int color, int key, CallResult& result) const;
    void abort(const char* reason) const { table_->abort(get(), reason); }
    void close() { comm_.reset(); }
    const catena_communicator& table() const { return *table_; }
    catena_comm* get() const { return comm_.get(); }

private:
    const catena_communicator* table_;
    std::unique_ptr<catena_comm, decltype(catena_communicator::close)> comm_;
};

// Options of rank `rank` of `size`. The address, which may be NULL, must outlive them.
catena_comm_options comm_options(int rank, int size, const char* address, double timeout);
// An operation on memory of the CPU.
catena_operation comm_operation(int kind, catena_dtype dtype, const void* send, void* recv,
                                std::uint64_t count);

// Opens a group of `size` ranks, a thread each, and calls body() on each thread; rank 0 runs on the
// calling one. Each rank is closed when its body is done. Throws what the body of the lowest rank
// threw, and a Failure if a rank cannot open the group.
void run_ranks(const catena_communicator& table, int size, double timeout,
               const std::function<void(CommRank&)>& body);

}  // namespace catena::testing
