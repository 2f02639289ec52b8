// Checks communicators: groups, the results of operations, their order.
#include "groups.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <map>
#include <thread>

#include <catena/plugin/communicator.hpp>

namespace catena::check::communicator {
namespace {

using namespace testing;

// Fails the check unless the call was refused with a text and one of the statuses of start().
void need_refusal(Problems& problems, const std::string& what, const CallResult& result) {
    if (result) problems.add(what, "expected a refusal, got success");
    else if (result.status != CATENA_E_INVALID && result.status != CATENA_E_DTYPE &&
             result.status != CATENA_E_UNSUPPORTED)
        problems.add(what, "expected CATENA_E_INVALID, _DTYPE or _UNSUPPORTED, got {}: {}",
                     result.status, result.text);
    else if (result.text.empty()) problems.add(what, "expected a text, got none");
}

// ---- communicator/open

void check_table(const catena_communicator& table, Problems& problems) {
    for (const auto& [name, text] :
         {std::pair("name", table.name), {"doc", table.doc}, {"devices", table.devices}})
        if (text == nullptr || *text == '\0') problems.add(name, "expected a text, got none");
    const bool all = table.open != nullptr && table.close != nullptr && table.info != nullptr &&
                     table.split != nullptr && table.start != nullptr && table.test != nullptr &&
                     table.wait != nullptr && table.release != nullptr && table.abort != nullptr;
    if (table.struct_size < sizeof table || !all)
        throw Failure(CATENA_E_INVALID, "table: expected all functions, got some");
}

void check_info(const CommRank& own, int rank, int size, Problems& problems) {
    const catena_comm_info info = own.info();
    if (info.rank != rank || info.size != size)
        problems.add("info()", "expected rank {} of {}, got {} of {}", rank, size, info.rank,
                     info.size);
}

void check_local_rank(const CommRank& own, Problems& problems) {
    const catena_comm_info info = own.info();
    if (info.local_rank < 0 || info.local_rank >= info.local_size || info.local_size > info.size)
        problems.add("info()", "expected a local rank below a local size of 1 to {}, got {} of {}",
                     info.size, info.local_rank, info.local_size);
}

void open(Groups& groups, Problems& problems) {
    check_table(groups.table, problems);
    if (!groups.several()) problems.findings.note("one rank in a process: {}", groups.why_one());
    for (const int size : {1, 2, 3}) {
        std::atomic<unsigned> ranks = 0;
        groups.run(size, [&](CommRank& own) {
            const int n = groups.ranks(size);
            const int rank = own.rank();
            if (rank < 0 || rank >= n || (ranks.fetch_or(1u << rank) >> rank & 1) != 0)
                problems.add("info()", "expected each rank below {} once, got {}", n, rank);
            check_info(own, rank, n, problems);
            check_local_rank(own, problems);
            run_form(own, {.kind = CATENA_OP_BARRIER}, problems);
        });
    }
    const auto refuse = [&](const char* what, int rank, int size, double timeout) {
        doing("{}: open() with {}", groups.table.name, what);
        CallResult result;
        CommRank::open(groups.table, comm_options(rank, size, nullptr, timeout), result);
        need_refusal(problems, fmt::format("open() with {}", what), result);
    };
    refuse("a rank that is not below the size", 1, 1, 1);
    refuse("a rank of -2", -2, 1, 1);
    refuse("a size of -1", 0, -1, 1);
    refuse("a timeout of 0", -1, 0, 0);
}
const Registered r1{{"communicator", "open",
                     "the table is complete; open() gives each rank its place and refuses invalid "
                     "options with a message",
                     each_communicator<open>}};

// ---- communicator/structs

// A structure of the size that a caller of another version has. The bytes behind it are not read.
template <class T>
struct Resized {
    explicit Resized(T t, std::size_t size) {
        std::memset(bytes, 0xee, sizeof bytes);
        t.struct_size = static_cast<std::uint32_t>(size);
        std::memcpy(bytes, &t, std::min(size, sizeof t));
    }
    const T* get() const { return reinterpret_cast<const T*>(bytes); }
    T* get() { return reinterpret_cast<T*>(bytes); }
    alignas(T) std::byte bytes[sizeof(T) + 64];
};

void check_info_sizes(const CommRank& own, Problems& problems) {
    const catena_comm_info all = own.info();
    for (const std::size_t size :
         {offsetof(catena_comm_info, size), offsetof(catena_comm_info, local_rank), sizeof all,
          sizeof all + 32}) {
        Resized<catena_comm_info> info({}, 4);
        info.get()->struct_size = static_cast<std::uint32_t>(size);
        own.table().info(own.get(), info.get());
        Resized<catena_comm_info> expected(all, size);
        if (std::memcmp(info.bytes, expected.bytes, sizeof info.bytes) != 0)
            problems.add("info()", "expected the fields within a struct_size of {}, got others",
                         size);
    }
}

void structs(Groups& groups, Problems& problems) {
    groups.run(2, [&](CommRank& own) {
        check_info_sizes(own, problems);
        for (const std::size_t size :
             {offsetof(catena_operation, timeout), offsetof(catena_operation, label),
              sizeof(catena_operation), sizeof(catena_operation) + 32}) {
            const Exchange exchange({.count = 5}, own.rank(), own.size());
            const Resized<catena_operation> operation(exchange.operation, size);
            const std::string what = fmt::format("an operation of struct_size {}", size);
            if (!problems.need(what, own.run(*operation.get()))) return;
            problems.need_right(what, exchange);
        }
    });
    const catena_comm_options options = groups.several() ? comm_options(0, 1, "large", patient)
                                                         : comm_options(-1, 0, nullptr, patient);
    const Resized<catena_comm_options> large(options, sizeof options + 32);
    CallResult result;
    doing("{}: open() with larger options", groups.table.name);
    CommRank::open(groups.table, *large.get(), result);
    problems.need("open() with larger options", result);
}
const Registered r2{{"communicator", "structs",
                     "smaller and larger structures of other versions: no field beyond struct_size "
                     "is read or written",
                     each_communicator<structs>}};

// ---- communicator/results

// Every kind of operation for each dtype, reduction and form.
std::vector<Form> all_forms(int size) {
    std::vector<Form> forms;
    for (int kind = CATENA_OP_ALLREDUCE; kind <= CATENA_OP_ALLTOALL; ++kind)
        for (const catena_dtype dtype : reducible_dtypes)
            for (int reduction = 0; reduction <= CATENA_REDUCE_PROD; ++reduction) {
                if (plugin::reduces(kind) ? !has_reduction(dtype, reduction) : reduction > 0)
                    continue;
                Form form = {.kind = kind, .dtype = dtype, .reduction = reduction, .count = 37};
                form.root = kind % size;
                form.in_place = (reduction + dtype.code) % 2 == 0;
                forms.push_back(form);
            }
    for (int kind = CATENA_OP_BARRIER; kind <= CATENA_OP_ALLTOALL; ++kind)
        for (const std::uint64_t count : {0, 1, 2, 1000, 70001})
            for (const bool in_place : {false, true})
                for (const bool pieces : {false, true}) {
                    if (pieces && (!has_pieces(kind) || (in_place && kind == CATENA_OP_ALLTOALL)))
                        continue;
                    Form form = {.kind = kind, .count = count, .pieces = pieces};
                    form.in_place = in_place;
                    form.root = size - 1;
                    forms.push_back(form);
                    form.at_begin = true;
                    if (in_place && has_pieces(kind)) forms.push_back(form);
                }
    return forms;
}

void results(Groups& groups, Problems& problems) {
    for (const int size : {1, 2, 3, 4}) {
        if (size > groups.ranks(size)) continue;
        doing("{}: operations of {} ranks", groups.table.name, size);
        groups.run(size, [&](CommRank& own) {
            for (const Form& form : all_forms(size)) run_form(own, form, problems);
        });
    }
}
const Registered r3{{"communicator", "results",
                     "each operation, with each dtype and reduction, in place or not, and with any "
                     "counts, has the right results and writes nothing else",
                     each_communicator<results>}};

// ---- communicator/bits

void bits(Groups& groups, Problems& problems) {
    std::mutex mutex;
    std::map<std::string, Array> results;
    const auto keep = [&](const std::string& what, const Array& result) {
        const std::lock_guard guard(mutex);
        const auto [at, is_new] = results.emplace(what, result);
        if (!is_new && at->second != result)
            problems.add(what, "expected the same bits on all ranks and in both runs");
    };
    const auto sum = [&](const CommRank& own, catena_dtype dtype, std::int64_t n) {
        const Array x = Array::random({n}, dtype, groups.seed + static_cast<unsigned>(own.rank()));
        Array y({n}, dtype);
        catena_operation o = comm_operation(CATENA_OP_ALLREDUCE, dtype, x.data<std::byte>(),
                                            y.data<std::byte>(), static_cast<std::uint64_t>(n));
        for (const int reduction : {CATENA_REDUCE_SUM, CATENA_REDUCE_MEAN}) {
            o.reduction = reduction;
            const std::string what =
                fmt::format("allreduce {} of {} x {}", plugin::name_of_reduction(reduction),
                            plugin::text_of(dtype), n);
            if (!problems.need(what, own.run(o))) return;
            keep(what, y);
        }
    };
    for (int run = 0; run < 2; ++run)
        groups.run(4, [&](CommRank& own) {
            for (const catena_dtype dtype :
                 {dtype_of<float>(), dtype_of<double>(), dtype_of<Float16>(), dtype_of<BFloat16>()})
                for (const std::int64_t n : {1, 130, 66001}) sum(own, dtype, n);
        });
}
const Registered r4{{"communicator", "bits",
                     "a reduction has the same bits on all ranks, and when it is repeated",
                     each_communicator<bits>}};

// ---- communicator/order

// Lets the ranks do something one after the other.
class Turns {
public:
    template <class Body>
    void take(int rank, const Body& body) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return next_ == rank; });
        body();
        ++next_;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int next_ = 0;
};

void test_until_done(const StartedWork& work, const std::string& what, Problems& problems) {
    bool done = false;
    while (!done) {
        if (!problems.need("test() of " + what, work.test(done))) return;
        std::this_thread::yield();
    }
    if (!work.test(done) || !done) problems.add("test()", "expected a work that stays done");
}

void order(Groups& groups, Problems& problems) {
    Turns turns;
    doing("{}: start() of one rank after the other", groups.table.name);
    groups.run(3, [&](CommRank& own) {
        const int size = own.size();
        std::vector<Form> forms;
        for (int i = 0; i < 40; ++i)
            forms.push_back({.kind = i % 9, .count = std::uint64_t(50 + 7 * i), .root = 0});
        std::vector<std::unique_ptr<Exchange>> exchanges;
        std::vector<StartedWork> works(forms.size());
        for (const Form& form : forms)
            exchanges.push_back(std::make_unique<Exchange>(form, own.rank(), size));
        turns.take(own.rank(), [&] {
            for (std::size_t i = 0; i < forms.size(); ++i)
                problems.need("start() of " + forms[i].text(),
                              own.start(exchanges[i]->operation, works[i]));
            bool done = false;
            for (std::size_t i = 0; i < forms.size() && own.rank() + 1 < size; ++i)
                if (forms[i].kind == CATENA_OP_BARRIER && works[i] &&
                    (!works[i].test(done) || done))
                    problems.add("test()",
                                 "expected a barrier that is not done before all "
                                 "ranks start it");
        });
        for (std::size_t i = 1; i < works.size(); i += 5) works[i].release();
        std::thread other([&] {
            for (std::size_t i = 0; i < works.size(); i += 2)
                if (works[i]) test_until_done(works[i], forms[i].text(), problems);
        });
        for (std::size_t i = works.size(); i-- > 0;)
            if (works[i]) problems.need("wait() for " + forms[i].text(), works[i].wait());
        other.join();
        for (std::size_t i = 0; i < works.size(); ++i) {
            if (!works[i]) continue;
            problems.need("wait() for a work that is done", works[i].wait());
            problems.need_right(forms[i].text(), *exchanges[i]);
        }
        works.clear();
        run_form(own, {.kind = CATENA_OP_BARRIER}, problems);
        own.close();  // before the memory of the works that were released early
    });
}
const Registered r5{{"communicator", "order",
                     "start() does not wait for other ranks; many operations are done in order, "
                     "with test(), wait() and release() in any order and on any thread",
                     each_communicator<order>}};

// ---- communicator/split

void split(Groups& groups, Problems& problems) {
    doing("{}: split()", groups.table.name);
    groups.run(4, [&](CommRank& own) {
        const int rank = own.rank(), size = own.size();
        CallResult result;
        {
            const CommRank part = own.split(rank % 2, -rank, result);
            if (!problems.need("split()", result)) return;
            if (!part) return problems.add("split()", "expected a group, got NULL");
            // The highest of the ranks with this color is the first.
            check_info(part, (size - 1 - rank) / 2, (size + 1 - rank % 2) / 2, problems);
            run_form(part, {.count = 100}, problems);
            run_form(part, {.kind = CATENA_OP_ALLGATHER, .count = 3, .pieces = true}, problems);
        }
        const CommRank part = own.split(rank == 0 ? -1 : 5, 0, result);
        if (!problems.need("split()", result)) return;
        if (rank == 0 && part) problems.add("split() with color -1", "expected NULL, got a group");
        if (rank != 0 && part) check_info(part, rank - 1, size - 1, problems);
        run_form(own, {.count = 100}, problems);
        own.close();  // before its part
        if (part) run_form(part, {.count = 100}, problems);
    });
}
const Registered r6{{"communicator", "split",
                     "split() forms groups by color, ordered by key, then by rank",
                     each_communicator<split>}};

// ---- communicator/messages

// Sends numbers to the next rank of a ring and receives those of the previous one.
void ring(const CommRank& own, bool send_first, Problems& problems) {
    const int size = own.size(), rank = own.rank();
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    constexpr std::size_t messages = 12;
    static constexpr std::int64_t counts[] = {5, 0, 1, 40000};
    std::vector<Array> sent, received;
    for (std::size_t i = 0; i < messages; ++i) {
        const Dims shape = {counts[i % std::size(counts)]};
        sent.push_back(Array::constant(shape, dtype_of<float>(),
                                       static_cast<double>(rank * 100) + static_cast<double>(i)));
        received.emplace_back(shape, dtype_of<float>());
    }
    std::vector<StartedWork> works(2 * messages);
    const auto start = [&](std::size_t i, bool sends) {
        Array& a = sends ? sent[i] : received[i];
        catena_operation o = comm_operation(sends ? CATENA_OP_SEND : CATENA_OP_RECV, a.dtype(),
                                            sends && a.size() > 0 ? a.data<std::byte>() : nullptr,
                                            sends || a.size() == 0 ? nullptr : a.data<std::byte>(),
                                            static_cast<std::uint64_t>(a.size()));
        o.peer = sends ? next : previous;
        o.tag = i < messages / 2 ? 0 : static_cast<int>(i);
        problems.need("start() of a message", own.start(o, works[2 * i + (sends ? 1 : 0)]));
    };
    for (const bool sends : {send_first, !send_first})
        for (std::size_t i = 0; i < messages; ++i)  // the tags are received in the reverse order
            start(sends ? i : i < messages / 2 ? messages - 1 - i : i - messages / 2, sends);
    for (const StartedWork& work : works)
        if (work) problems.need("wait() for a message", work.wait());
    for (std::size_t i = 0; i < messages; ++i)
        for (std::int64_t k = 0; k < received[i].size(); ++k)
            if (const double want = previous * 100 + static_cast<double>(i);
                received[i].at(k) != want)
                problems.add("message", "element {} of message {}: expected {}, got {}", k, i, want,
                             received[i].at(k));
}

void messages(Groups& groups, Problems& problems) {
    for (const int size : {2, 3}) {
        doing("{}: messages in a ring of {}", groups.table.name, size);
        groups.run(size, [&](CommRank& own) {
            ring(own, true, problems);
            ring(own, false, problems);
            ring(own, own.rank() % 2 == 0, problems);
        });
    }
}
const Registered r7{{"communicator", "messages",
                     "SEND and RECV match by peer and tag, in order within a tag, whichever starts "
                     "first",
                     each_communicator<messages, true>}};

// ---- communicator/refusals

void check_refusals(const CommRank& own, Problems& problems) {
    static constexpr std::uint64_t counts[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const auto refuse = [&](const char* what, int kind, const auto& change) {
        float memory[64] = {};
        catena_operation o = comm_operation(kind, dtype_of<float>(), memory, memory + 32, 2);
        change(o);
        StartedWork work;
        need_refusal(problems, fmt::format("start() of {}", what), own.start(o, work));
    };
    const int size = own.size();
    refuse("an unknown kind", 99, [](auto&) {});
    refuse("a kind of -1", -1, [](auto&) {});
    refuse("an unknown reduction", CATENA_OP_ALLREDUCE, [](auto& o) { o.reduction = 99; });
    refuse("a dtype of 0 bits", CATENA_OP_ALLREDUCE, [](auto& o) { o.dtype.bits = 0; });
    refuse("a sum of floats of 24 bits", CATENA_OP_ALLREDUCE, [](auto& o) { o.dtype.bits = 24; });
    refuse("a dtype with lanes", CATENA_OP_BCAST, [](auto& o) { o.dtype.lanes = 2; });
    refuse("a mean of integers", CATENA_OP_ALLREDUCE, [](auto& o) {
        o.dtype = dtype_of<std::int32_t>();
        o.reduction = CATENA_REDUCE_MEAN;
    });
    refuse("a sum of bool", CATENA_OP_ALLREDUCE, [](auto& o) { o.dtype = dtype_of<bool>(); });
    refuse("a root of -1", CATENA_OP_BCAST, [](auto& o) { o.peer = -1; });
    refuse("a root that is not below the size", CATENA_OP_REDUCE, [&](auto& o) { o.peer = size; });
    refuse("a message to itself", CATENA_OP_SEND, [&](auto& o) { o.peer = own.rank(); });
    refuse("a message from nobody", CATENA_OP_RECV, [&](auto& o) { o.peer = size; });
    if (size > 1)
        refuse("a negative tag", CATENA_OP_SEND, [&](auto& o) {
            o.peer = (own.rank() + 1) % size;
            o.tag = -1;
        });
    refuse("a negative timeout", CATENA_OP_ALLREDUCE, [](auto& o) { o.timeout = -1; });
    refuse("send without memory", CATENA_OP_ALLREDUCE, [](auto& o) { o.send = nullptr; });
    refuse("recv without memory", CATENA_OP_ALLREDUCE, [](auto& o) { o.recv = nullptr; });
    refuse("one of two lists of counts", CATENA_OP_ALLTOALL,
           [](auto& o) { o.send_counts = counts; });
    refuse("another count than its own", CATENA_OP_ALLGATHER,
           [](auto& o) { o.recv_counts = counts; });
    refuse("memory of an unknown device", CATENA_OP_ALLREDUCE,
           [](auto& o) { o.device_type = 999; });
}

void refusals(Groups& groups, Problems& problems) {
    doing("{}: invalid operations", groups.table.name);
    groups.run(2, [&](CommRank& own) {
        if (own.rank() == 0) check_refusals(own, problems);
        run_form(own, {.count = 10}, problems);  // the other rank knows nothing of them
    });
}
const Registered r8{{"communicator", "refusals",
                     "start() refuses invalid operations with a message, and starts nothing",
                     each_communicator<refusals>}};

}  // namespace
}  // namespace catena::check::communicator
