// Inputs of a call: that they are there, where they are, and of which dtypes.
#pragma once

#include "registry/registry.hpp"

#include <catena/core/array_body.hpp>

#include <span>

namespace catena {

// Throws InvalidError for an input that is missing and not optional.
void check_present(const FunctionEntry& function, std::span<ArrayBody* const> x);
// The device of all inputs, or the current one if there are none. Throws DeviceError if they differ.
DeviceState& common_device(const FunctionEntry& function, std::span<ArrayBody* const> x);

// Collects the dtype of each type_var; the same one must not have two.
class TypeKey {
public:
    explicit TypeKey(const FunctionEntry& f) : f_(f) {}

    // Of input or output i. Throws DtypeError.
    void add(int type, const catena_meta& meta, std::uint32_t i, bool input) {
        const int dtype = dtype_index(meta.dtype);
        const auto shift = static_cast<unsigned>(4 * type);
        if (seen_ >> type & 1) {
            if (static_cast<int>(bits_ >> shift & 15) != dtype) mismatch(type, meta, i, input);
            return;
        }
        if (dtype < 0) unknown(meta, i, input);
        seen_ |= 1u << type;
        bits_ |= static_cast<std::uint64_t>(dtype) << shift;
    }
    std::uint64_t bits() const noexcept { return bits_; }

private:
    [[noreturn]] void mismatch(int type, const catena_meta& meta, std::uint32_t i, bool input);
    [[noreturn]] void unknown(const catena_meta& meta, std::uint32_t i, bool input);

    const FunctionEntry& f_;
    unsigned seen_ = 0;
    std::uint64_t bits_ = 0;
};

}  // namespace catena
