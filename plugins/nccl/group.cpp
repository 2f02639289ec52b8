// Operations on NCCL. Each is given to NCCL at once, and compared with the other ranks' meanwhile.
#include "group.hpp"

#include <algorithm>
#include <cstring>

namespace catena_nccl {

using namespace catena::plugin;

namespace {

// Operations that only copy use bytes, so they accept every dtype.
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

Route route_of(const catena_operation& o, int rank) {
    if (!is_pair(o.kind)) return collective;
    return o.kind == CATENA_OP_SEND ? Route(rank, o.peer) : Route(o.peer, rank);
}

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

}  // namespace

// ---- Operation

Operation::Operation(Group& group, const catena_operation& o)
    : group_(group),
      route_(route_of(o, group.info_.rank)),
      head_(place_of(group.info_, o)),
      seconds_(o.timeout > 0 ? o.timeout : group.timeout_),
      limit_(after(seconds_)) {}

Operation::~Operation() {
    const CurrentDevice current(group_.device_);
    end_.reset();
}

bool Operation::test() {
    if (done_) return true;
    group_.throw_if_failed();
    if (!group_.agreed(*this)) return false;
    {
        const OnDevice device(group_.device_);
        if (!end_->done()) return false;
    }
    group_.throw_if_failed();  // an operation that was aborted also ends
    done_ = true;
    return true;
}

void Operation::wait() {
    for (auto pause = std::chrono::microseconds(20); !test();
         pause = std::min(2 * pause, std::chrono::microseconds(1000)))
        std::this_thread::sleep_for(pause);
}

void Operation::wait_on(catena_stream* stream) {
    if (!done_) group_.throw_if_failed();
    const OnDevice device(group_.device_);
    check("cudaStreamWaitEvent",
          cudaStreamWaitEvent(reinterpret_cast<cudaStream_t>(stream), end_->get(), 0));
}

// Throws Error if the ranks have started different operations: all ranks the same text.
void Operation::compare() const {
    const auto differ = [](const std::string& head, const std::string& expected,
                           const std::string& got) {
        throw Error(CATENA_E_DEVICE, head + ": expected " + expected + ", got " + got);
    };
    if (route_ != collective) {
        if (heard_.empty() || std::strcmp(heard_[0].text, told_[0].text) == 0) return;
        differ(head_, "'" + std::string(told_[0].text) + "'",
               "'" + std::string(heard_[0].text) + "' on " + rank_text(route_.first));
    }
    std::vector<std::string> texts;
    for (const Told& told : heard_) texts.emplace_back(told.text);
    const std::size_t usual = usual_rank(texts);
    for (std::size_t r = 0; r < texts.size(); ++r)
        if (texts[r] != texts[usual])
            differ(rank_text(r) + ": " + heard_[usual].place, texts[usual], texts[r]);
    for (std::size_t r = 0; r < expected_.size(); ++r)
        if (expected_[r] != heard_[r].count)
            differ(head_, std::to_string(expected_[r]) + " elements from " + rank_text(r),
                   std::to_string(heard_[r].count));
}

// ---- failures

void Group::fail_with(const std::string& text) {
    const std::lock_guard lock(failure_mutex_);
    if (failed_) return;
    failure_ = text;
    if (text.empty()) {  // a call of messages_ or pulse_ has failed
        reporter_ = pulse_.get();
        try {
            const std::lock_guard start(messages_mutex_);
            messages_->start({.kind = CATENA_OP_BARRIER});
        } catch (const Error&) {
            reporter_ = messages_.get();
        }
    }
    abort_peers(text.empty() ? "its control messages failed" : text);
    failed_ = true;
}

void Group::abort_peers(const std::string& reason) const {
    for (const Peers* peers : {messages_.get(), pulse_.get()})
        if (peers != nullptr) peers->abort(reason);
}

void Group::throw_if_failed() const {
    if (!failed_) return;
    const std::scoped_lock lock(failure_mutex_, messages_mutex_);
    // fails, and gives its text to the caller's context
    if (failure_.empty()) reporter_->start({.kind = CATENA_OP_BARRIER});
    throw Error(CATENA_E_DEVICE, failure_);
}

void Group::abort(std::string_view reason) noexcept {
    try {
        if (messages_ == nullptr) return fail_with("rank 0: aborted: " + std::string(reason));
        if (failed_) return;
        abort_peers(std::string(reason));
        fail_with("");
    } catch (const std::exception&) {
        // no memory for the text: the others' timeouts end the operations
    }
}

// Returns a function that throws once the group has failed or the limit is over.
Waiting Group::until(Clock::time_point limit, const std::string& head) const {
    return [this, limit, head] {
        throw_if_failed();
        if (Clock::now() > limit)
            throw Error(CATENA_E_DEVICE,
                        head + ": expected connections within the timeout, got none");
    };
}

// ---- Group

Group::Group(std::unique_ptr<Peers> peers, int device, double timeout)
    : device_(device), timeout_(timeout), messages_(std::move(peers)) {
    if (messages_ != nullptr) info_ = messages_->info();
    if (info_.size == 1) messages_.reset();
    try {
        if (info_.rank == 0) make_id().copy(id_, sizeof id_);
        if (messages_ != nullptr) {
            pulse_ = messages_->split(0, info_.rank);
            messages_->wait(messages_->start({.kind = CATENA_OP_BCAST,
                                              .send = id_,
                                              .recv = id_,
                                              .bytes = sizeof id_,
                                              .label = "the id of NCCL"}));
            beats_.resize(at(info_.size));
            silent_ = false;
        }
        thread_ = std::thread([this] {
            for (; !stops_; std::this_thread::sleep_for(std::chrono::milliseconds(2))) step();
        });
        const OnDevice current(device_);
        const Waiting waiting = until(after(timeout_), rank_text(info_.rank) + ": [open] NCCL");
        auto link = std::make_unique<Link>(device_, info_.rank, info_.size,
                                           std::string(id_, sizeof id_), waiting);
        // NCCL connects the ranks for its first operation, and waits for all of them.
        link->complete(waiting, [&](ncclComm_t comm, cudaStream_t stream) {
            check("ncclAllReduce", nccl().all_reduce(link->byte(), link->byte(), 1, ncclUint8,
                                                     ncclMax, comm, stream));
        });
        const std::lock_guard lock(links_mutex_);
        links_[collective] = std::move(link);
    } catch (const Error& error) {
        fail_with(error.what());
        close();
        throw;
    }
}

void Group::close() {
    leaves_ = true;
    for (const auto limit = after(timeout_); !silent_ && !failed_ && Clock::now() < limit;)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stops_ = true;
    if (thread_.joinable()) thread_.join();
    for (auto& making : making_) making.second.join();
    // Notifies the other ranks first, because NCCL may wait for them. Afterwards these operations use no
    // memory of running_.
    for (const auto& o : running_) o->exchange_.reset();
    beating_.reset();
    pulse_.reset();
    messages_.reset();
    const CurrentDevice current(device_);
    try {
        const Waiting waiting = until(after(timeout_), "close");
        if (!failed_ &&
            std::ranges::all_of(running_, [](const auto& o) { return o->end_->done(); }))
            for (auto& link : links_) link.second->close(waiting);
    } catch (const Error&) {
        // links that are not closed are aborted
    }
    links_.clear();
    running_.clear();
    for (void* data : scratch_) static_cast<void>(cudaFree(data));
}

std::unique_ptr<catena::plugin::Group> Group::split(std::int32_t color, std::int32_t key) {
    throw_if_failed();
    std::unique_ptr<Peers> part;
    if (messages_ != nullptr) {
        const std::lock_guard lock(messages_mutex_);
        part = messages_->split(color, key);
    }
    if (color < 0) return nullptr;
    return std::make_unique<Group>(std::move(part), device_, timeout_);
}

void Group::step() {
    if (failed_) {
        const std::lock_guard lock(links_mutex_);
        if (std::exchange(aborted_, true)) return;
        const CurrentDevice current(device_);
        for (auto& link : links_) link.second->interrupt();
        return;
    }
    std::vector<std::shared_ptr<Operation>> running;
    {
        const std::lock_guard lock(running_mutex_);
        running = running_;
    }
    const auto compared = [&](const auto& o) { return agreed(*o); };
    try {
        const OnDevice current(device_);
        if (std::unique_lock lock(links_mutex_, std::try_to_lock); lock)
            for (const auto& link : links_) link.second->poll();
        for (const auto& o : running) {
            if (!agreed(*o)) continue;
            const std::lock_guard lock(running_mutex_);
            if (o->end_ != nullptr && o->end_->done()) std::erase(running_, o);
            else if (Clock::now() > o->limit_)
                throw Error(CATENA_E_DEVICE, o->head_ + ": expected its end within " +
                                                 text_of(o->seconds_) +
                                                 " seconds, got an operation that all ranks "
                                                 "started and that still runs");
        }
        try {
            if (!silent_) beat();
        } catch (const Error&) {
            // Others may have seen a difference first that this rank is about to see.
            const auto limit = after(0.2);
            while (!std::ranges::all_of(running, compared) && Clock::now() < limit)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            throw;
        }
    } catch (const Error& error) {
        const std::string text = error.what();
        fail_with(text.starts_with("[") ? rank_text(info_.rank) + ": " + text : text);
    }
}

// A failure of others is noticed by the beats also while this rank waits for nothing but its device.
void Group::beat() {
    if (beating_ == nullptr) {
        if (Clock::now() < next_beat_) return;
        const std::lock_guard lock(running_mutex_);
        own_beat_ = {leaves_, wanted_.first, wanted_.second, {}};
        if (wanted_ != collective) make_id().copy(own_beat_.id, sizeof own_beat_.id);
        // a process that is stopped for a while is no failure
        beating_ = pulse_->start({.kind = CATENA_OP_ALLGATHER,
                                  .send = &own_beat_,
                                  .recv = beats_.data(),
                                  .bytes = sizeof own_beat_,
                                  .timeout = 1e8,
                                  .label = "state of the group"});
    }
    if (!pulse_->test(beating_)) return;
    beating_.reset();
    next_beat_ = Clock::now() + std::chrono::milliseconds(50);
    for (const Beat& b : beats_) {
        if (b.leaves != 0) silent_ = true;
        const Route route = {b.from, b.to};
        if ((b.from != info_.rank && b.to != info_.rank) || making_.contains(route)) continue;
        making_[route] = std::thread(
            [this, route, id = std::string(b.id, sizeof b.id)] { make_channel(route, id); });
    }
}

void Group::make_channel(Route route, const std::string& id) {
    const std::string head = rank_text(info_.rank) + ": [open] a channel from " +
                             rank_text(route.first) + " to " + rank_text(route.second);
    try {
        const OnDevice current(device_);
        const Waiting waiting = [&, limit = until(after(timeout_), head)] {
            limit();
            if (stops_) throw Error(CATENA_E_DEVICE, head + ": the group is closed");
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
        if (!stops_) fail_with(error.what());
    }
}

Link& Group::channel(Route route, const Waiting& waiting) {
    for (;; pause(waiting)) {
        {
            const std::scoped_lock lock(links_mutex_, running_mutex_);
            const auto found = links_.find(route);
            wanted_ = found == links_.end() ? route : collective;
            if (found != links_.end()) return *found->second;
        }
        if (silent_)
            throw Error(CATENA_E_DEVICE, rank_text(info_.rank) + ": [open] a channel from " +
                                             rank_text(route.first) + " to " +
                                             rank_text(route.second) +
                                             ": expected all ranks, got one that closed the group");
    }
}

// ---- the start of operations

// Tells the other ranks of it.
void Group::announce(const catena_operation& o, Operation& operation) {
    Told told = {.count = 0, .place = {}, .text = {}};
    std::string text = agreement(o, info_);
    if (is_pair(o.kind))
        text = text_of(o.dtype) + " x " + std::to_string(o.count) + " with tag " +
               std::to_string(o.tag) + " from " + rank_text(operation.route_.first) + " to " +
               rank_text(operation.route_.second);
    const std::string place = name_of(o);
    copy_text(told.text, text.c_str());
    copy_text(told.place, place.c_str());
    const std::string label = text + place.substr(place.find(']') + 1);
    Peers::Exchange exchange = {.kind = CATENA_OP_ALLTOALL, .bytes = sizeof told};
    exchange.label = label.c_str();
    exchange.timeout = operation.seconds_;
    if (is_pair(o.kind)) {
        exchange.kind = o.kind;
        exchange.peer = o.peer;
        operation.told_ = {told};
        if (o.kind == CATENA_OP_RECV) operation.heard_ = {told};
    } else {
        operation.told_.assign(at(info_.size), told);
        operation.heard_ = operation.told_;
    }
    if (exchanges(o.kind)) {
        const Pieces sends = send_pieces(o, info_), recvs = recv_pieces(o, info_);
        std::vector<std::uint64_t> sent = sends.counts;
        operation.expected_ = recvs.counts;
        sent.resize(at(info_.size));
        operation.expected_.resize(at(info_.size));
        if (o.kind == CATENA_OP_GATHER) sent[at(o.peer)] = o.count;
        if (o.kind == CATENA_OP_SCATTER) operation.expected_[at(o.peer)] = o.count;
        for (std::size_t r = 0; r < sent.size(); ++r) operation.told_[r].count = sent[r];
    }
    if (messages_ == nullptr) {
        operation.heard_ = operation.told_;
        return;
    }
    exchange.send = operation.told_.data();
    exchange.recv = operation.heard_.data();
    const std::lock_guard lock(messages_mutex_);
    operation.exchange_ = messages_->start(exchange);
}

// Whether the other ranks have started it too. Fails if they have not, and throws Error.
bool Group::agreed(Operation& operation) {
    try {
        const std::lock_guard lock(running_mutex_);
        if (operation.agreed_) return true;
        if (messages_ != nullptr && !messages_->test(operation.exchange_)) return false;
        operation.compare();
        return operation.agreed_ = true;
    } catch (const Error& error) {
        fail_with(error.what());
        throw_if_failed();
        throw;
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
    throw_if_failed();
    const OnDevice current(device_);
    check_here(o);
    const auto operation = std::make_shared<Operation>(*this, o);
    try {
        const Event begin;
        auto end = std::make_unique<Event>();
        check("cudaEventRecord",
              cudaEventRecord(begin.get(), reinterpret_cast<cudaStream_t>(o.stream)));
        {
            const std::lock_guard lock(running_mutex_);
            announce(o, *operation);
            running_.push_back(operation);
        }
        const Waiting waiting =
            until(operation->limit_ + std::chrono::seconds(2), operation->head_);
        Link& link = channel(operation->route_, waiting);
        {
            const std::lock_guard lock(links_mutex_);
            throw_if_failed();
            check("cudaStreamWaitEvent", cudaStreamWaitEvent(link.stream(), begin.get(), 0));
            launch(o, link, waiting);
            check("cudaEventRecord", cudaEventRecord(end->get(), link.stream()));
        }
        const std::lock_guard lock(running_mutex_);
        operation->end_ = std::move(end);
    } catch (const Error& error) {
        fail_with(error.what());
        throw_if_failed();
        throw;
    }
    return operation;
}

void Group::launch(const catena_operation& o, Link& link, const Waiting& waiting) {
    const int me = info_.rank;
    const bool root = o.peer == me, pair = is_pair(o.kind);
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

    if (exchanges(o.kind) && gives && takes && count(sends, me) > 0 && given(me) != taken(me))
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

}  // namespace catena_nccl
