// The tables of CUDA kernels, both those from formulas and handwritten ones.
//
// A handwritten kernel is in a specialization for its function, next to its description:
//
//     template <>
//     struct catena::plugin::cuda::Kernels<Softmax> {
//         template <class T> static void forward(const auto& call);   // a cuda::Call
//         template <class T> static void backward(const auto& call);
//         template <class T> static void plan(const auto& call, catena_plan& plan);  // if need be
//         static bool supports(const catena_call& call);                             // if need be
//     };
//
// If a description has `static constexpr bool any_device = true;`, its own forward() and backward()
// are also the CUDA kernels: they call functions that are overloaded for a cuda::Call.
//
// backward() is called only if a visible output has a gradient; otherwise the gradients of inputs
// are set to zero. T are the dtypes of one of the function's rows, with AnyHalf for Float16 and
// BFloat16: load_as() and store_as() convert elements. A kernel that has to distinguish the two
// half types, for example to use dtype_of<T>(), has `static constexpr bool any_half = false;`. The
// phases of a formula may be handwritten too. Without a supports() here, that of the function's
// description applies, if it has one.
#pragma once

#include "catena/plugin/cuda/formula.cuh"
#include "catena/plugin/cuda/many.cuh"
#include "catena/plugin/foreign.hpp"
#include "catena/plugin/half.hpp"
#include "catena/plugin/tables.hpp"

namespace catena::plugin::cuda {

template <class F>
struct Kernels {};
template <class F>
    requires(F::any_device)
struct Kernels<F> : F {};

namespace detail {

// Kernels for both half types are compiled once, unless Kernels<F> needs the types themselves.
template <class F>
constexpr bool takes_any_half() {
    if constexpr (requires { Kernels<F>::any_half; }) return Kernels<F>::any_half;
    else return true;
}
template <class F, class T>
using TypeFor = std::conditional_t<takes_any_half<F>(), Stored<T>, T>;
template <class... T>
inline constexpr bool has_bfloat = (std::is_same_v<T, BFloat16> || ...);

template <class F, class... T>
concept PlanByHand = requires(const Call<F>& call, catena_plan& plan) {
    Kernels<F>::template plan<T...>(call, plan);
};

template <class F, int phase, class... T>
constexpr bool by_hand() {
    return plugin::detail::by_hand<Kernels<F>, Call<F>, phase>(Types<TypeFor<F, T>...>());
}

template <class F, int phase, class... T>
catena_status CATENA_CALL run(catena_ctx* ctx, const catena_call* call) noexcept {
    return guarded(ctx, [&] {
        const OnDevice device(F::about.name, call->device_id);
        [[maybe_unused]] const Call<F> c(ctx, *call, has_bfloat<T...>);
        constexpr bool forward = phase == CATENA_PHASE_FORWARD;
        if constexpr (!forward) {
            const auto zero = [](const void* queue, void* data, std::size_t bytes) {
                static_cast<const Queue*>(queue)->zero(data, bytes);
            };
            if (plugin::detail::set_zero_gradients(*call, zero, &c.queue())) return;
        }
        if constexpr (by_hand<F, phase, T...>()) {
            if constexpr (forward) Kernels<F>::template forward<TypeFor<F, T>...>(c);
            else Kernels<F>::template backward<TypeFor<F, T>...>(c);
        } else if constexpr (!forward) backward_formula<F, TypeFor<F, T>...>(c.queue(), *call);
        else if constexpr (Update<F>) update_formula<F, TypeFor<F, T>...>(c.queue(), *call);
        else forward_formula<F, TypeFor<F, T>...>(c.queue(), *call);
    });
}
// Runs several calls of a kernel together: see catena_many.
struct Together {
    catena_status(CATENA_CALL* run)(catena_ctx*, const catena_call* const*, std::uint32_t,
                                    const void*);
    catena_status(CATENA_CALL* attributes)(catena_ctx*, const catena_value*, void*);
    std::uint64_t attribute_bytes;
};
template <class F, class... T>
inline constexpr Together together = {
    .run = [](catena_ctx* ctx, const catena_call* const* calls, std::uint32_t n,
              const void* attributes) -> catena_status {
        return guarded(ctx, [&] {
            const OnDevice device(F::about.name, calls[0]->device_id);
            update_many<F, TypeFor<F, T>...>(queue_of(F::about.name, *calls[0], has_bfloat<T...>),
                                             calls, n, attributes);
        });
    },
    .attributes = [](catena_ctx* ctx, const catena_value* attrs, void* to) -> catena_status {
        return guarded(ctx, [&] {
            const auto constants =
                constants_of<F, typename UpdateOf<F, TypeFor<F, T>...>::Value>(attrs);
            std::memcpy(to, &constants, sizeof constants);
        });
    },
    .attribute_bytes = sizeof(UpdateOf<F, TypeFor<F, T>...>::constants)};
template <class F, class... T>
catena_status CATENA_CALL plan(catena_ctx* ctx, const catena_call* call,
                               catena_plan* plan) noexcept {
    return guarded(ctx, [&] {
        if constexpr (PlanByHand<F, TypeFor<F, T>...>)
            Kernels<F>::template plan<TypeFor<F, T>...>(Call<F>(ctx, *call, has_bfloat<T...>),
                                                        *plan);
        else plan_backward_formula<F, TypeFor<F, T>...>(*call, *plan);
    });
}

template <class F>
std::int32_t CATENA_CALL supports(catena_ctx* ctx, const catena_call* call) noexcept {
    if constexpr (F::about.kernels_alone)  // accepts mismatching calls: run() reports the error
        if (plugin::detail::described_as<F>(ctx, *call) != CATENA_OK) return 1;
    return Kernels<F>::supports(*call) ? 1 : 0;
}

template <class F, int phase, class... T>
constexpr catena_kernel kernel_of() {
    constexpr bool hand = by_hand<F, phase, T...>();
    catena_kernel k = plugin::detail::kernel_for<F>(phase, "cuda", Row<T...>::dtypes);
    k.run = plugin::detail::entry_of<F, &run<F, phase, T...>>();
    k.name = hand ? nullptr : "formula";
    if constexpr (hand) {
        if constexpr (requires(const catena_call& call) { Kernels<F>::supports(call); })
            k.supports = &supports<F>;
        if constexpr (PlanByHand<F, TypeFor<F, T>...>)
            k.plan = plugin::detail::planner_of<F, &plan<F, T...>>();
    } else if constexpr (!Update<F> && n_inputs<F> > 1 && phase == CATENA_PHASE_BACKWARD) {
        k.plan = plugin::detail::planner_of<F, &plan<F, T...>>();
    }
    return k;
}

struct Entry {
    catena_kernel kernel;
    const Together* many;
};
template <class F, int phase, class... T>
constexpr auto kernels_of_phase(Row<T...>) {
    constexpr bool hand = by_hand<F, phase, T...>();
    if constexpr (!plugin::detail::has_kernel<F, phase>(Row<T...>(), hand)) {
        return std::array<Entry, 0>{};
    } else {
        Entry entry = {kernel_of<F, phase, T...>(), nullptr};
        if constexpr (Update<F> && !hand && !F::about.kernels_alone)
            entry.many = &together<F, T...>;
        return std::array{entry};
    }
}
template <class F, class R>
constexpr auto kernels_of_row(R row) {
    return plugin::detail::joined<Entry>(kernels_of_phase<F, CATENA_PHASE_FORWARD>(row),
                                         kernels_of_phase<F, CATENA_PHASE_BACKWARD>(row));
}

// Returns the row with Half in place of each type in `mask`.
template <class Half, unsigned mask, class... T, std::size_t... I>
constexpr auto with_half(Row<T...>, std::index_sequence<I...>) {
    return Row<std::conditional_t<(mask >> I & 1) != 0, Half, T>...>();
}
template <class F, class... T>
constexpr auto kernels_of_row_and_halves(Row<T...> row) {
    using plugin::detail::joined;
    constexpr unsigned mask = plugin::detail::halves_of<F, Row<T...>>();
    if constexpr (mask == 0 || plugin::detail::has_halves(types_of<F>())) {
        return kernels_of_row<F>(row);
    } else {
        constexpr auto index = std::index_sequence_for<T...>();
        return joined<Entry>(kernels_of_row<F>(row),
                             kernels_of_row<F>(with_half<Float16, mask>(row, index)),
                             kernels_of_row<F>(with_half<BFloat16, mask>(row, index)));
    }
}
template <class F, class... R>
constexpr auto kernels_of(Rows<R...>) {
    return plugin::detail::joined<Entry>(kernels_of_row_and_halves<F>(R())...);
}

}  // namespace detail

template <class F>
struct KernelTable {
    static constexpr auto entries = detail::kernels_of<F>(types_of<F>());
    static_assert(!entries.empty() || (F::about.flags & CATENA_FUNCTION_VIEW) != 0 ||
                      plugin::detail::HasCompose<F>,
                  "CATENA_PLUGIN in a .cu file takes formulas, compositions, and functions for "
                  "which there is a catena::plugin::cuda::Kernels<F>");
    static constexpr auto list = [] {
        std::array<const catena_kernel*, entries.size()> result{};
        std::size_t i = 0;  // not compared with size(), which is 0 for a view: nvcc would warn
        for (const detail::Entry& entry : entries) result[i++] = &entry.kernel;
        return result;
    }();
};

// catena.many.draft/1 for those functions that are updates.
template <class... F>
struct ManyTable {
    static constexpr bool any = (Update<F> || ...);

    static const detail::Together* find(const catena_kernel* kernel) {
        const detail::Together* found = nullptr;
        const auto look = [&](const auto& entries) {
            for (const detail::Entry& e : entries)
                if (&e.kernel == kernel) found = e.many;
        };
        (look(KernelTable<F>::entries), ...);
        return found;
    }
    static constexpr catena_many table = {
        .struct_size = sizeof(catena_many),
        .reserved = 0,
        .has = [](const catena_kernel* kernel) -> std::int32_t {
            return find(kernel) != nullptr ? 1 : 0;
        },
        .run = [](catena_ctx* ctx, const catena_kernel* kernel, const catena_call* const* calls,
                  std::uint32_t n, const void* attributes) -> catena_status {
            return n == 0 ? CATENA_OK : find(kernel)->run(ctx, calls, n, attributes);
        },
        .attribute_bytes =
            [](const catena_kernel* kernel) { return find(kernel)->attribute_bytes; },
        .attributes = [](catena_ctx* ctx, const catena_kernel* kernel, const catena_value* attrs,
                         void* to) { return find(kernel)->attributes(ctx, attrs, to); }};
    static constexpr catena_extension extension =
        plugin::extension(CATENA_MANY_DRAFT_1, "cuda", &table, CATENA_PRIORITY_PORTABLE);
};

}  // namespace catena::plugin::cuda
