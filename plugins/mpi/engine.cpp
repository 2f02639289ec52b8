// Engine: starts MPI in a thread, makes progress, and finalises MPI when all ranks have ended.
#include "engine.hpp"

#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "group.hpp"

namespace catena_mpi {

void check_mpi(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw Failure(std::string(call) + "() to succeed", std::string(text, text + length), true);
}

Engine& Engine::get() {
    static auto* const engine = new Engine;
    return *engine;
}

void Engine::initialise(double timeout) {
    std::unique_lock held(start_mutex_);
    {
        const Lock use = lock();
        if (stopping_ || halted_)
            catena::plugin::fail(CATENA_E_DEVICE, "open", "mpi", "a process that uses MPI",
                                 "one that has ended its use");
    }
    if (!thread_.joinable()) {
        // The program's threads handle its signals.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        thread_ = std::thread([this] { run(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        std::atexit([] { get().stop(); });  // for hosts that do not call deinit()
    }
    if (!start_.wait_for(held, catena::plugin::duration_of(timeout),
                         [&] { return initialised_; })) {
        late_ = true;
        std::string rank;
        for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
            if (const char* const value = std::getenv(name); value != nullptr && rank.empty())
                rank = std::string("rank ") + value + ": ";
        throw Error(CATENA_E_DEVICE, rank + "[open] group: expected all ranks to open it within " +
                                         catena::plugin::text_of(timeout) + " s, got fewer");
    }
    if (problem_) std::rethrow_exception(problem_);
}

// Runs in the thread. MPI_Init() returns when all ranks have called it.
void Engine::initialise_mpi() {
    int initialised = 0, finalised = 0, provided = MPI_THREAD_SINGLE;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    if (finalised)
        catena::plugin::fail(CATENA_E_DEVICE, "open", "mpi", "a process that uses MPI",
                             "one that has ended its use");
    if (initialised) {
        MPI_Query_thread(&provided);
    } else {
        const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
        if (code != MPI_SUCCESS)
            catena::plugin::fail(CATENA_E_DEVICE, "open", "MPI_Init_thread", "success", code);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        finalise_ = true;
    }
    if (provided < MPI_THREAD_SERIALIZED)
        catena::plugin::fail(
            CATENA_E_DEVICE, "open", "MPI's threads", "MPI_THREAD_SERIALIZED",
            provided == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED" : "MPI_THREAD_SINGLE");
}

void Engine::halt() {
    halted_ = true;
    for (const auto& group : groups_) group->halt();
}

void Engine::add(std::shared_ptr<State> group) { groups_.push_back(std::move(group)); }

bool Engine::busy() const {
    return std::ranges::any_of(groups_, [](const auto& group) { return group->busy(); });
}

bool Engine::poll() {
    if (halted_) return false;
    const auto now = Clock::now();
    bool advanced = false;
    for (std::size_t i = 0; i < groups_.size(); ++i) advanced |= groups_[i]->poll(now);
    std::erase_if(groups_,
                  [](const auto& group) { return group->over() && (group->free(), true); });
    return advanced;
}

void Engine::wake() {
    {
        const std::lock_guard held(wake_mutex_);
        woken_ = true;
    }
    wake_.notify_one();
}

void Engine::started() {
    last_start_ = Clock::now();
    if (asleep_) wake();
}

void Engine::watch(const std::vector<Member>& members) {
    const std::lock_guard held(watch_mutex_);
    watched_ = members;
}

Engine::Lock Engine::lock() {
    using namespace std::chrono_literals;
    Lock held(mutex_, std::defer_lock);
    if (held.try_lock()) return held;
    // The system clock, because the thread sanitizer does not support waiting on the steady one.
    for (int tries = 0; !held.try_lock_until(std::chrono::system_clock::now() + 100ms); ++tries) {
        const std::lock_guard watching(watch_mutex_);
        const std::vector<bool> gone = ended(watched_);
        const auto first = std::ranges::find(gone, true);
        if (tries < 2 || first == gone.end()) continue;
        const Member& member = watched_[static_cast<std::size_t>(first - gone.begin())];
        const std::string expected = rank_text(member.rank) + " to take part";
        const Operation* const op = waited_;
        throw Error(CATENA_E_DEVICE, op != nullptr
                                         ? op->group->text_of(op->o, {expected, end_of(member), {}})
                                         : "mpi: expected " + expected + ", got " + end_of(member));
    }
    return held;
}

void Engine::run() try {
    using namespace std::chrono_literals;
    std::exception_ptr problem;
    try {
        initialise_mpi();
    } catch (const std::exception&) {
        problem = std::current_exception();
    }
    {
        const std::lock_guard held(start_mutex_);
        problem_ = problem;
        initialised_ = true;
    }
    start_.notify_all();
    if (problem) return;
    Pause pause(0, 500us);
    for (;;) {
        std::chrono::microseconds time = 500us;
        {
            const Lock held = lock();
            if (stopping_) break;
            if (waiting_.load(std::memory_order_relaxed) == 0) {  // otherwise a caller polls
                if (poll()) pause.reset();
                if (busy()) time = pause.next();
                else if (Clock::now() - last_start_ > 100ms) time = 50ms;
            }
            // start() does not interrupt short sleeps, because waking the thread costs more.
            asleep_ = time > 1ms;
            resting_ = time >= 500us;
        }
        std::unique_lock sleeping(wake_mutex_);
        wake_.wait_for(sleeping, time, [&] { return woken_; });
        woken_ = false;
    }
    end();
} catch (const std::exception& error) {
    // The caller is blocked in MPI and cannot print the message.
    catena::plugin::host().log(nullptr, CATENA_LOG_ERROR, error.what());
}

void Engine::stop() noexcept {
    try {
        {
            const std::lock_guard starting(start_mutex_);
            if (!thread_.joinable()) return;
            if (!initialised_) return thread_.detach();  // MPI_Init() may never return
        }
        {
            const Lock held = lock();
            if (std::exchange(stopping_, true)) return;
        }
        wake();
        thread_.join();
    } catch (...) {  // the process ends
    }
}

// Runs in the thread: closes open groups and finalises MPI.
void Engine::end() {
    const Lock held = lock();
    if (halted_) return;
    // The failure of a subgroup does not fail the group of all processes, which may be in use.
    const auto failed = [&] {
        return std::ranges::any_of(groups_, [](const auto& g) { return g->whole && g->failed(); });
    };
    for (const auto& group : groups_)
        if (!group->closed()) group->close();
    // After the failure of a subgroup, ranks that hang in it do not close the group of all.
    auto longest = Clock::duration::max() / 2;
    for (const auto& group : groups_)
        if (group->failed())
            longest = std::min(longest, catena::plugin::duration_of(group->timeout));
    // MPI_Finalize() would wait forever for ranks that have failed.
    bool ended = false;
    const bool left = poll_until(
        [&] {
            ended = std::ranges::any_of(groups_, [](const auto& g) { return g->member_ended(); });
            return ended || failed() || std::ranges::all_of(groups_, [](const auto& g) {
                       return g->over() || g->failed();
                   });
        },
        longest);
    if (halted_) return;
    if (!failed()) {
        if (!finalise_ || ended || !left || late_) return;
        for (const auto& group : groups_) group->free();  // subgroups that have failed
        MPI_Finalize();
        return;
    }
    // mpirun ends all processes when the first one has ended, so each waits for the others.
    for (const auto& group : groups_)
        if (group->failed()) group->report();
    poll_until(
        [&] {
            return std::ranges::all_of(groups_,
                                       [](const auto& g) { return !g->failed() || g->reported(); });
        },
        std::chrono::seconds(1));
}

}  // namespace catena_mpi
