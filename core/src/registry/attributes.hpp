// Attributes of one call: dense, in the order of the schema, checked once.
#pragma once

#include <catena/abi/attribute.h>
#include <catena/abi/function.h>
#include <catena/core/plugin_function.hpp>
#include <catena/core/pool.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace catena {

// Immutable. values() points into itself.
class BoundAttributes : public Pooled {
public:
    // All defaults; never freed.
    static const BoundAttributes* make_defaults(const catena_function& function);
    // Throws InvalidError naming function and attribute.
    static const BoundAttributes* make(const catena_function& function,
                                       std::span<const Attribute> given);
    static const BoundAttributes* make(const catena_function& function,
                                       std::span<const catena_named_value> given);

    const catena_value* values() const noexcept { return values_.data(); }

    void retain() const noexcept {
        if (!immortal_) references_.fetch_add(1, std::memory_order_relaxed);
    }
    void release() const noexcept {
        if (!immortal_ && references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

private:
    explicit BoundAttributes(const catena_function& function) : values_(function.n_attrs) {}
    template <class Given>
    static const BoundAttributes* bind(const catena_function& function,
                                       std::span<const Given> given);
    void set(const catena_function& function, std::uint32_t index, catena_value value);
    void finish(const catena_function& function, std::uint64_t seen);

    // Copies of strings and lists that values point to.
    struct Owned : Pooled {
        SmallVector<std::int64_t, 8> ints;
        SmallVector<double, 4> floats;
        std::string text;
    };
    SmallVector<catena_value, 4> values_;
    SmallVector<std::unique_ptr<Owned>, 1> owned_;
    bool immortal_ = false;
    mutable std::atomic<std::uint32_t> references_{1};
};

}  // namespace catena
