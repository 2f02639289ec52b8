// A rank of the tests: the plugin's table, loaded by itself, and calls that throw its errors.
#pragma once

#include <catena/abi.h>
#include <catena/abi/ext/communicator.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mpi_test {

inline thread_local std::string last_text;

// A host with the services that the plugin uses.
inline const catena_plugin& load(const char* path) {
    static catena_host host = {};
    host.struct_size = sizeof host;
    host.abi_major = CATENA_ABI_MAJOR;
    host.abi_minor = CATENA_ABI_MINOR;
    host.log = [](catena_ctx*, std::int32_t, const char* text) {
        std::fprintf(stderr, "error: %s\n", text);
    };
    host.fail = [](catena_ctx*, catena_status status, const char* text) {
        last_text = text;
        return status;
    };
    void* const file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (file == nullptr) throw std::runtime_error(dlerror());
    const auto entry =
        reinterpret_cast<decltype(&catena_plugin_entry_v1)>(dlsym(file, "catena_plugin_entry_v1"));
    return *entry(&host, nullptr);
}

struct Error : std::runtime_error {
    Error(catena_status code, const std::string& text) : std::runtime_error(text), status(code) {}
    catena_status status;
};
inline void check(catena_status status) {
    if (status != CATENA_OK) throw Error(status, last_text);
}

// Throws with the place unless the condition is true.
#define EXPECT(condition)                                                                     \
    do {                                                                                      \
        if (!(condition))                                                                     \
            throw std::runtime_error(std::string(__FILE__) + ":" + std::to_string(__LINE__) + \
                                     ": " + #condition);                                      \
    } while (false)

class Work {
public:
    Work(const catena_communicator& table, catena_work* work)
        : table_(&table), work_(work, {table.release}) {}
    void wait() const { check(table_->wait(nullptr, work_.get())); }
    bool test() const {
        std::int32_t done = 0;
        check(table_->test(nullptr, work_.get(), &done));
        return done != 0;
    }

private:
    struct Release {
        void operator()(catena_work* work) const { release(work); }
        decltype(catena_communicator::release) release;
    };
    const catena_communicator* table_;
    std::unique_ptr<catena_work, Release> work_;
};

struct Args {
    int kind = CATENA_OP_BARRIER, reduction = CATENA_REDUCE_SUM, peer = 0, tag = 0;
    catena_dtype dtype = {CATENA_CODE_FLOAT, 32, 1};
    const void* send = nullptr;
    void* recv = nullptr;
    std::uint64_t count = 0;
    const std::vector<std::uint64_t>* send_counts = nullptr;
    const std::vector<std::uint64_t>* recv_counts = nullptr;
    const char* label = nullptr;
    double timeout = 0;
};

class Comm {
public:
    Comm(const catena_communicator& table, double timeout, int rank = -1, int size = 0)
        : table_(&table) {
        catena_comm_options options = {};
        options.struct_size = sizeof options;
        options.rank = rank;
        options.size = size;
        options.timeout = timeout;
        check(table.open(nullptr, &options, &comm_));
        learn();
    }
    Comm(Comm&& other) noexcept
        : table_(other.table_), comm_(std::exchange(other.comm_, nullptr)), info_(other.info_) {}
    Comm& operator=(Comm&&) = delete;
    ~Comm() {
        if (comm_ != nullptr) table_->close(comm_);
    }

    explicit operator bool() const { return comm_ != nullptr; }
    int rank() const { return info_.rank; }
    int size() const { return info_.size; }
    const catena_comm_info& info() const { return info_; }

    Comm split(int color, int key) const {
        Comm part(*table_);
        check(table_->split(nullptr, comm_, color, key, &part.comm_));
        if (part) part.learn();
        return part;
    }
    Work begin(const catena_operation& operation) const {
        catena_work* work = nullptr;
        check(table_->start(nullptr, comm_, &operation, &work));
        return {*table_, work};
    }
    Work start(const Args& args) const {
        catena_operation o = {};
        o.struct_size = sizeof o;
        o.kind = args.kind;
        o.reduction = args.reduction;
        o.peer = args.peer;
        o.tag = args.tag;
        o.dtype = args.dtype;
        o.send = args.send;
        o.recv = args.recv;
        o.count = args.count;
        if (args.send_counts != nullptr) o.send_counts = args.send_counts->data();
        if (args.recv_counts != nullptr) o.recv_counts = args.recv_counts->data();
        o.device_type = 1;  // kDLCPU
        o.label = args.label;
        o.timeout = args.timeout;
        return begin(o);
    }
    void run(const Args& args) const { start(args).wait(); }
    void abort(const char* reason) const { table_->abort(comm_, reason); }

private:
    explicit Comm(const catena_communicator& table) : table_(&table) {}
    void learn() {
        info_.struct_size = sizeof info_;
        table_->info(comm_, &info_);
    }

    const catena_communicator* table_;
    catena_comm* comm_ = nullptr;
    catena_comm_info info_ = {};
};

// worker.cpp's commands.
void test_operations(const Comm& comm);
void test_bits(const Comm& comm);
void test_many(const Comm& comm);
void test_groups(const Comm& comm);
void test_refusals(const Comm& comm);
void fail_by(const Comm& comm, const std::string& scenario);
void measure(const Comm& comm);

}  // namespace mpi_test
