// Elementwise kernels that are written down as formulas and compiled at run time, for the device of the
// call. abi/ext/draft/kernels.h has all that a formula may say, and reductions.
#pragma once

#include <array>
#include <atomic>
#include <initializer_list>

#include "catena/abi/ext/draft/kernels.h"
#include "catena/plugin/kernel.hpp"

namespace catena::plugin {

// A constant of the plugin's:
//     constinit const Formula cube("T x", "T y", "y = x * x * x", "cube");
//     ... cube.run(call.context(), call.raw(), {call.raw().x[0]}, {call.raw().y[0]});
class Formula {
public:
    constexpr Formula(const char* inputs, const char* outputs, const char* operation,
                      const char* name)
        : inputs_(inputs), outputs_(outputs), operation_(operation), name_(name) {}

    // Throws Error; CATENA_E_UNSUPPORTED if no plugin has kernels from formulas, or the device no
    // compiler.
    void run(catena_ctx* ctx, const catena_call& call,
             std::initializer_list<const catena_tensor*> x,
             std::initializer_list<catena_tensor*> y) const {
        const auto* table =
            static_cast<const catena_kernels*>(*host().extensions(nullptr, CATENA_KERNELS_DRAFT_1));
        if (table == nullptr)
            fail(CATENA_E_UNSUPPORTED, name_, CATENA_KERNELS_DRAFT_1, "a plugin that offers it",
                 "none");
        std::array<catena_operand, CATENA_MAX_PORTS> operands{};
        if (x.size() > operands.size())
            fail(CATENA_E_INVALID, name_, "inputs", "at most 32", x.size());
        std::size_t n = 0;
        for (const catena_tensor* tensor : x) operands[n++].tensor = tensor;
        const catena_formula_call c = {
            .struct_size = sizeof(catena_formula_call),
            .flags = 0,
            .x = operands.data(),
            .y = y.begin(),
            .n_x = static_cast<std::uint32_t>(x.size()),
            .n_y = static_cast<std::uint32_t>(y.size()),
            .axes = nullptr,
            .shape = nullptr,
            .n_axes = 0,
            .ndim = 0,
            .dev = call.dev,
            .stream = call.stream,
            .scratch = nullptr,
            .scratch_bytes = 0,
        };
        if (const catena_status s = table->run(ctx, kernel(ctx, *table), &c); s != CATENA_OK)
            throw Error(s);
    }

private:
    const catena_formula_kernel* kernel(catena_ctx* ctx, const catena_kernels& table) const {
        const catena_formula_kernel* made = kernel_.load(std::memory_order_acquire);
        if (made != nullptr) return made;
        catena_formula f = {};
        f.struct_size = sizeof f;
        f.kind = CATENA_FORMULA_ELEMENTWISE;
        f.name = name_;
        f.inputs = inputs_;
        f.outputs = outputs_;
        f.operation = operation_;
        if (const catena_status s = table.create(ctx, &f, &made); s != CATENA_OK) throw Error(s);
        kernel_.store(made, std::memory_order_release);
        return made;
    }

    const char* inputs_;
    const char* outputs_;
    const char* operation_;
    const char* name_;
    mutable std::atomic<const catena_formula_kernel*> kernel_ = nullptr;
};

}  // namespace catena::plugin
