// A correct plugin with a small communicator, whose ranks are threads of one process: the last rank
// that starts an operation executes it for all. A row's name is the rule that it breaks.
//
// good_communicator fails: nothing
// passes: communicator/open communicator/results communicator/messages communicator/abort
//
// communicator_open fails: communicator/open
// A rank is not below its local size.
// says: expected a local rank below a local size
//
// communicator_structs fails: communicator/structs
// info() writes fields that an older caller's structure does not have.
// says: info(): expected the fields within a struct_size of
//
// communicator_results fails: communicator/results
// A product is a sum.
// says: prod of
//
// communicator_bits fails: communicator/bits
// Rank 1 adds in another order.
// says: expected the same bits on all ranks
//
// communicator_order fails: communicator/order
// test() does not look whether the operation is done.
// says: expected a barrier that is not done
//
// communicator_split fails: communicator/split
// The key of split() is ignored.
// says: info(): expected rank
//
// communicator_messages fails: communicator/messages
// Of several messages the last is received first.
// says: message: element 0
//
// communicator_tags fails: communicator/messages
// Messages are received in the order of sending, whatever their tags are.
//
// communicator_refusals fails: communicator/refusals
// start() takes an unknown reduction for a sum.
//
// communicator_mismatch fails: communicator/mismatch
// The reductions of the ranks are not compared.
// says: sum of float32 x 10 on the others
//
// communicator_absent fails: communicator/absent
// A barrier fails after the group's timeout, not after its own.
// says: timeout: expected a failure after 0.2 s
//
// communicator_abort fails: communicator/abort
// The reason of abort() is lost.
// says: aborted: out of patience
//
// communicator_silent fails: communicator/silent
// A failure is printed.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include <catena/plugin/communicator.hpp>

namespace {

using namespace catena::plugin;
using Clock = std::chrono::steady_clock;

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
inline bool breaks(const std::string &rule) { return TEXT(BAD) == "communicator_" + rule; }

struct Started {
    catena_operation o;
    catena_comm_info info;
    std::string label, agreement;
    Pieces sends, recvs;
    Clock::time_point deadline;
    bool done = false;

    const char *send(std::uint64_t i) const {
        return static_cast<const char *>(o.send) + i * item_bytes(o.dtype);
    }
    char *recv() const { return static_cast<char *>(o.recv); }
};
using StartedPtr = std::shared_ptr<Started>;

struct State {
    explicit State(int n) : size(n), begun(n), closed(n) {}

    void fail(const std::string &text) {
        if (failure.empty()) failure = text;
        if (breaks("silent")) std::fprintf(stderr, "%s\n", failure.c_str());
        changed.notify_all();
    }
    void fail(const Started &op, int by, const std::string &expected, const std::string &got) {
        catena_comm_info info = op.info;
        info.rank = by;
        fail(::failure(info, op.o, expected, got));
    }
    void need_no_failure() const {
        if (!failure.empty()) throw Error(CATENA_E_DEVICE, failure);
    }

    const int size;
    std::mutex mutex;  // of all that follows
    std::condition_variable changed;
    std::vector<std::uint64_t> begun;
    std::vector<bool> closed;
    std::map<std::uint64_t, std::vector<StartedPtr>> operations;  // by number; one for each rank
    std::deque<StartedPtr> messages;                              // that wait for the other end
    bool confused = false;  // messages were exchanged, so their sizes may differ
    std::string failure;
    int open = 0;
    std::vector<std::array<int, 2>> split = std::vector<std::array<int, 2>>(size);
    std::map<int, std::shared_ptr<State>> parts;
    int splitting = 0, splits = 0;
};

// Whether all ranks started the same; else the group has failed.
inline bool agree(State &state, const std::vector<StartedPtr> &all) {
    const auto votes = [&](const StartedPtr &a) {
        return std::count_if(all.begin(), all.end(),
                             [&](const StartedPtr &b) { return a->agreement == b->agreement; });
    };
    const Started &usual = **std::max_element(
        all.begin(), all.end(),
        [&](const StartedPtr &a, const StartedPtr &b) { return votes(a) < votes(b); });
    for (const StartedPtr &op : all)
        if (op->agreement != usual.agreement)
            return state.fail(usual, op->info.rank, usual.agreement, op->agreement), false;
    for (const StartedPtr &from : all)
        for (const StartedPtr &to : all) {
            const bool last = to->info.rank == to->o.peer, first = from->info.rank == from->o.peer;
            std::uint64_t sent = from->o.count, received = to->o.count;
            if (usual.o.kind == CATENA_OP_GATHER && last)
                received = to->recvs.counts[from->info.rank];
            else if (usual.o.kind == CATENA_OP_SCATTER && first)
                sent = from->sends.counts[to->info.rank];
            else if (usual.o.kind == CATENA_OP_ALLTOALL)
                sent = from->sends.counts[to->info.rank],
                received = to->recvs.counts[from->info.rank];
            else continue;
            if (sent == received) continue;
            // Most ranks agree, so the one that differs has a difference with each of the others.
            int odd = from->info.rank == 0 || to->info.rank == 0
                          ? std::max(from->info.rank, to->info.rank)
                          : std::min(from->info.rank, to->info.rank);
            return state.fail(usual, odd, std::to_string(received) + " elements",
                              std::to_string(sent)),
                   false;
        }
    return true;
}

// Returns what one rank receives.
inline std::vector<char> result_of(const std::vector<StartedPtr> &all, const Started &op) {
    const catena_operation &o = all[0]->o;
    const std::size_t item = item_bytes(o.dtype), rank = op.info.rank;
    const bool root = op.info.rank == o.peer;
    std::vector<char> result;
    const auto append = [&](const Started &from, std::uint64_t first, std::uint64_t n) {
        if (n > 0) result.insert(result.end(), from.send(first), from.send(first + n));
    };
    const Started *peer = o.peer >= 0 && o.peer < op.info.size ? all[o.peer].get() : nullptr;
    if (reduces(o.kind)) {
        if (o.kind == CATENA_OP_REDUCE && !root) return result;
        const std::uint64_t first = o.kind == CATENA_OP_REDUCE_SCATTER ? op.sends.offsets[rank] : 0;
        std::vector<const Started *> order;
        for (const StartedPtr &from : all) order.push_back(from.get());
        if (breaks("bits") && rank == 1) std::reverse(order.begin(), order.end());
        const int reduction = breaks("results") && o.reduction == CATENA_REDUCE_PROD
                                  ? CATENA_REDUCE_SUM
                                  : o.reduction;
        append(*order[0], first, op.o.count);
        for (std::size_t r = 1; r < order.size() && op.o.count > 0; ++r)
            reduce_into(result.data(), order[r]->send(first), op.o.count, o.dtype, reduction);
        if (reduction == CATENA_REDUCE_MEAN)
            divide(result.data(), op.o.count, o.dtype, op.info.size);
    } else if (o.kind == CATENA_OP_BCAST) {
        if (!root) append(*peer, 0, o.count);
    } else if (o.kind == CATENA_OP_SCATTER) {
        append(*peer, peer->sends.offsets[rank], op.o.count);
    } else if (o.kind == CATENA_OP_ALLGATHER || (o.kind == CATENA_OP_GATHER && root)) {
        for (const StartedPtr &from : all) append(*from, 0, from->o.count);
    } else if (o.kind == CATENA_OP_ALLTOALL) {
        for (const StartedPtr &from : all)
            append(*from, from->sends.offsets[rank], from->sends.counts[rank]);
    }
    return result;
}

inline void execute(State &state, const std::vector<StartedPtr> &all) {
    if (!agree(state, all)) return;
    std::vector<std::vector<char>> results;
    for (const StartedPtr &op : all) results.push_back(result_of(all, *op));
    for (std::size_t r = 0; r < all.size(); ++r) {
        std::copy(results[r].begin(), results[r].end(), all[r]->recv());
        all[r]->done = true;
    }
    state.changed.notify_all();
}

class StartedWork : public Work {
public:
    StartedWork(std::shared_ptr<State> state, StartedPtr op, std::uint64_t number)
        : state_(state), op_(op), number_(number) {}
    bool test() override {
        const std::lock_guard lock(state_->mutex);
        if (breaks("order")) return true;
        return finished();
    }
    void wait() override {
        std::unique_lock lock(state_->mutex);
        while (!finished()) state_->changed.wait_until(lock, op_->deadline);
    }

private:
    bool finished() {
        if (op_->done) return true;
        state_->need_no_failure();
        const bool late = Clock::now() >= op_->deadline;
        const bool message = op_->o.kind == CATENA_OP_SEND || op_->o.kind == CATENA_OP_RECV;
        for (int r = 0; r < state_->size; ++r) {
            const bool missing = message ? r == op_->o.peer : state_->begun[r] <= number_;
            if (missing && (late || state_->closed[r]))
                state_->fail(*op_, r, op_->agreement, late ? "nothing in time" : "close()");
        }
        state_->need_no_failure();
        return false;
    }

    std::shared_ptr<State> state_;
    StartedPtr op_;
    std::uint64_t number_;
};

class Member : public Group {
public:
    Member(std::shared_ptr<State> state, int rank, double timeout)
        : state_(state), rank_(rank), timeout_(timeout) {}
    ~Member() override {
        const std::lock_guard lock(state_->mutex);
        state_->closed[rank_] = true;
        std::erase_if(state_->messages,
                      [&](const StartedPtr &op) { return op->info.rank == rank_; });
        state_->changed.notify_all();
    }
    catena_comm_info info() const noexcept override {
        return {sizeof(catena_comm_info),
                rank_,
                state_->size,
                rank_,
                breaks("open") ? rank_ : state_->size,
                0};
    }
    void abort(std::string_view reason) noexcept override {
        const std::lock_guard lock(state_->mutex);
        state_->fail("rank " + std::to_string(rank_) + ": aborted" +
                     (breaks("abort") ? "" : ": " + std::string(reason)));
    }

    std::shared_ptr<Work> start(const catena_operation &o) override {
        const std::lock_guard lock(state_->mutex);
        state_->need_no_failure();
        auto op = std::make_shared<Started>();
        op->o = o;
        op->info = info();
        op->label = o.label != nullptr ? o.label : "";
        op->o.label = op->label.c_str();
        op->sends = send_pieces(o, op->info);
        op->recvs = recv_pieces(o, op->info);
        catena_operation compared = o;
        if (breaks("mismatch") && reduces(o.kind)) compared.reduction = CATENA_REDUCE_SUM;
        op->agreement = agreement(compared, op->info);
        const bool own = o.timeout > 0 && !(breaks("absent") && o.kind == CATENA_OP_BARRIER);
        const double seconds = std::min(own ? o.timeout : timeout_, 1e6);
        op->deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(seconds));
        if (o.kind == CATENA_OP_SEND || o.kind == CATENA_OP_RECV) {
            message(op);
            return std::make_shared<StartedWork>(state_, op, 0);
        }
        const std::uint64_t number = state_->begun[rank_]++;
        auto &all = state_->operations[number];
        all.resize(state_->size);
        all[rank_] = op;
        if (std::find(all.begin(), all.end(), nullptr) == all.end()) {
            execute(*state_, all);
            state_->operations.erase(number);
        }
        return std::make_shared<StartedWork>(state_, op, number);
    }

    std::unique_ptr<Group> split(std::int32_t color, std::int32_t key) override {
        std::unique_lock lock(state_->mutex);
        state_->need_no_failure();
        const int number = state_->splits;
        state_->split[rank_] = {color, breaks("split") ? 0 : key};
        if (++state_->splitting == state_->size) {
            std::map<int, int> sizes;
            for (const auto &mine : state_->split) ++sizes[mine[0]];
            state_->parts.clear();
            for (const auto &[its_color, size] : sizes)
                state_->parts[its_color] = std::make_shared<State>(size);
            state_->splitting = 0;
            ++state_->splits;
            state_->changed.notify_all();
        }
        state_->changed.wait(lock, [&] { return state_->splits > number; });
        if (color < 0) return nullptr;
        int rank = 0;
        for (int r = 0; r < state_->size; ++r)
            rank += state_->split[r][0] == color &&
                    std::pair(state_->split[r][1], r) < std::pair(state_->split[rank_][1], rank_);
        return std::make_unique<Member>(state_->parts[color], rank, timeout_);
    }

private:
    void message(const StartedPtr &op) {
        const auto matches = [&](const StartedPtr &other) {
            return other->info.rank == op->o.peer && other->o.peer == rank_ &&
                   (other->o.tag == op->o.tag || breaks("tags")) && other->o.kind != op->o.kind;
        };
        auto &messages = state_->messages;
        auto found = std::find_if(messages.begin(), messages.end(), matches);
        const auto right = found;
        if (breaks("messages") && found != messages.end())
            found = std::find_if(messages.rbegin(), messages.rend(), matches).base() - 1;
        state_->confused = state_->confused || found != right;
        if (found == messages.end()) return messages.push_back(op);
        const StartedPtr other = *found;
        messages.erase(found);
        const Started &from = op->o.kind == CATENA_OP_SEND ? *op : *other;
        const Started &to = op->o.kind == CATENA_OP_SEND ? *other : *op;
        if (from.agreement.substr(4) != to.agreement.substr(4) && !state_->confused)
            return state_->fail(from, from.info.rank, to.agreement, from.agreement);
        const std::uint64_t n = std::min(from.o.count, to.o.count);
        if (n > 0) std::memcpy(to.recv(), from.send(0), n * item_bytes(to.o.dtype));
        op->done = other->done = true;
        state_->changed.notify_all();
    }

    std::shared_ptr<State> state_;
    const int rank_;
    const double timeout_;
};

inline std::unique_ptr<Group> open(const catena_comm_options &options) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<State>> names;
    const int size = std::max(options.size, 1), rank = std::max(options.rank, 0);
    const std::string name = options.address != nullptr ? options.address : "";
    std::shared_ptr<State> state;
    {
        const std::lock_guard lock(mutex);
        if (names[name] == nullptr) names[name] = std::make_shared<State>(size);
        state = names[name];
        if (++state->open == size) names.erase(name);
    }
    return std::make_unique<Member>(state, rank, options.timeout);
}

decltype(catena_communicator::start) helper_start;

inline const catena_plugin &bad_table() {
    static catena_communicator table =
        communicator_table<open>("bad", "ranks that are threads", "cpu");
    if (breaks("structs"))
        table.info = [](catena_comm *comm, catena_comm_info *out) {
            const std::uint32_t size = out->struct_size;
            *out = reinterpret_cast<Group *>(comm)->info();
            out->struct_size = size;
        };
    if (breaks("refusals")) {
        helper_start = table.start;
        table.start = [](catena_ctx *ctx, catena_comm *comm, const catena_operation *operation,
                         catena_work **work) {
            catena_operation o = *operation;
            if (o.reduction > CATENA_REDUCE_PROD) o.reduction = CATENA_REDUCE_SUM;
            return helper_start(ctx, comm, &o, work);
        };
    }
    static const catena_extension entry = extension(CATENA_COMMUNICATOR_1, "", &table);
    static const catena_extension *const extensions[] = {&entry};
    static const catena_plugin plugin = table_of({.extensions = extensions});
    return plugin;
}

}  // namespace

CATENA_EXPORT_PLUGIN("org.example.bad", "1.0.0", "", bad_table());
