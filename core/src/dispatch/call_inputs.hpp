// Inputs of a call: whether they are there, on which device, and of which dtypes; errors about them.
#pragma once

#include "registry/registry.hpp"

#include <catena/core/array_body.hpp>

#include <span>
#include <string>

namespace catena {

// "x (2, 3) float32, W (4, 3) float32".
std::string describe_inputs(const FunctionEntry& function, std::span<ArrayBody* const> x);
[[noreturn]] void throw_arity(const FunctionEntry& function, std::size_t inputs);
inline void check_arity(const FunctionEntry& function, std::size_t inputs) {
    const bool too_many = !function.variadic && inputs > function.descriptor.n_inputs;
    if (inputs < function.min_inputs || too_many) throw_arity(function, inputs);
}
// what: the name of the output, or "saved".
[[noreturn]] void throw_shape(const FunctionEntry& function, const char* what,
                              const catena_meta& meta, std::span<ArrayBody* const> x);

// Collects the dtype of each type_var. Throws DtypeError if one has two.
class TypeKey {
public:
    explicit TypeKey(const FunctionEntry& f) : f_(&f) {}

    // Of input or output i.
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
    std::string name_of(std::uint32_t i, bool input) const;

    const FunctionEntry* f_;
    unsigned seen_ = 0;
    std::uint64_t bits_ = 0;
};

// The inputs as infer() and forward kernels get them: one entry for each, null for a missing one.
struct ForwardInputs {
    // Throws InvalidError for an input that is missing and not optional, DeviceError if two are on
    // different devices, DtypeError for dtypes that do not go together.
    ForwardInputs(const FunctionEntry& function, std::span<ArrayBody* const> x);

    TypeKey key;
    DeviceState* device = nullptr;  // of the inputs, or the current one if there are none
    SmallVector<const catena_meta*, 6> metas;
    SmallVector<const catena_tensor*, 6> tensors;
};

}  // namespace catena
