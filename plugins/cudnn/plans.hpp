// Plans by what they were made for: chosen once, by cuDNN's heuristics or by timing, and kept.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "graph.hpp"

namespace catena_cudnn {

// Values by key; what was not used for longest makes room. [any]
template <class T>
class Cache {
public:
    explicit Cache(std::size_t most) : most_(most) {}

    std::optional<T> find(const Key& key) {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(key);
        if (found == entries_.end()) return std::nullopt;
        found->second.used = ++now_;
        return found->second.value;
    }
    void keep(const Key& key, T value) {
        const std::lock_guard lock(mutex_);
        if (entries_.size() >= most_ && !entries_.contains(key)) {
            auto oldest = entries_.begin();
            for (auto it = oldest; it != entries_.end(); ++it)
                if (it->second.used < oldest->second.used) oldest = it;
            entries_.erase(oldest);
        }
        entries_[key] = {std::move(value), ++now_};
    }

private:
    struct Entry {
        T value;
        std::uint64_t used;
    };
    const std::size_t most_;
    std::mutex mutex_;
    std::map<Key, Entry> entries_;
    std::uint64_t now_ = 0;
};

// Whether cuDNN can do this within the workspace that is allowed.
bool can(catena_ctx* ctx, const catena_call& call, const Problem& p);
// Scratch bytes that run() takes; 0 if it cannot.
std::uint64_t scratch_for(catena_ctx* ctx, const catena_call& call, const Problem& p);
// Enqueues it. data: x, W, y and b as p has them. With CATENA_CUDNN_AUTOTUNE the first run measures.
void run(catena_ctx* ctx, const catena_call& call, const Problem& p, const Pointers& data);

}  // namespace catena_cudnn
