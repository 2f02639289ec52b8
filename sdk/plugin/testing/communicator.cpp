// Runs the ranks of a communicator as threads of this process.
#include "catena/testing/communicator.hpp"

#include <atomic>
#include <exception>
#include <thread>

#include "catena/testing/report.hpp"

namespace catena::testing {
namespace {

template <class Call>
CallResult result_of(const Call& call) {
    catena_ctx ctx{nullptr, {}, {}};
    const catena_status status = call(&ctx);
    return {status, status == CATENA_OK ? "" : ctx.error};
}

}  // namespace

CallResult StartedWork::wait() const {
    return result_of([&](catena_ctx* ctx) { return table_->wait(ctx, work_.get()); });
}
CallResult StartedWork::test(bool& done) const {
    std::int32_t flag = -1;
    CallResult result =
        result_of([&](catena_ctx* ctx) { return table_->test(ctx, work_.get(), &flag); });
    done = flag == 1;
    return result;
}

CommRank CommRank::open(const catena_communicator& table, const catena_comm_options& options,
                        CallResult& result) {
    catena_comm* comm = nullptr;
    result = result_of([&](catena_ctx* ctx) { return table.open(ctx, &options, &comm); });
    return {table, result ? comm : nullptr};
}
catena_comm_info CommRank::info() const {
    catena_comm_info info = {};
    info.struct_size = sizeof info;
    table_->info(get(), &info);
    return info;
}
CallResult CommRank::start(const catena_operation& operation, StartedWork& work) const {
    catena_work* started = nullptr;
    CallResult result =
        result_of([&](catena_ctx* ctx) { return table_->start(ctx, get(), &operation, &started); });
    work = StartedWork(*table_, result ? started : nullptr);
    return result;
}
CallResult CommRank::run(const catena_operation& operation) const {
    StartedWork work;
    if (CallResult result = start(operation, work); !result) return result;
    return work.wait();
}
CommRank CommRank::split(int color, int key, CallResult& result) const {
    catena_comm* part = nullptr;
    result =
        result_of([&](catena_ctx* ctx) { return table_->split(ctx, get(), color, key, &part); });
    return {*table_, result ? part : nullptr};
}

catena_comm_options comm_options(int rank, int size, const char* address, double timeout) {
    catena_comm_options options = {};
    options.struct_size = sizeof options;
    options.rank = rank;
    options.size = size;
    options.address = address;
    options.timeout = timeout;
    return options;
}
catena_operation comm_operation(int kind, catena_dtype dtype, const void* send, void* recv,
                                std::uint64_t count) {
    catena_operation o = {};
    o.struct_size = sizeof o;
    o.kind = kind;
    o.dtype = dtype;
    o.send = send;
    o.recv = recv;
    o.count = count;
    o.device_type = 1;  // DLPack's kDLCPU
    return o;
}

void run_ranks(const catena_communicator& table, int size, double timeout,
               const std::function<void(CommRank&)>& body) {
    static std::atomic<int> groups = 0;
    const std::string address = "test " + std::to_string(groups.fetch_add(1));
    std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(size));
    const auto run = [&](int rank) {
        try {
            CallResult result;
            CommRank own =
                CommRank::open(table, comm_options(rank, size, address.c_str(), timeout), result);
            if (!result) throw Failure(result.status, "open(): " + result.text);
            body(own);
        } catch (...) {
            thrown[static_cast<std::size_t>(rank)] = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    for (int rank = 1; rank < size; ++rank) threads.emplace_back(run, rank);
    run(0);
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& e : thrown)
        if (e != nullptr) std::rethrow_exception(e);
}

}  // namespace catena::testing
