// Operations on NCCL. Each is given to NCCL at once, and compared with the other ranks' meanwhile.
#include "group.hpp"

#include <algorithm>
#include <cstring>

namespace catena_nccl {

using namespace catena::plugin;

namespace {

// Copies and the like are done in bytes, so they take every dtype.
ncclDataType_t type_of(const catena_operation& o) {
    if (!reduces(o.kind)) return ncclUint8;
    const unsigned bits = o.dtype.bits;
    switch (o.dtype.code) {
        case CATENA_CODE_BFLOAT: return ncclBfloat16;
        case CATENA_CODE_FLOAT:
            return bits == 16 ? ncclFloat16 : bits == 32 ? ncclFloat32 : ncclFloat64;
        case CATENA_CODE_BOOL:
            if (bits == 8) return ncclUint8;  // min and max
            break;
        case CATENA_CODE_INT:
            if (bits != 16) return bits == 8 ? ncclInt8 : bits == 32 ? ncclInt32 : ncclInt64;
            break;
        case CATENA_CODE_UINT:
            if (bits != 16) return bits == 8 ? ncclUint8 : bits == 32 ? ncclUint32 : ncclUint64;
            break;
        default: break;
    }
    fail(CATENA_E_DTYPE, name_of_operation(o.kind), "dtype",
         "bool, int or uint of 8, 32 or 64 bits, or a floating dtype", text_of(o.dtype));
}

ncclRedOp_t reduction_of(const catena_operation& o) {
    constexpr ncclRedOp_t all[] = {ncclSum, ncclAvg, ncclMin, ncclMax, ncclProd};
    return all[o.reduction];
}

bool is_pair(const catena_operation& o) {
    return o.kind == CATENA_OP_SEND || o.kind == CATENA_OP_RECV;
}
Route route_of(const catena_operation& o, int rank) {
    if (!is_pair(o)) return collective;
    return o.kind == CATENA_OP_SEND ? Route(rank, o.peer) : Route(o.peer, rank);
}

// What rank 0 compares.
Message message_of(const catena_operation& o, const Info& info) {
    Message m;
    m.route = route_of(o, info.rank);
    m.head = place_of(info, o);
    m.text = agreement(o, info);
    if (is_pair(o))
        m.text = text_of(o.dtype) + " x " + std::to_string(o.count) + " with tag " +
                 std::to_string(o.tag) + " from rank " + std::to_string(m.route.first) +
                 " to rank " + std::to_string(m.route.second);
    if (o.kind != CATENA_OP_GATHER && o.kind != CATENA_OP_SCATTER && o.kind != CATENA_OP_ALLTOALL)
        return m;
    m.sent = send_pieces(o, info).counts;
    m.received = recv_pieces(o, info).counts;
    m.sent.resize(static_cast<std::size_t>(info.size));
    m.received.resize(static_cast<std::size_t>(info.size));
    const auto root = static_cast<std::size_t>(o.peer);
    if (o.kind == CATENA_OP_GATHER) m.sent[root] = o.count;
    if (o.kind == CATENA_OP_SCATTER) m.received[root] = o.count;
    return m;
}

bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes) {
    const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
    return x < y + b_bytes && y < x + a_bytes;
}

}  // namespace

// ---- Operation

Operation::~Operation() {
    const CurrentDevice current(group_.device_);
    end_.reset();
}

bool Operation::test() {
    if (done_) return true;
    const Control& control = group_.control_;
    control.throw_if_failed();
    if (!control.agreed(route_, number_)) return false;
    {
        const OnDevice device(group_.device_);
        if (!end_->done()) return false;
    }
    control.throw_if_failed();  // an operation that was aborted also ends
    done_ = true;
    return true;
}

void Operation::wait() {
    for (auto pause = std::chrono::microseconds(20); !test();
         pause = std::min(2 * pause, std::chrono::microseconds(1000)))
        std::this_thread::sleep_for(pause);
}

void Operation::wait_on(catena_stream* stream) {
    if (!done_) group_.control_.throw_if_failed();
    const OnDevice device(group_.device_);
    check("cudaStreamWaitEvent",
          cudaStreamWaitEvent(reinterpret_cast<cudaStream_t>(stream), end_->get(), 0));
}

// ---- Group

Group::Group(Control::Place place, int device, double timeout)
    : device_(device),
      timeout_(timeout),
      info_{sizeof info_, place.rank, place.size, 0, 1, 0},
      control_(std::move(place), timeout, make_id) {
    info_.local_rank = control_.local_rank();
    info_.local_size = control_.local_size();
    try {
        control_.run([this] { step(); }, [this] { return busy(); });
        const OnDevice current(device_);
        const Waiting waiting =
            until(after(timeout_), "rank " + std::to_string(info_.rank) + ": [open] NCCL");
        auto link = std::make_unique<Link>(device_, info_.rank, info_.size, control_.id(), waiting);
        // NCCL connects the ranks for its first operation, and waits for all of them.
        link->complete(waiting, [&](ncclComm_t comm, cudaStream_t stream) {
            check("ncclAllReduce", nccl().all_reduce(link->byte(), link->byte(), 1, ncclUint8,
                                                     ncclMax, comm, stream));
        });
        const std::lock_guard lock(links_mutex_);
        links_[collective] = std::move(link);
    } catch (const Error& error) {
        control_.fail(error.what());
        control_.leave();
        throw;
    }
}

Group::~Group() {
    closing_ = true;
    control_.leave();
    for (auto& making : making_) making.second.join();
    const CurrentDevice current(device_);
    try {
        const Waiting waiting = until(after(timeout_), "close");
        if (all_done())
            for (auto& link : links_) link.second->close(waiting);
    } catch (const Error&) {
        // links that are not closed are aborted
    }
    links_.clear();
    running_.clear();
    for (void* data : scratch_) static_cast<void>(cudaFree(data));
}

// Returns a function that throws once the group has failed or the limit is over.
Waiting Group::until(Clock::time_point limit, const std::string& head) const {
    return [this, limit, head] {
        control_.throw_if_failed();
        if (Clock::now() > limit)
            throw Error(CATENA_E_DEVICE,
                        head + ": expected connections within the timeout, got none");
    };
}

bool Group::busy() {
    const std::lock_guard lock(running_mutex_);
    return !running_.empty();
}

bool Group::all_done() {
    if (!control_.failure().empty()) return false;
    return std::ranges::all_of(running_, [](const auto& o) { return o->end_->done(); });
}

void Group::step() {
    if (!control_.failure().empty()) {
        const std::lock_guard lock(links_mutex_);
        if (aborted_) return;
        aborted_ = true;
        const CurrentDevice current(device_);
        for (auto& link : links_) link.second->interrupt();
        return;
    }
    for (const auto& [route, id] : control_.channels())
        if (!making_.contains(route))
            making_[route] = std::thread([this, r = route, i = id] { make_channel(r, i); });
    try {
        const OnDevice current(device_);
        if (std::unique_lock lock(links_mutex_, std::try_to_lock); lock)
            for (const auto& link : links_) link.second->poll();
        const std::lock_guard lock(running_mutex_);
        std::erase_if(running_, [this](const auto& o) {
            return o->end_ != nullptr && control_.agreed(o->route_, o->number_) && o->end_->done();
        });
        const auto now = Clock::now();
        for (const auto& o : running_) {
            if (now < o->limit_) continue;
            if (!std::exchange(o->late_, true))
                control_.late(o->route_, o->number_, o->head_, o->seconds_);
            else if (now > o->limit_ + std::chrono::seconds(1))
                control_.fail(o->head_ + ": expected an answer of rank 0, got none");
        }
    } catch (const Error& error) {
        control_.fail("rank " + std::to_string(info_.rank) + ": " + error.what());
    }
}

void Group::make_channel(Route route, const std::string& id) {
    const std::string head = "rank " + std::to_string(info_.rank) +
                             ": [open] a channel from rank " + std::to_string(route.first) +
                             " to rank " + std::to_string(route.second);
    try {
        const OnDevice current(device_);
        const Waiting waiting = [&, limit = until(after(timeout_), head)] {
            limit();
            if (closing_) throw Error(CATENA_E_DEVICE, head + ": the group is closed");
        };
        const bool sends = route.first == info_.rank;
        auto link = std::make_unique<Link>(device_, sends ? 0 : 1, 2, id, waiting);
        // The first operation connects; it would wait for the other rank.
        link->complete(waiting, [&](ncclComm_t comm, cudaStream_t stream) {
            if (sends) check("ncclSend", nccl().send(link->byte(), 1, ncclUint8, 1, comm, stream));
            else check("ncclRecv", nccl().recv(link->byte(), 1, ncclUint8, 0, comm, stream));
        });
        const std::lock_guard lock(links_mutex_);
        links_[route] = std::move(link);
    } catch (const Error& error) {
        if (!closing_) control_.fail(error.what());
    }
}

Link& Group::channel(Route route, const Waiting& waiting) {
    for (bool asked = false;; asked = true) {
        {
            const std::lock_guard lock(links_mutex_);
            if (const auto found = links_.find(route); found != links_.end()) return *found->second;
        }
        if (!asked) control_.ask_for_channel(route);
        pause(waiting);
    }
}

void* Group::scratch(std::uint64_t bytes) {
    if (bytes > scratch_bytes_) {
        // Earlier blocks may be in use, and cudaFree() would wait for the device.
        const std::uint64_t more = std::max(bytes, 2 * scratch_bytes_);
        void* data = nullptr;
        check("cudaMalloc", cudaMalloc(&data, more));
        scratch_.push_back(data);
        scratch_bytes_ = more;
    }
    return scratch_.back();
}

void Group::check_here(const catena_operation& o) const {
    const char* const name = name_of_operation(o.kind);
    constexpr int cuda = 2;  // kDLCUDA
    if (o.kind != CATENA_OP_BARRIER && (o.device_type != cuda || o.device_id != device_))
        fail(CATENA_E_INVALID, name, "memory", "cuda:" + std::to_string(device_),
             "device " + std::to_string(o.device_id) + " of DLPack's type " +
                 std::to_string(o.device_type));
    static_cast<void>(type_of(o));
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check("cudaStreamIsCapturing",
          cudaStreamIsCapturing(reinterpret_cast<cudaStream_t>(o.stream), &status));
    if (status != cudaStreamCaptureStatusNone)
        fail(CATENA_E_UNSUPPORTED, name, "stream", "one that is not being recorded",
             "one that is being recorded");
}

std::shared_ptr<Work> Group::start(const catena_operation& o) {
    control_.throw_if_failed();
    const OnDevice current(device_);
    check_here(o);
    Message message = message_of(o, info_);
    const auto operation = std::make_shared<Operation>(*this, message.route, message.head,
                                                       o.timeout > 0 ? o.timeout : timeout_);
    try {
        const Event begin;
        auto end = std::make_unique<Event>();
        check("cudaEventRecord",
              cudaEventRecord(begin.get(), reinterpret_cast<cudaStream_t>(o.stream)));
        operation->number_ = control_.start(std::move(message));
        bool first = false;
        {
            const std::lock_guard lock(running_mutex_);
            first = running_.empty();
            running_.push_back(operation);
        }
        if (first) control_.wake();
        // After the timeout the group fails by rank 0's answer; this limit is for a lost answer.
        const Waiting waiting =
            until(operation->limit_ + std::chrono::seconds(2), operation->head_);
        Link& link = channel(operation->route_, waiting);
        {
            const std::lock_guard lock(links_mutex_);
            control_.throw_if_failed();
            check("cudaStreamWaitEvent", cudaStreamWaitEvent(link.stream(), begin.get(), 0));
            launch(o, link, waiting);
            check("cudaEventRecord", cudaEventRecord(end->get(), link.stream()));
        }
        const std::lock_guard lock(running_mutex_);
        operation->end_ = std::move(end);
    } catch (const Error& error) {
        const std::lock_guard lock(running_mutex_);
        std::erase(running_, operation);
        control_.fail(error.what());
        throw Error(CATENA_E_DEVICE, control_.failure());
    }
    return operation;
}

void Group::launch(const catena_operation& o, Link& link, const Waiting& waiting) {
    const int me = info_.rank;
    const bool root = o.peer == me, pair = is_pair(o);
    const bool gives = pair ? o.kind == CATENA_OP_SEND
                            : root || (o.kind != CATENA_OP_BCAST && o.kind != CATENA_OP_SCATTER);
    const bool takes = pair   ? o.kind == CATENA_OP_RECV
                       : root ? o.kind != CATENA_OP_BCAST
                              : o.kind != CATENA_OP_REDUCE && o.kind != CATENA_OP_GATHER;
    const Pieces sends = send_pieces(o, info_), recvs = recv_pieces(o, info_);
    const ncclDataType_t type = type_of(o);
    const std::uint64_t item = item_bytes(o.dtype), unit = reduces(o.kind) ? 1 : item;
    const auto* send = static_cast<const char*>(o.send);
    auto* const recv = static_cast<char*>(o.recv);
    const auto offset = [&](const Pieces& pieces, int rank) {
        return pieces.counts.empty() ? 0 : pieces.offsets[static_cast<std::size_t>(rank)] * item;
    };
    const auto total = [&](const Pieces& pieces) {
        return (pieces.counts.empty() ? o.count : pieces.total()) * item;
    };
    // NCCL works in place if a rank's own pieces are the same memory, except in alltoall.
    if (gives && takes && o.kind != CATENA_OP_BARRIER &&
        (send + offset(sends, me) != recv + offset(recvs, me) || o.kind == CATENA_OP_ALLTOALL) &&
        overlap(send, total(sends), recv, total(recvs))) {
        void* const copy = scratch(total(sends));
        check("cudaMemcpyAsync",
              cudaMemcpyAsync(copy, send, total(sends), cudaMemcpyDeviceToDevice, link.stream()));
        send = static_cast<const char*>(copy);
    }
    const auto given = [&](int rank) { return send + offset(sends, rank); };
    const auto taken = [&](int rank) { return recv + offset(recvs, rank); };
    const auto count = [&](const Pieces& pieces, int rank) {
        return pieces.counts.empty() ? o.count : pieces.counts[static_cast<std::size_t>(rank)];
    };
    const bool even =
        std::ranges::all_of(o.kind == CATENA_OP_ALLGATHER ? recvs.counts : sends.counts,
                            [&](std::uint64_t n) { return n == o.count; });

    const bool exchanges =
        o.kind == CATENA_OP_GATHER || o.kind == CATENA_OP_SCATTER || o.kind == CATENA_OP_ALLTOALL;
    if (exchanges && gives && takes && count(sends, me) > 0 && given(me) != taken(me))
        check("cudaMemcpyAsync", cudaMemcpyAsync(taken(me), given(me), count(sends, me) * item,
                                                 cudaMemcpyDeviceToDevice, link.stream()));
    const Library& library = nccl();
    link.launch(waiting, [&](ncclComm_t comm, cudaStream_t stream) {
        const auto to = [&](int rank, const void* data, std::uint64_t n) {
            if (n > 0) check("ncclSend", library.send(data, n * unit, type, rank, comm, stream));
        };
        const auto from = [&](int rank, void* data, std::uint64_t n) {
            if (n > 0) check("ncclRecv", library.recv(data, n * unit, type, rank, comm, stream));
        };
        const auto reduce = [&](const void* in, void* out, std::uint64_t n, int rank) {
            if (n > 0)
                check("ncclReduce",
                      library.reduce(in, out, n, type, reduction_of(o), rank, comm, stream));
        };
        const auto broadcast = [&](const void* in, void* out, std::uint64_t n, int rank) {
            if (n > 0)
                check("ncclBroadcast",
                      library.broadcast(in, out, n * unit, type, rank, comm, stream));
        };
        switch (o.kind) {
            case CATENA_OP_BARRIER:
                return check("ncclAllReduce", library.all_reduce(link.byte(), link.byte(), 1,
                                                                 ncclUint8, ncclMax, comm, stream));
            case CATENA_OP_ALLREDUCE:
                if (o.count == 0) return;
                return check("ncclAllReduce", library.all_reduce(send, recv, o.count, type,
                                                                 reduction_of(o), comm, stream));
            case CATENA_OP_REDUCE: return reduce(send, recv, o.count, o.peer);
            case CATENA_OP_BCAST:
                if (root) return broadcast(send, const_cast<char*>(send), o.count, o.peer);
                return broadcast(recv, recv, o.count, o.peer);
            case CATENA_OP_ALLGATHER:
                if (even && o.count > 0)
                    return check("ncclAllGather", library.all_gather(send, recv, o.count * unit,
                                                                     type, comm, stream));
                for (int r = 0; r < info_.size; ++r)
                    broadcast(r == me ? send : taken(r), taken(r), count(recvs, r), r);
                return;
            case CATENA_OP_REDUCE_SCATTER:
                if (even && o.count > 0)
                    return check("ncclReduceScatter",
                                 library.reduce_scatter(send, recv, o.count, type, reduction_of(o),
                                                        comm, stream));
                for (int r = 0; r < info_.size; ++r) reduce(given(r), recv, count(sends, r), r);
                return;
            case CATENA_OP_SEND: return to(1, send, o.count);    // a channel has two ranks:
            case CATENA_OP_RECV: return from(0, recv, o.count);  // 0 sends to 1
            default: break;
        }
        for (int r = 0; r < info_.size; ++r) {
            if (r == me) continue;
            if (o.kind == CATENA_OP_ALLTOALL || (o.kind == CATENA_OP_SCATTER && root) ||
                (o.kind == CATENA_OP_GATHER && r == o.peer))
                to(r, given(r), count(sends, r));
            if (o.kind == CATENA_OP_ALLTOALL || (o.kind == CATENA_OP_GATHER && root) ||
                (o.kind == CATENA_OP_SCATTER && r == o.peer))
                from(r, taken(r), count(recvs, r));
        }
    });
}

std::unique_ptr<catena::plugin::Group> Group::split(std::int32_t color, std::int32_t key) {
    control_.throw_if_failed();
    Control::Place place =
        control_.split(color, key, "rank " + std::to_string(info_.rank) + ": [split]", timeout_);
    if (place.size == 0) return nullptr;
    return std::make_unique<Group>(std::move(place), device_, timeout_);
}

void Group::abort(std::string_view reason) noexcept {
    try {
        control_.fail("rank " + std::to_string(info_.rank) + ": aborted: " + std::string(reason));
    } catch (const std::exception&) {
        // no memory for the text: the others' timeouts end the operations
    }
}

}  // namespace catena_nccl
