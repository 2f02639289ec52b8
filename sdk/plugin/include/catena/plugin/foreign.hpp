// Kernels for functions that other plugins describe: what kernels_for() says is compared with the
// function that the host has, once for each kernel, for a wrong order of attributes would go unnoticed.
#pragma once

#include <atomic>
#include <concepts>

#include "catena/plugin/kernel.hpp"

namespace catena::plugin::detail {

// Throws "[function] what: expected X, got Y" where `mine` is not how `f` is described.
template <std::size_t n_in, std::size_t n_out, std::size_t n_attrs>
void check_described(const About<n_in, n_out, n_attrs>& mine, Retained reads,
                     const catena_function& f) {
    const auto differ = [&](const std::string& what, const auto& got, const auto& expected) {
        fail(CATENA_E_INTERNAL, f.name, ("kernels_for(): " + what).c_str(), expected, got);
    };
    if (f.n_inputs != n_in) differ("inputs", n_in, f.n_inputs);
    if (f.n_outputs != n_out) differ("outputs", n_out, f.n_outputs);
    if (f.n_attrs != n_attrs) differ("attributes", n_attrs, f.n_attrs);
    for (std::uint32_t i = 0; i < n_attrs; ++i) {
        const std::string at = "attribute " + std::to_string(i);
        if (std::string_view(mine.attrs[i].name) != f.attrs[i]->name)
            differ(at, mine.attrs[i].name, f.attrs[i]->name);
        if (mine.attrs[i].kind != f.attrs[i]->kind)
            differ("the kind of " + at, mine.attrs[i].kind, f.attrs[i]->kind);
    }
    // Ports of one type variable have one dtype; what it is called is of no interest.
    const auto my_type = [&](std::size_t i) {
        return std::string_view(i < n_in ? mine.inputs[i].type : mine.outputs[i - n_in].type);
    };
    const auto its_type = [&](std::size_t i) {
        return std::string_view((i < n_in ? f.inputs[i] : f.outputs[i - n_in])->type_var);
    };
    for (std::size_t i = 0; i < n_in + n_out; ++i)
        for (std::size_t k = 0; k < i; ++k)
            if ((my_type(i) == my_type(k)) != (its_type(i) == its_type(k)))
                differ("type variables of ports " + std::to_string(k) + " and " + std::to_string(i),
                       "another", its_type(i) == its_type(k) ? "one" : "two");
    const auto kept = [&](const char* what, std::uint64_t mine_reads, std::uint64_t its) {
        if ((mine_reads & ~its) != 0)
            differ(std::string("backward reads ") + what, "others too", "those that it retains");
    };
    kept("inputs", reads.x, f.retain_x);
    kept("outputs", reads.y, f.retain_y);
}

template <class F>
catena_status described_as(catena_ctx* ctx, const catena_call& call) noexcept {
    static constinit std::atomic<const catena_function*> known{nullptr};
    if (known.load(std::memory_order_relaxed) == call.function) [[likely]]
        return CATENA_OK;
    const catena_status status =
        guarded(ctx, [&] { check_described(F::about, retained_of<F>(), *call.function); });
    if (status == CATENA_OK) known.store(call.function, std::memory_order_relaxed);
    return status;
}

template <class F, decltype(catena_kernel::run) inner>
catena_status CATENA_CALL run_foreign(catena_ctx* ctx, const catena_call* call) noexcept {
    const catena_status status = described_as<F>(ctx, *call);
    return status == CATENA_OK ? inner(ctx, call) : status;
}
template <class F, decltype(catena_kernel::plan) inner>
catena_status CATENA_CALL plan_foreign(catena_ctx* ctx, const catena_call* call,
                                       catena_plan* plan) noexcept {
    const catena_status status = described_as<F>(ctx, *call);
    return status == CATENA_OK ? inner(ctx, call, plan) : status;
}

// F::supports(call): false leaves a call to the next kernel. Data pointers may be null.
template <class F>
concept HasSupports = requires(const Call<F, Isa::baseline>& call) {
    { F::supports(call) } -> std::same_as<bool>;
};
template <class F>
std::int32_t CATENA_CALL supports_by_hand(catena_ctx* ctx, const catena_call* call) noexcept {
    if constexpr (F::about.kernels_alone)  // what is not as described is taken: run() says why
        if (described_as<F>(ctx, *call) != CATENA_OK) return 1;
    try {
        const Call<F, Isa::baseline> c(ctx, *call);
        return F::supports(c) ? 1 : 0;
    } catch (...) {
        return 0;
    }
}

}  // namespace catena::plugin::detail
