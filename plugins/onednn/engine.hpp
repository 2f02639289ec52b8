// What every kernel here needs: oneDNN's engine, its calls on one thread, and made primitives kept.
#pragma once

#include <csignal>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include <catena/plugin/vendor.hpp>

namespace catena_onednn {

using namespace catena::plugin;
using dnnl::memory;

// While it lives, oneDNN uses the calling thread alone, as its OpenMP threads would spin against the
// host's pool, and signals wait: products point the stack register into the heap, where a handler's
// frame would overwrite what lies below (oneDNN up to 3.11). Both settings are the
// thread's own, and are given back.
class Undisturbed {
public:
    Undisturbed();
    ~Undisturbed();
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;

private:
    int threads_ = 1;
    sigset_t signals_;
};

const dnnl::engine& engine();  // [any]
dnnl::stream& stream();        // [any] the calling thread's; calls return when the work is done

// Runs body(begin, end, slot) over pieces of 0 .. n on the host's threads, with oneDNN on each of
// them alone. Throws what a piece threw.
template <class Body>
void parallel(catena_ctx* ctx, std::int64_t n, Body&& body, std::int64_t grain = 1) {
    using B = std::remove_reference_t<Body>;
    const auto piece = [](void* user, std::int64_t begin, std::int64_t end, std::int32_t slot) {
        const Undisturbed guard;
        (*static_cast<B*>(user))(begin, end, slot);
    };
    Pieces(piece, &body).run(ctx, n, grain);
}

inline memory view(const memory::desc& desc, const void* data) {
    return {desc, engine(), const_cast<void*>(data)};
}

// A tensor as the caller has it, and as a primitive wants it.
struct Operand {
    bool direct() const { return plain == inner; }
    std::size_t bytes() const { return inner.get_size(); }
    // Both may add to what is there.
    void make_reader() { convert = reorder(plain, inner, false); }
    void make_writer(bool add) { convert = reorder(inner, plain, add); }
    static dnnl::reorder reorder(const memory::desc& from, const memory::desc& to, bool add);

    memory::desc plain;
    memory::desc inner;
    dnnl::reorder convert;
};

inline void convert(const dnnl::reorder& reorder, const memory& from, const memory& to) {
    reorder.execute(stream(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

// oneDNN does not check the memory that it writes generated code to, and crashes where it gets none: ask
// before it generates any. Throws Error.
void require_memory();

// oneDNN's own loops without generated code are slower than anything.
void require_fast(const char* implementation);

// Places in one block of scratch memory.
class Layout {
public:
    // Where the next piece begins; in bytes, a multiple of 64.
    std::size_t add(std::size_t bytes) {
        const std::size_t at = size_;
        size_ += (bytes + 63) / 64 * 64;
        return at;
    }
    std::size_t size() const { return size_; }

private:
    std::size_t size_ = 0;
};

using Key = std::array<std::int64_t, 18>;

// Primitives by what they were made for; those not used for longest make room. [any]
template <class T>
class Cache {
public:
    template <class Make>
    std::shared_ptr<const T> get(const Key& key, const Make& make) {
        if (auto found = find(key)) return found;
        require_memory();
        const Undisturbed guard;  // it is a property of what is made, too
        std::shared_ptr<const T> made = make();
        const std::lock_guard lock(mutex_);
        if (entries_.size() == most) {
            std::size_t oldest = 0;
            for (std::size_t i = 1; i < entries_.size(); ++i)
                if (entries_[i].used < entries_[oldest].used) oldest = i;
            entries_[oldest] = std::move(entries_.back());
            entries_.pop_back();
        }
        entries_.push_back({key, made, ++now_});
        return made;
    }

private:
    static constexpr std::size_t most = 128;
    struct Entry {
        Key key;
        std::shared_ptr<const T> value;
        std::uint64_t used;
    };

    std::shared_ptr<const T> find(const Key& key) {
        const std::lock_guard lock(mutex_);
        for (Entry& entry : entries_) {
            if (entry.key != key) continue;
            entry.used = ++now_;
            return entry.value;
        }
        return nullptr;
    }

    std::mutex mutex_;
    std::vector<Entry> entries_;
    std::uint64_t now_ = 0;
};

// The border to the host, for what plans: oneDNN cannot do it, so another kernel shall.
template <class Body>
catena_status planned(catena_ctx* ctx, Body&& body) noexcept {
    return guarded(ctx, [&] {
        try {
            body();
        } catch (const dnnl::error& e) {
            throw Error(CATENA_E_UNSUPPORTED, std::string("oneDNN: ") + e.what());
        }
    });
}

}  // namespace catena_onednn
