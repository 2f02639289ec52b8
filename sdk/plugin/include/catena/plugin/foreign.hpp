// Code that runs before a kernel: F::supports(), and, for functions of other plugins, a comparison
// of kernels_for() with the function that the host has. Otherwise a wrong order of attributes would
// not be noticed. The comparison runs once for each function.
#pragma once

#include <atomic>
#include <concepts>
#include <type_traits>

#include "catena/plugin/kernel.hpp"

namespace catena::plugin::detail {

// The part of an About that a host can compare.
struct Described {
    std::span<const Port> inputs;
    std::span<const Port> outputs;
    std::span<const Attribute> attrs;
    Retained reads;  // values that backward reads
};
// Throws "[function] what: expected X, got Y" if `mine` differs from the description of `f`.
void check_described(const Described& mine, const catena_function& f);

template <class F>
catena_status described_as(catena_ctx* ctx, const catena_call& call) noexcept {
    static constinit std::atomic<const catena_function*> known{nullptr};
    if (known.load(std::memory_order_relaxed) == call.function) [[likely]]
        return CATENA_OK;
    const catena_status status = guarded(ctx, [&] {
        check_described({F::about.inputs, F::about.outputs, F::about.attrs, retained_of<F>()},
                        *call.function);
    });
    if (status == CATENA_OK) known.store(call.function, std::memory_order_relaxed);
    return status;
}

// Calls F::supports(call). If that is false, the next kernel is asked. Data pointers may be null.
template <class F>
concept HasSupports = requires(const Call<F, Isa::baseline>& call) {
    { F::supports(call) } -> std::same_as<bool>;
};
struct AnySupports {
    int supports;
};
template <class F>
struct TwoSupports : F, AnySupports {};
// True if F has a member with that name, whatever its parameters are.
template <class F>
concept NamesSupports = !requires {
    &TwoSupports<F>::supports;
};

// Whether F::supports() ever threw an exception, which is a fault of F. run() reports it.
template <class F>
std::atomic<bool>& supports_threw() {
    static constinit std::atomic<bool> threw{false};
    return threw;
}
template <class F>
catena_status ask_supports(catena_ctx* ctx, const catena_call& call, bool& yes) noexcept {
    return guarded(ctx, [&] {
        const Call<F, Isa::baseline> c(ctx, call);
        yes = F::supports(c);
    });
}
// Calls that do not match the description, and those for which F::supports() throws, are accepted,
// and run() reports the error.
template <class F>
std::int32_t CATENA_CALL supports_by_hand(catena_ctx* ctx, const catena_call* call) noexcept {
    if constexpr (F::about.kernels_alone)
        if (described_as<F>(ctx, *call) != CATENA_OK) return 1;
    bool yes = false;
    const catena_status status = ask_supports<F>(ctx, *call, yes);
    if (status == CATENA_OK || status == CATENA_E_UNSUPPORTED) return yes ? 1 : 0;
    supports_threw<F>().store(true, std::memory_order_relaxed);
    return 1;
}

template <class F, decltype(catena_kernel::run) inner>
catena_status CATENA_CALL run_checked(catena_ctx* ctx, const catena_call* call) noexcept {
    if constexpr (F::about.kernels_alone)
        if (const catena_status status = described_as<F>(ctx, *call); status != CATENA_OK)
            return status;
    if constexpr (HasSupports<F>)
        if (supports_threw<F>().load(std::memory_order_relaxed)) [[unlikely]] {
            bool yes = false;
            const catena_status status = ask_supports<F>(ctx, *call, yes);
            if (status != CATENA_OK) return status;
        }
    return inner(ctx, call);
}
template <class F, decltype(catena_kernel::plan) inner>
catena_status CATENA_CALL plan_foreign(catena_ctx* ctx, const catena_call* call,
                                       catena_plan* plan) noexcept {
    const catena_status status = described_as<F>(ctx, *call);
    return status == CATENA_OK ? inner(ctx, call, plan) : status;
}

// The pointers for the table of kernels, with the checks above if they are needed.
template <class F, decltype(catena_kernel::run) run>
constexpr decltype(run) entry_of() {
    if constexpr (F::about.kernels_alone || HasSupports<F>) return &run_checked<F, run>;
    else return run;
}
template <class F, decltype(catena_kernel::plan) plan>
constexpr decltype(plan) planner_of() {
    // Compares types: for GCC with UBSan a comparison of addresses is not a constant expression.
    using Plan = decltype(plan);
    constexpr bool none =
        std::is_same_v<std::integral_constant<Plan, plan>, std::integral_constant<Plan, nullptr>>;
    if constexpr (F::about.kernels_alone && !none) return &plan_foreign<F, plan>;
    else return plan;
}
template <class F>
constexpr decltype(catena_kernel::supports) supports_of() {
    static_assert(HasSupports<F> || !NamesSupports<F>,
                  "supports is `static bool supports(const auto& call)`");
    if constexpr (HasSupports<F>) return &supports_by_hand<F>;
    else return nullptr;
}

}  // namespace catena::plugin::detail
