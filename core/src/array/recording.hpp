// What a recording of work knows of arrays that were there before.
#pragma once

#include "device/queue.hpp"

#include <catena/core/array.hpp>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace catena {

class Recording {
public:
    explicit Recording(Queue& recorder) : queue(recorder) {}

    Queue&
        queue;  // gives its work to the stream that is recorded, and owns the arrays that it makes

    // Its work uses an array that it did not make, which then lives as long as it.
    void note(ArrayBody& owner, bool writes) {
        const std::lock_guard lock(mutex_);
        Use& use = outside_.try_emplace(&owner, owner).first->second;
        use.writes = use.writes || writes;
    }

    // Random numbers of its work: where a launch puts the beginning of n blocks of draws.
    struct Draws {
        Array state;
        DeviceState& of;  // whose numbers
        std::uint64_t n;
    };
    void note_draws(Draws draws) {
        const std::lock_guard lock(mutex_);
        draws_.push_back(std::move(draws));
    }
    std::vector<Draws> take_draws() {
        const std::lock_guard lock(mutex_);
        return std::move(draws_);
    }

    struct Use {
        explicit Use(ArrayBody& owner) : array(Ref<ArrayBody>(&owner)) { ++owner.recordings; }
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;
        ~Use() { --array.body()->recordings; }

        Array array;
        bool writes = false;
    };
    using Uses = std::map<ArrayBody*, Use>;
    Uses take() {
        const std::lock_guard lock(mutex_);
        return std::move(outside_);
    }

private:
    std::mutex mutex_;
    Uses outside_;
    std::vector<Draws> draws_;
};

// Where work for a queue really goes: while it is recorded, to the recorder.
inline Queue& recorded(Queue& queue) noexcept {
    Recording* recording = queue.recording.load(std::memory_order_acquire);
    return recording ? recording->queue : queue;
}

}  // namespace catena
