// The part of NCCL that catena uses, for ranks that are threads of one process. Like NCCL's, a
// communicator that does not block launches late, operations of a group run at the same time, and
// ranks whose operations differ wait for each other until they are aborted.
#include <cuda_runtime_api.h>
#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#include <catena/plugin/communicator.hpp>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "emulator/control.h"
#include "emulator/work.hpp"

namespace {

enum class Kind { all_reduce, reduce, broadcast, all_gather, reduce_scatter, send, recv };
struct Operation {
    Kind kind;
    const char* send;
    char* recv;
    std::size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int peer;

    bool fits(const Operation& o) const {
        return kind == o.kind && count == o.count && type == o.type && op == o.op && peer == o.peer;
    }
};

// A collective operation: what each rank has given, and how many have finished reading.
struct Meeting {
    std::map<int, Operation> arrived;
    int finished = 0;
};
// A message that the sender holds until the receiver has copied it.
struct Letter {
    Operation operation;
    bool taken = false;
};

struct World {
    explicit World(int n) : size(n) {}
    const int size;
    int joined = 0;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::size_t, Meeting> meetings;
    std::map<std::pair<int, int>, std::deque<std::shared_ptr<Letter>>> mail;
};

using Batch = std::vector<Operation>;

struct Member {
    std::shared_ptr<World> world;
    int rank = 0;
    int device = 0;
    std::size_t met = 0;  // collectives so far
    int running = 0;      // kernels that were launched and have not ended
    bool aborted = false;
};

struct Library {
    std::mutex mutex;
    std::map<int, std::shared_ptr<World>> worlds;
    int ids = 0;
    // The groups of calls that threads have begun. Not thread_local: the thread sanitizer does not
    // see how the C library hands such memory of a loaded library to later threads.
    std::map<std::thread::id, std::vector<ncclComm_t>> groups;
};
Library& library() {
    static auto* const one = new Library;
    return *one;
}

catena_dtype dtype_of(ncclDataType_t type) {
    constexpr catena_dtype all[] = {{CATENA_CODE_INT, 8, 1},    {CATENA_CODE_UINT, 8, 1},
                                    {CATENA_CODE_INT, 32, 1},   {CATENA_CODE_UINT, 32, 1},
                                    {CATENA_CODE_INT, 64, 1},   {CATENA_CODE_UINT, 64, 1},
                                    {CATENA_CODE_FLOAT, 16, 1}, {CATENA_CODE_FLOAT, 32, 1},
                                    {CATENA_CODE_FLOAT, 64, 1}, {CATENA_CODE_BFLOAT, 16, 1}};
    return all[type];
}
std::size_t bytes_of(const Operation& o) {
    return o.count * catena::plugin::item_bytes(dtype_of(o.type));
}

// The bytes that a rank of `size` reads from send and writes to recv.
std::size_t read_bytes(const Operation& o, int rank, int size) {
    if (o.kind == Kind::recv || (o.kind == Kind::broadcast && rank != o.peer)) return 0;
    return bytes_of(o) * static_cast<std::size_t>(o.kind == Kind::reduce_scatter ? size : 1);
}
std::size_t written_bytes(const Operation& o, int rank, int size) {
    if (o.kind == Kind::send || (o.kind == Kind::reduce && rank != o.peer)) return 0;
    return bytes_of(o) * static_cast<std::size_t>(o.kind == Kind::all_gather ? size : 1);
}

// Returns the reduction of the ranks' elements that begin at `first`.
std::vector<char> reduced(const Meeting& meeting, std::size_t first, const Operation& own) {
    constexpr int reductions[] = {CATENA_REDUCE_SUM, CATENA_REDUCE_PROD, CATENA_REDUCE_MAX,
                                  CATENA_REDUCE_MIN, CATENA_REDUCE_MEAN};
    const std::size_t bytes = bytes_of(own), item = bytes / own.count;
    const auto part = [&](int rank) { return meeting.arrived.at(rank).send + first * item; };
    std::vector<char> sum(part(0), part(0) + bytes);
    const int size = static_cast<int>(meeting.arrived.size());
    for (int r = 1; r < size; ++r)
        catena::plugin::reduce_into(sum.data(), part(r), own.count, dtype_of(own.type),
                                    reductions[own.op]);
    if (own.op == ncclAvg) catena::plugin::divide(sum.data(), own.count, dtype_of(own.type), size);
    return sum;
}

void finish(const Meeting& meeting, const Operation& own, int rank) {
    const std::size_t bytes = bytes_of(own), place = static_cast<std::size_t>(rank);
    std::vector<char> result;
    switch (own.kind) {
        case Kind::all_reduce: result = reduced(meeting, 0, own); break;
        case Kind::reduce:
            if (rank == own.peer) result = reduced(meeting, 0, own);
            break;
        case Kind::broadcast: {
            const char* from = meeting.arrived.at(own.peer).send;
            result.assign(from, from + bytes);
            break;
        }
        case Kind::all_gather:
            for (const auto& entry : meeting.arrived)
                result.insert(result.end(), entry.second.send, entry.second.send + bytes);
            break;
        default: result = reduced(meeting, place * own.count, own);
    }
    // memory of a rank is written after all have read
    std::memcpy(own.recv, result.data(), result.size());
}

// Waits until the condition holds; returns false if the rank was aborted.
template <class Condition>
bool wait(Member& m, std::unique_lock<std::mutex>& lock, const Condition& condition) {
    m.world->changed.wait(lock, [&] { return m.aborted || condition(); });
    return !m.aborted;
}

bool meet(Member& m, std::unique_lock<std::mutex>& lock, const Operation& own) {
    World& world = *m.world;
    Meeting& meeting = world.meetings[m.met++];
    meeting.arrived[m.rank] = own;
    world.changed.notify_all();
    const auto complete = [&] {
        if (static_cast<int>(meeting.arrived.size()) < world.size) return false;
        for (const auto& entry : meeting.arrived)
            if (!entry.second.fits(own)) return false;
        return true;
    };
    if (!wait(m, lock, complete)) return false;
    // The last rank to arrive, or to wake up first, computes the results of all.
    if (meeting.finished == 0) {
        std::map<int, std::vector<char>> kept;
        Meeting inputs = meeting;
        for (auto& [rank, o] : inputs.arrived) {
            kept[rank].assign(o.send, o.send + read_bytes(o, rank, world.size));
            o.send = kept[rank].data();
        }
        for (const auto& [rank, o] : meeting.arrived) finish(inputs, o, rank);
    }
    ++meeting.finished;
    world.changed.notify_all();
    return true;
}

bool receive(Member& m, std::unique_lock<std::mutex>& lock, const Operation& own) {
    auto& box = m.world->mail[{own.peer, m.rank}];
    if (!wait(m, lock, [&] { return !box.empty(); })) return false;
    const auto letter = box.front();
    if (bytes_of(letter->operation) != bytes_of(own)) return wait(m, lock, [] { return false; });
    box.pop_front();
    std::memcpy(own.recv, letter->operation.send, bytes_of(own));
    letter->taken = true;
    m.world->changed.notify_all();
    return true;
}

void run(Member& m, const Batch& batch) {
    std::unique_lock lock(m.world->mutex);
    const auto ended = [&] {
        --m.running;
        m.world->changed.notify_all();
    };
    if (m.aborted) return ended();
    std::vector<std::shared_ptr<Letter>> sent;
    for (const Operation& o : batch)
        if (o.kind == Kind::send) {
            sent.push_back(std::make_shared<Letter>(Letter{o}));
            m.world->mail[{m.rank, o.peer}].push_back(sent.back());
        }
    m.world->changed.notify_all();
    bool runs = true;
    for (const Operation& o : batch)
        if (o.kind != Kind::send)
            runs = runs && (o.kind == Kind::recv ? receive(m, lock, o) : meet(m, lock, o));
    for (const auto& letter : sent) runs = runs && wait(m, lock, [&] { return letter->taken; });
    ended();
}

}  // namespace

struct ncclComm {
    std::shared_ptr<Member> member;
    cudaStream_t stream = nullptr;
    Batch batch;
    Batch late;  // the last group's operations, which the second ncclCommGetAsyncError() launches
    int polls = 0;
    bool finalized = false;
    bool ready = false;  // all ranks have joined, and a poll has told so
};

namespace {

ncclResult_t launch(const std::shared_ptr<Member>& member, cudaStream_t stream, Batch batch) {
    int before = 0;
    if (cudaGetDevice(&before) != cudaSuccess || cudaSetDevice(member->device) != cudaSuccess)
        return ncclUnhandledCudaError;
    {
        const std::lock_guard running(member->world->mutex);
        ++member->running;
    }
    std::vector<catena_emulator::Range> ranges;
    for (const Operation& o : batch) {
        ranges.push_back({o.send, read_bytes(o, member->rank, member->world->size)});
        ranges.push_back({o.recv, written_bytes(o, member->rank, member->world->size), true});
    }
    const cudaError_t error = catena_emulator::work(
        stream, std::move(ranges), [member, batch = std::move(batch)] { run(*member, batch); });
    cudaSetDevice(before);
    return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, const Operation& o) {
    const std::lock_guard lock(library().mutex);
    const auto group = library().groups.find(std::this_thread::get_id());
    if (group == library().groups.end() || !comm->ready || !comm->late.empty())
        return ncclInvalidUsage;
    if (o.peer < 0 || o.peer >= comm->member->world->size || o.count == 0)
        return ncclInvalidArgument;  // NCCL ignores empty operations; catena does not start them
    if (comm->batch.empty()) group->second.push_back(comm);
    else if (comm->stream != stream) return ncclInvalidUsage;
    comm->stream = stream;
    comm->batch.push_back(o);
    return ncclSuccess;
}

void release(ncclComm_t comm) {
    catena_emulator_live(-1);
    delete comm;
}

const char* bytes(const void* data) { return static_cast<const char*>(data); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

ncclResult_t ncclGetVersion(int* version) {
    *version = 22800;
    return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
    return result == ncclSuccess ? "no error" : "an error of the emulated NCCL";
}
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    const std::lock_guard lock(library().mutex);
    const int number = ++library().ids;
    *id = {};
    std::memcpy(id->internal, &number, sizeof number);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
    if (rank < 0 || rank >= size || config->magic != 0xcafebeef || config->blocking != 0)
        return ncclInvalidArgument;
    int number = 0;
    std::memcpy(&number, id.internal, sizeof number);
    auto* made = new ncclComm;
    made->member = std::make_shared<Member>();
    made->member->rank = rank;
    if (cudaGetDevice(&made->member->device) != cudaSuccess) {
        delete made;
        return ncclUnhandledCudaError;
    }
    {
        const std::lock_guard lock(library().mutex);
        auto& world = library().worlds[number];
        if (world == nullptr) world = std::make_shared<World>(size);
        made->member->world = world;
        const std::lock_guard inner(world->mutex);
        ++world->joined;
    }
    catena_emulator_live(1);
    *comm = made;
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
    Member& m = *comm->member;
    {
        const std::lock_guard lock(m.world->mutex);
        *result = m.world->joined < m.world->size ? ncclInProgress : ncclSuccess;
    }
    comm->ready = *result == ncclSuccess;
    if (!comm->late.empty() && ++comm->polls < 2) *result = ncclInProgress;
    else if (comm->finalized) {
        const std::lock_guard lock(m.world->mutex);
        *result = m.running > 0 ? ncclInProgress : ncclSuccess;
    } else if (!comm->late.empty())
        *result = launch(comm->member, comm->stream, std::exchange(comm->late, {}));
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    comm->finalized = true;
    return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    release(comm);
    return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
    {
        const std::lock_guard lock(comm->member->world->mutex);
        Member& m = *comm->member;
        m.aborted = true;
        // other ranks must not read its memory, which may be freed now
        for (auto& entry : m.world->meetings)
            if (entry.second.finished == 0) entry.second.arrived.erase(m.rank);
        for (auto& box : m.world->mail)
            if (box.first.first == m.rank) box.second.clear();
        m.world->changed.notify_all();
    }
    release(comm);
    return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
    const std::lock_guard lock(library().mutex);
    return library().groups.try_emplace(std::this_thread::get_id()).second ? ncclSuccess
                                                                           : ncclInvalidUsage;
}
ncclResult_t ncclGroupEnd() {
    const std::lock_guard lock(library().mutex);
    const auto group = library().groups.extract(std::this_thread::get_id());
    if (group.empty()) return ncclInvalidUsage;
    for (const ncclComm_t comm : group.mapped()) {
        comm->late = std::exchange(comm->batch, {});
        comm->polls = 0;
    }
    return group.mapped().empty() ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    return add(comm, stream,
               {Kind::all_reduce, bytes(send), static_cast<char*>(recv), count, type, op, 0});
}
ncclResult_t ncclReduce(const void* send, void* recv, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
    return add(comm, stream,
               {Kind::reduce, bytes(send), static_cast<char*>(recv), count, type, op, root});
}
ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
    return add(
        comm, stream,
        {Kind::broadcast, bytes(send), static_cast<char*>(recv), count, type, ncclSum, root});
}
ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
    return add(comm, stream,
               {Kind::all_gather, bytes(send), static_cast<char*>(recv), count, type, ncclSum, 0});
}
ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    return add(comm, stream,
               {Kind::reduce_scatter, bytes(send), static_cast<char*>(recv), count, type, op, 0});
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
    return add(comm, stream, {Kind::send, bytes(send), nullptr, count, type, ncclSum, peer});
}
ncclResult_t ncclRecv(void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return add(comm, stream,
               {Kind::recv, nullptr, static_cast<char*>(recv), count, type, ncclSum, peer});
}

}  // extern "C"
#pragma GCC visibility pop
