// Operations and groups: start, progress, and how groups are made.
#include "group.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace catena_mpi {
namespace {

using namespace std::chrono_literals;

// Whether all requests are done.
bool test_all(std::span<MPI_Request> requests) {
    int flag = 1;
    if (requests.size() == 1) {
        if (requests[0] != MPI_REQUEST_NULL)
            check_mpi(MPI_Test(requests.data(), &flag, MPI_STATUS_IGNORE), "MPI_Test");
    } else if (!requests.empty()) {
        check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag,
                              MPI_STATUSES_IGNORE),
                  "MPI_Testall");
    }
    return flag != 0;
}

// Calls body(piece, bytes) for pieces of at most 1 GiB.
template <class Byte, class Body>
void in_pieces(Byte* data, std::uint64_t bytes, const Body& body) {
    constexpr std::uint64_t most = 1 << 30;
    for (; bytes > 0; bytes -= std::min(bytes, most), data += most)
        body(data, static_cast<int>(std::min(bytes, most)));
}

}  // namespace

// ---- operations

Operation::Operation(std::shared_ptr<State> state, const catena_operation& operation,
                     std::string_view agreed_text)
    : OperationCopy(operation, state->info, state->timeout),
      group(std::move(state)),
      agreed(agreed_text.empty() ? catena::plugin::agreement(operation, group->info)
                                 : std::string(agreed_text)) {
    if (!collective()) agreed.erase(0, std::string_view("send").size());
}

bool Operation::Awaited::await_ready() const { return test_all(some); }

bool Operation::advance() {
    if (!test_all(awaited)) return false;
    awaited = {};
    resume.resume();
    return true;
}

void Operation::send_bytes(const void* data, std::uint64_t n, int to, int tag) {
    in_pieces(static_cast<const std::byte*>(data), n, [&](const std::byte* piece, int size) {
        requests.push_back(MPI_REQUEST_NULL);
        check_mpi(MPI_Isend(piece, size, MPI_BYTE, to, tag, group->comm, &requests.back()),
                  "MPI_Isend");
    });
}
void Operation::receive_bytes(void* data, std::uint64_t n, int from, int tag) {
    in_pieces(static_cast<std::byte*>(data), n, [&](std::byte* piece, int size) {
        requests.push_back(MPI_REQUEST_NULL);
        check_mpi(MPI_Irecv(piece, size, MPI_BYTE, from, tag, group->comm, &requests.back()),
                  "MPI_Irecv");
    });
}

bool Operation::test() {
    Engine& engine = Engine::get();
    const Engine::Lock held = engine.lock();
    if (!finished && !group->failed()) engine.poll();
    if (!finished && group->failed()) throw Error(CATENA_E_DEVICE, group->text_for(o));
    return finished;
}

void Operation::wait() {
    Engine& engine = Engine::get();
    std::string text;
    engine.poll_until([&] {
        const bool done = finished || group->failed();
        engine.waits_for(done ? nullptr : this);
        if (done && !finished) text = group->text_for(o);
        return done;
    });
    if (!text.empty()) throw Error(CATENA_E_DEVICE, text);
}

// ---- groups

State::State(MPI_Comm own_comm, MPI_Comm own_pairs, std::vector<Member> own_members,
             double own_timeout)
    : comm(own_comm),
      pairs(own_pairs),
      members(std::move(own_members)),
      timeout(own_timeout),
      peers_(members.size()) {
    for (const MPI_Comm c : {comm, pairs}) MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    info.struct_size = sizeof info;
    MPI_Comm_rank(comm, &info.rank);
    MPI_Comm_size(comm, &info.size);
    const auto machine = [&](int r) { return members[static_cast<std::size_t>(r)].machine; };
    for (int r = 0; r < info.size; ++r) {
        if (machine(r) != machine(info.rank)) continue;
        ++info.local_size;
        if (r < info.rank) ++info.local_rank;
    }
    listen();
}

std::shared_ptr<Operation> State::start(const catena_operation& operation,
                                        std::string_view agreed) {
    if (cause_) throw Error(CATENA_E_DEVICE, text_for(operation));
    const auto op = std::make_shared<Operation>(shared_from_this(), operation, agreed);
    op->task = run(*op);
    operations_.push_back(op);
    last_ = catena::plugin::name_of(op->o);
    if (op->collective()) op->number = ++collectives_;
    else op->sent = sent_tag + sent_++ % sent_tags;
    ++waiting_;
    run_waiting();
    Engine::get().started();
    return op;
}

// Begins the operations that can run: SEND and RECV, and collective operations whose tags are free.
void State::run_waiting() {
    std::uint64_t oldest = 0;
    for (std::size_t i = 0; i < operations_.size() && waiting_ > 0; ++i) {
        const auto op = operations_[i];
        if (op->collective() && oldest == 0) oldest = op->number;
        if (op->running || (op->collective() && op->number >= oldest + window)) continue;
        op->running = true;
        --waiting_;
        op->task.start();
    }
}

bool State::poll(Clock::time_point now) {
    bool advanced = false;
    try {
        for (std::size_t i = 0; i < operations_.size();) {
            const auto op = operations_[i];
            if (!op->running) {
                ++i;
                continue;
            }
            if (!op->task.done()) advanced |= op->advance();
            if (!op->task.done()) {
                ++i;
                continue;
            }
            op->task.check();
            op->finished = advanced = true;
            op->task = {};
            operations_.erase(operations_.begin() + static_cast<std::ptrdiff_t>(i));
            run_waiting();
        }
        advanced |= poll_messages();  // last, so that finished operations do not fail
        if (now >= next_check_ && busy()) {
            next_check_ = now + 20ms;
            check_members();
            check_deadlines(now);
        }
    } catch (const Failure& failure) {
        fail(failure.cause, failure.tell);
    } catch (const std::exception& error) {
        fail({"memory", error.what(), {}}, true);
    }
    return advanced;
}

namespace {

// One rank's handle.
class MpiGroup final : public catena::plugin::Group {
public:
    explicit MpiGroup(std::shared_ptr<State> state) : state_(std::move(state)) {}
    ~MpiGroup() override {
        try {
            const Engine::Lock held = Engine::get().lock();
            state_->close();
        } catch (const std::exception&) {  // MPI does not return: the process can only end
        }
    }
    MpiGroup(const MpiGroup&) = delete;
    MpiGroup& operator=(const MpiGroup&) = delete;

    catena_comm_info info() const noexcept override { return state_->info; }
    std::unique_ptr<catena::plugin::Group> split(std::int32_t color, std::int32_t key) override;
    std::shared_ptr<catena::plugin::Work> start(const catena_operation& operation) override {
        return start(operation, {});
    }
    void abort(std::string_view reason) noexcept override {
        try {
            const Engine::Lock held = Engine::get().lock();
            state_->abort(reason);
        } catch (const std::exception&) {  // as above
        }
    }

private:
    std::shared_ptr<Operation> start(const catena_operation& operation, std::string_view agreed,
                                     std::shared_ptr<void> keeps = {}) {
        const Engine::Lock held = Engine::get().lock();
        if (catena::plugin::is_pair(operation.kind)) check_tag(operation);
        auto op = state_->start(operation, agreed);
        op->keeps = std::move(keeps);
        return op;
    }
    void check_tag(const catena_operation& operation) const {
        int* most = nullptr;
        int found = 0;
        MPI_Comm_get_attr(state_->pairs, MPI_TAG_UB, static_cast<void*>(&most), &found);
        if (found && operation.tag > *most)
            catena::plugin::fail(CATENA_E_INVALID,
                                 catena::plugin::name_of_operation(operation.kind), "tag",
                                 "at most " + std::to_string(*most), operation.tag);
    }

    std::shared_ptr<State> state_;
};

std::unique_ptr<catena::plugin::Group> handle_of(MPI_Comm comm, MPI_Comm pairs,
                                                 std::vector<Member> members, double timeout,
                                                 bool whole) {
    auto state = std::make_shared<State>(comm, pairs, std::move(members), timeout);
    state->whole = whole;
    Engine::get().add(state);
    return std::make_unique<MpiGroup>(std::move(state));
}

std::unique_ptr<catena::plugin::Group> MpiGroup::split(std::int32_t color, std::int32_t key) {
    const catena_comm_info own = info();
    // MPI may still write here after a failure.
    struct Colors {
        std::int32_t mine[2];
        std::vector<std::int32_t> all;
    };
    const auto colors = std::make_shared<Colors>();
    colors->mine[0] = color;
    colors->mine[1] = key;
    std::vector<std::int32_t>& all = colors->all;
    all.resize(static_cast<std::size_t>(2 * own.size));
    catena_operation exchange = {};
    exchange.struct_size = sizeof exchange;
    exchange.kind = CATENA_OP_ALLGATHER;
    exchange.dtype = {CATENA_CODE_INT, 32, 1};
    exchange.send = colors->mine;
    exchange.recv = all.data();
    exchange.count = 2;
    exchange.label = "split";
    start(exchange, "split", colors)->wait();
    if (color < 0) return nullptr;

    std::vector<int> ranks;
    for (int r = 0; r < own.size; ++r)
        if (all[static_cast<std::size_t>(2 * r)] == color) ranks.push_back(r);
    std::ranges::stable_sort(ranks, {},
                             [&](int r) { return all[static_cast<std::size_t>(2 * r + 1)]; });
    std::vector<Member> members;
    for (const int r : ranks) members.push_back(state_->members[static_cast<std::size_t>(r)]);

    // The ranks of the new group are all here, so MPI's blocking functions return.
    const Engine::Lock held = Engine::get().lock();
    MPI_Group whole, part;
    MPI_Comm comm, pairs;
    MPI_Comm_group(state_->comm, &whole);
    MPI_Group_incl(whole, static_cast<int>(ranks.size()), ranks.data(), &part);
    const int code = MPI_Comm_create_group(state_->comm, part, 0, &comm);
    MPI_Group_free(&part);
    MPI_Group_free(&whole);
    try {
        check_mpi(code, "MPI_Comm_create_group");
        check_mpi(MPI_Comm_dup(comm, &pairs), "MPI_Comm_dup");
    } catch (const Failure& failure) {
        throw Error(CATENA_E_DEVICE, catena::plugin::failure(own, exchange, failure.cause.expected,
                                                             failure.cause.got));
    }
    return handle_of(comm, pairs, std::move(members), state_->timeout, false);
}

// The data that processes exchange when they open a group.
struct Process {
    std::int32_t machine, pid;
    std::uint64_t pids;  // the namespace of the pid
};

Process this_process(MPI_Comm comm) {
    Process process = {};
    MPI_Comm machine;
    check_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
              "MPI_Comm_split_type");
    MPI_Comm_rank(comm, &process.machine);
    check_mpi(MPI_Bcast(&process.machine, 1, MPI_INT32_T, 0, machine), "MPI_Bcast");
    MPI_Comm_free(&machine);
    process.pid = getpid();
    struct stat file = {};
    if (stat("/proc/self/ns/pid", &file) == 0) process.pids = file.st_ino;
    return process;
}

std::vector<Member> members_of(MPI_Comm comm, int rank, int size) {
    if (!Engine::get().watched().empty()) return Engine::get().watched();  // the same processes
    const Process own = this_process(comm);
    std::vector<Process> all(static_cast<std::size_t>(size));
    check_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, comm),
              "MPI_Allgather");
    std::vector<Member> members;
    for (int r = 0; r < size; ++r) {
        const Process& process = all[static_cast<std::size_t>(r)];
        const bool seen = r != rank && process.machine == own.machine && process.pids == own.pids;
        const long fd = seen ? syscall(SYS_pidfd_open, process.pid, 0) : -1;
        members.push_back({process.machine, r, seen ? process.pid : 0, static_cast<int>(fd)});
    }
    Engine::get().watch(members);
    return members;
}

}  // namespace

std::unique_ptr<catena::plugin::Group> open(const catena_comm_options& options) {
    if (options.address != nullptr)
        catena::plugin::fail(CATENA_E_INVALID, "open", "address", "none, as mpirun knows the ranks",
                             options.address);
    Engine& engine = Engine::get();
    engine.initialise(options.timeout);
    int rank = 0, size = 0;
    // MPI writes it after a timeout if the other ranks join later.
    MPI_Comm* const made_comm = new MPI_Comm(MPI_COMM_NULL);
    MPI_Request request = MPI_REQUEST_NULL;
    try {
        {
            const Engine::Lock held = engine.lock();
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            MPI_Comm_size(MPI_COMM_WORLD, &size);
            if (options.size > 0 && options.size != size)
                catena::plugin::fail(CATENA_E_INVALID, "open", "size",
                                     std::to_string(size) + ", that of MPI_COMM_WORLD",
                                     options.size);
            if (options.rank >= 0 && options.rank != rank)
                catena::plugin::fail(CATENA_E_INVALID, "open", "rank",
                                     std::to_string(rank) + ", that in MPI_COMM_WORLD",
                                     options.rank);
            check_mpi(MPI_Comm_idup(MPI_COMM_WORLD, made_comm, &request), "MPI_Comm_idup");
        }
        const auto deadline = catena::plugin::after(options.timeout);
        int made = 0;
        engine.poll_until([&] {
            check_mpi(MPI_Test(&request, &made, MPI_STATUS_IGNORE), "MPI_Test");
            return made || Clock::now() > deadline;
        });
        if (!made)
            throw Error(CATENA_E_DEVICE, rank_text(rank) + ": [open] group: expected all " +
                                             std::to_string(size) + " ranks to open it within " +
                                             catena::plugin::text_of(options.timeout) +
                                             " s, got fewer");
        // All ranks are here, so MPI's blocking functions return.
        const Engine::Lock held = engine.lock();
        const MPI_Comm comm = *std::unique_ptr<MPI_Comm>(made_comm);
        MPI_Comm pairs;
        check_mpi(MPI_Comm_dup(comm, &pairs), "MPI_Comm_dup");
        return handle_of(comm, pairs, members_of(comm, rank, size), options.timeout, true);
    } catch (const Failure& failure) {
        throw Error(CATENA_E_DEVICE, rank_text(rank) + ": [open] group: expected " +
                                         failure.cause.expected + ", got " + failure.cause.got);
    }
}

}  // namespace catena_mpi
