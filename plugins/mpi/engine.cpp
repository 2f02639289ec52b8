// MPI in this process: the lock, progress, and the end.
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

void Engine::initialise() {
    const Lock held = lock();
    if (thread_.joinable()) return;
    int initialised = 0, finalised = 0, provided = MPI_THREAD_SINGLE;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    if (finalised || stopping_)
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
    // The program's threads handle its signals.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    std::atexit([] { get().stop(); });  // for hosts that do not call deinit()
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
    // The system's clock, because the thread sanitizer does not know the function of the other.
    for (int tries = 0; !held.try_lock_until(std::chrono::system_clock::now() + 100ms); ++tries) {
        const std::lock_guard watching(watch_mutex_);
        const std::vector<bool> gone = ended(watched_);
        const auto first = std::ranges::find(gone, true);
        if (tries < 2 || first == gone.end()) continue;
        const Member& member = watched_[static_cast<std::size_t>(first - gone.begin())];
        const std::string expected = "rank " + std::to_string(member.rank) + " to take part";
        const Operation* const op = waited_;
        throw Error(CATENA_E_DEVICE, op != nullptr
                                         ? op->group->text_of(op->o, {expected, end_of(member), {}})
                                         : "mpi: expected " + expected + ", got " + end_of(member));
    }
    return held;
}

void Engine::run() try {
    using namespace std::chrono_literals;
    Pause pause(0, 500us);
    for (;;) {
        std::chrono::microseconds time = 500us;
        {
            const Lock held = lock();
            if (stopping_) return;
            if (waiting_.load(std::memory_order_relaxed) == 0) {  // else a caller polls
                if (poll()) pause.reset();
                if (busy()) time = pause.next();
                else if (Clock::now() - last_start_ > 100ms) time = 50ms;
            }
            // Short sleeps end by themselves, which costs a start() less than to end them.
            asleep_ = time > 1ms;
            resting_ = time >= 500us;
        }
        std::unique_lock sleeping(wake_mutex_);
        wake_.wait_for(sleeping, time, [&] { return woken_; });
        woken_ = false;
    }
} catch (const std::exception& error) {
    // The caller that waits in MPI cannot print it.
    catena::plugin::host().log(nullptr, CATENA_LOG_ERROR, error.what());
}

void Engine::stop() noexcept {
    try {
        {
            const Lock held = lock();
            if (std::exchange(stopping_, true) || !thread_.joinable()) return;
        }
        wake();
        thread_.join();
        const Lock held = lock();
        // The failure of a part is no failure of the whole, whose ranks may have gone on.
        const auto failed = [&] {
            return std::ranges::any_of(groups_,
                                       [](const auto& g) { return g->whole && g->failed(); });
        };
        for (const auto& group : groups_)
            if (!group->closed()) group->close();
        // MPI_Finalize() would wait for the others without end, also for those that have failed.
        bool ended = false;
        poll_until(
            [&] {
                ended =
                    std::ranges::any_of(groups_, [](const auto& g) { return g->member_ended(); });
                return ended || failed() || std::ranges::all_of(groups_, [](const auto& g) {
                           return g->over() || g->failed();
                       });
            },
            Clock::duration::max() / 2);
        if (!failed()) {
            if (!finalise_ || ended || halted_) return;
            for (const auto& group : groups_) group->free();  // parts that have failed
            MPI_Finalize();
            return;
        }
        // mpirun ends all processes when the first one has ended, so each waits for the others.
        if (halted_) return;
        for (const auto& group : groups_)
            if (group->failed()) group->report();
        poll_until(
            [&] {
                return std::ranges::all_of(
                    groups_, [](const auto& g) { return !g->failed() || g->reported(); });
            },
            std::chrono::seconds(1));
    } catch (...) {  // the process ends
    }
}

}  // namespace catena_mpi
