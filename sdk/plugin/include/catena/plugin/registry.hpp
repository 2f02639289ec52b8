// The plugin's table, generated from the descriptions: constant data, no code runs at load.
#pragma once

#include "catena/plugin/compose.hpp"
#include "catena/plugin/elementwise.hpp"
#include "catena/plugin/foreign.hpp"
#include "catena/plugin/tables.hpp"
#include "catena/plugin/update.hpp"
#include "catena/plugin/var.hpp"
#if !defined(CATENA_CUDA)
#include "catena/plugin/elementwise_cpu.hpp"
#include "catena/plugin/widened.hpp"
#endif

namespace catena::plugin {

template <class F>
struct FunctionTable;

namespace detail {

template <class Spec, class T, std::size_t n>
constexpr std::array<const Spec*, n> pointers(const std::array<T, n>& items) {
    std::array<const Spec*, n> result{};
    for (std::size_t i = 0; i < n; ++i) result[i] = &items[i];
    return result;
}

template <class T, std::size_t... n>
constexpr auto joined(const std::array<T, n>&... parts) {
    std::array<T, (n + ... + 0)> all{};
    std::size_t i = 0;
    [[maybe_unused]] const auto append = [&](const auto& part) {
        for (const T& item : part) all[i++] = item;
    };
    (append(parts), ...);
    return all;
}

// If no visible output has a gradient, sets the gradients of all inputs to zero and returns true.
bool set_zero_gradients(const catena_call& call);
bool set_zero_gradients(const catena_gradient_call& call);
bool set_zero_gradients(const catena_call& call,
                        void (*set_zero)(const void* queue, void* data, std::size_t bytes),
                        const void* queue);

template <class F>
catena_status CATENA_CALL gradient(catena_ctx* ctx, const catena_gradient_call* call) noexcept {
    return guarded(ctx, [&] {
        if (set_zero_gradients(*call)) return;
        const Gradient<F> g(ctx, *call);
        if constexpr (ElementwiseGradient<F>) {
            Var x[n_inputs<F> + 1];
            for (std::size_t i = 0; i < n_inputs<F>; ++i)
                if (retains_x<F>(i)) x[i] = g.x(i);
            const Var y = retains_y<F>(0) ? g.y(0) : Var();
            const auto values = formula_attributes<F, double>(call->attrs);
            Var attrs[n_attributes<F> + 1];
            std::copy(values.begin(), values.end(), attrs);
            const auto result = gradient_of<F, Var>(g.gy(0), x, y, attrs);
            for (std::size_t i = 0; i < n_inputs<F>; ++i)
                if (g.wants(i)) g.gx(i, result.values[i]);
        } else {
            F::gradient(g);
        }
    });
}

template <class F>
concept HasGradient = requires(const Gradient<F>& g) {
    F::gradient(g);
};
template <class F>
concept HasInfer = requires(const Inference<F>& s) {
    F::infer(s);
};
template <class F>
concept HasCompose = requires(const Composition<F>& g) {
    F::compose(g);
};
template <class F>
catena_status CATENA_CALL infer(catena_ctx* ctx, const catena_value* attrs,
                                const catena_meta* const* x, std::uint32_t n_x,
                                catena_meta* const* y, std::uint32_t) noexcept {
    if constexpr (Elementwise<F>) {
        constexpr bool whole =
            n_attributes<F> != 0 && std::is_same_v<decltype(types_of<F>()), Numbers>;
        return infer_elementwise(ctx, FunctionTable<F>::function, whole, typed_as_output<F>(),
                                 attrs, x, *y[0]);
    } else {
        return guarded(ctx, [&] {
            if constexpr (Update<F>) check_update_shapes<F>(x, n_x);
            const Inference<F> s(attrs, x, n_x, y);
            if constexpr (HasInfer<F> || !Update<F>) F::infer(s);
        });
    }
}
template <class F>
catena_status CATENA_CALL compose(catena_ctx* ctx, const catena_compose_call* call) noexcept {
    return guarded(ctx, [&] {
        const Composition<F> g(ctx, *call);
        g.store(F::compose(g));
    });
}

}  // namespace detail

// The catena_function of a description.
template <class F>
struct FunctionTable {
    static constexpr auto inputs = detail::pointers<catena_port_spec>(F::about.inputs);
    static constexpr auto outputs = detail::pointers<catena_port_spec>(F::about.outputs);
    static constexpr auto attrs = detail::pointers<catena_attr_spec>(F::about.attrs);

    static constexpr bool has_gradient = ElementwiseGradient<F> || detail::HasGradient<F>;
    static constexpr bool has_compose = detail::HasCompose<F>;
    static constexpr bool is_formula = Elementwise<F> || Update<F>;
    static constexpr bool differentiable =
        (F::about.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) == 0 && !Update<F>;
    static_assert(!F::about.kernels_alone, "kernels_for(): another plugin describes the function");
    static_assert(has_gradient || has_compose || !differentiable,
                  "a function has backward(gy, x..., [y,] attributes...) as a formula, or "
                  "gradient(g), or compose(g), or its description says .not_differentiable()");
    static_assert(!is_formula || inputs_suit_formula<F>(Update<F>),
                  "a formula has inputs that are always there: with none, optional or variadic "
                  "ones a function has infer(s) and forward(call)");
    static constexpr auto infer() -> decltype(catena_function::infer) {
        if constexpr (has_compose && !is_formula && !detail::HasInfer<F>) return nullptr;
        else return &detail::infer<F>;
    }
    static constexpr auto compose() -> decltype(catena_function::compose) {
        if constexpr (has_compose) return &detail::compose<F>;
        else return nullptr;
    }
    static constexpr auto gradient() -> decltype(catena_function::gradient) {
        if constexpr (has_gradient) return &detail::gradient<F>;
        else return nullptr;
    }

    static constexpr catena_function function = {
        .struct_size = sizeof(catena_function),
        .flags = F::about.flags | (is_formula ? +CATENA_FUNCTION_ELEMENTWISE : 0u) |
                 (differentiable ? 0u : +CATENA_FUNCTION_NOT_DIFFERENTIABLE),
        .name = F::about.name,
        .doc = F::about.doc,
        .version = F::about.version,
        .n_attrs = static_cast<std::uint32_t>(attrs.size()),
        .n_inputs = static_cast<std::uint32_t>(inputs.size()),
        .n_outputs = static_cast<std::uint32_t>(outputs.size()),
        .attrs = attrs.data(),
        .inputs = inputs.data(),
        .outputs = outputs.data(),
        .retain_x = retained_of<F>().x,
        .retain_y = retained_of<F>().y,
        .infer = infer(),
        .gradient = gradient(),
        .grad_function = nullptr,
        .examples = F::about.examples[0] != nullptr ? F::about.examples.data() : nullptr,
        .compose = compose(),
    };
};

namespace detail {

template <class... T>
constexpr bool has_floats(Row<T...>) {
    return ((!std::is_integral_v<T>) || ...);
}
template <class... T>
constexpr bool has_bool(Row<T...>) {
    return (std::is_same_v<T, bool> || ...);
}
// Whether K, which is F or its cuda::Kernels, has a handwritten kernel for a phase and call type C.
template <class K, class C, int phase, template <class...> class List, class... T>
constexpr bool by_hand(List<T...>) {
    if constexpr (phase == CATENA_PHASE_FORWARD) return requires(const C& call) {
            K::template forward<T...>(call);
        };
    else return requires(const C& call) {
            K::template backward<T...>(call);
        };
}
// Whether there is a kernel, handwritten or from a formula. Integers have no gradients.
template <class F, int phase, class R>
constexpr bool has_kernel(R row, bool is_by_hand) {
    if constexpr (phase == CATENA_PHASE_FORWARD) return is_by_hand || Elementwise<F> || Update<F>;
    else return has_floats(row) && (is_by_hand || ElementwiseGradient<F>);
}
// Returns the part that all kernels of F have in common.
template <class F>
constexpr catena_kernel kernel_for(int phase, const char* device, const catena_dtype* types) {
    constexpr Retained retained = retained_of<F>();
    catena_kernel kernel = plain_kernel(F::about.name, phase, device, types);
    kernel.priority = F::about.priority;
    kernel.version_min = kernel.version_max = F::about.version;
    kernel.retain_x = retained.x;
    kernel.retain_y = retained.y;
    kernel.supports = supports_of<F>();
    return kernel;
}

#if !defined(CATENA_CUDA)

// Handwritten kernels, compiled for isa.
template <class F, Isa isa, int phase, class... T>
struct ByHand {
    CATENA_KERNEL static void run(catena_ctx* ctx, const catena_call* call) {
        const Call<F, isa> c(ctx, *call);
        if constexpr (phase == CATENA_PHASE_FORWARD) {
            F::template forward<T...>(c);
        } else if (!set_zero_gradients(*call)) {
            F::template backward<T...>(c);
        }
    }
};
template <Isa isa, class K>
catena_status CATENA_CALL run_by_hand(catena_ctx* ctx, const catena_call* call) noexcept {
    return guarded(
        ctx, [&] { Target<isa>::template call<K, catena_ctx*, const catena_call*>(ctx, call); });
}
template <class F, class... T>
catena_status CATENA_CALL plan_by_hand(catena_ctx* ctx, const catena_call* call,
                                       catena_plan* plan) noexcept {
    return guarded(ctx, [&] {
        const Call<F, Isa::baseline> c(ctx, *call);
        F::template plan<T...>(c, *plan);
    });
}

// Returns run() of a kernel for which has_kernel() is true.
template <class F, Isa isa, int phase, class First, class... T>
constexpr Run run_of(Row<First, T...>) {
    constexpr bool forward = phase == CATENA_PHASE_FORWARD;
    if constexpr (forward ? Elementwise<F> : ElementwiseGradient<F>) {
        using Number = FormulaType<First, T...>;
        constexpr bool mixed = has_bool(Row<First, T...>()) && sizeof(Number) > 1;
        if constexpr (forward) return &forward_elementwise<F, Number, isa, mixed>;
        else return &backward_elementwise<F, Number, isa, mixed>;
    } else if constexpr (forward && Update<F>) return &run_update<F, First, isa>;
    else return &run_by_hand<isa, ByHand<F, isa, phase, First, T...>>;
}
template <class F, class First, class... T>
constexpr Plan plan_of(int phase, Row<First, T...>) {
    if constexpr (ElementwiseGradient<F>) {
        if (phase == CATENA_PHASE_BACKWARD && n_inputs<F> != 1)
            return &plan_backward<FormulaType<First, T...>>;
    } else if constexpr (requires(const Call<F, Isa::baseline>& call, catena_plan& plan) {
                             F::template plan<First, T...>(call, plan);
                         }) {
        return &plan_by_hand<F, First, T...>;
    }
    return nullptr;
}

template <class F, class R, Isa isa, int phase>
constexpr catena_kernel kernel_of() {
    catena_kernel kernel = kernel_for<F>(phase, "cpu", R::dtypes);
    kernel.priority += static_cast<int>(isa);
    kernel.isa = isa_name(isa);
    kernel.plan = planner_of<F, plan_of<F>(phase, R())>();
    kernel.run = entry_of<F, run_of<F, isa, phase>(R())>();
    kernel.name = F::about.kernel_name != nullptr ? F::about.kernel_name
                  : Elementwise<F>                ? "formula"
                                                  : nullptr;
    return kernel;
}

// The kernel for float16 and bfloat16, which runs the kernel of R on float32 copies. isa is the
// instruction set of the conversion, and the highest one that the inner kernel may need.
template <class F, class R, Isa isa, int phase, Isa... own>
constexpr catena_kernel widened_kernel_of(IsaList<own...>) {
    constexpr Isa inner = std::max({(own <= isa ? own : Isa::baseline)...});
    catena_kernel kernel = kernel_of<F, R, inner, phase>();
    kernel.priority = F::about.priority + static_cast<int>(isa);
    kernel.isa = isa_name(isa);
    kernel.types = HalfRows<R, halves_of<F, R>()>::dtypes.data();
    kernel.n_types = 2;
    kernel.plan = planner_of<F, &plan_widened<plan_of<F>(phase, R())>>();
    kernel.run = entry_of<F, &run_widened<run_of<F, inner, phase>(R()), isa>>();
    kernel.name = "on float32 copies";
    return kernel;
}

// A function can select fewer instruction sets: `using isas = IsaList<...>`.
template <class F>
constexpr auto isas_of() {
    if constexpr (requires { typename F::isas; }) return typename F::isas();
    else return Isas();
}

template <class F, class R, int phase, Isa isa, Isa... own>
constexpr auto widened_kernels_of_isa(IsaList<own...> list) {
    if constexpr (((own <= isa) || ...))
        return std::array{widened_kernel_of<F, R, isa, phase>(list)};
    else return std::array<catena_kernel, 0>{};
}
// The kernels of a phase for the row itself, and widened ones for its halves.
template <class F, class R, int phase, Isa... own, Isa... half>
constexpr auto kernels_of_phase(IsaList<own...> list, IsaList<half...>) {
    if constexpr (has_kernel<F, phase>(R(), by_hand<F, Call<F, Isa::baseline>, phase>(R())))
        return joined<catena_kernel>(std::array{kernel_of<F, R, own, phase>()...},
                                     widened_kernels_of_isa<F, R, phase, half>(list)...);
    else return std::array<catena_kernel, 0>{};
}
template <class F, class R>
constexpr auto kernels_of_row() {
    // Integer kernels are few and simple: kernels for other instruction sets would only add size.
    using isas =
        std::conditional_t<has_floats(R()), decltype(isas_of<F>()), IsaList<Isa::baseline>>;
    constexpr bool widens = halves_of<F, R>() != 0 && !has_halves(types_of<F>());
    using halves = std::conditional_t<widens, Isas, IsaList<>>;
    return joined<catena_kernel>(kernels_of_phase<F, R, CATENA_PHASE_FORWARD>(isas(), halves()),
                                 kernels_of_phase<F, R, CATENA_PHASE_BACKWARD>(isas(), halves()));
}
template <class F, class... R>
constexpr auto kernels_of(Rows<R...>) {
    return joined<catena_kernel>(kernels_of_row<F, R>()...);
}

template <class F>
struct KernelTable {
    static constexpr auto kernels = kernels_of<F>(types_of<F>());
    static constexpr auto list = pointers<catena_kernel>(kernels);
};

#endif

// The functions that F provides: none if it only has kernels for another plugin's function.
template <class F>
constexpr auto functions_of() {
    if constexpr (F::about.kernels_alone) return std::array<const catena_function*, 0>{};
    else return std::array{&FunctionTable<F>::function};
}

}  // namespace detail
}  // namespace catena::plugin

#if defined(CATENA_CUDA)
#include "catena/plugin/cuda/kernels.cuh"
#endif

namespace catena::plugin {

template <class... F>
struct Plugin {
#if defined(CATENA_CUDA)  // the CPU plugin has the functions, this one has kernels for them
    static constexpr std::array<const catena_function*, 0> functions = {};
    static constexpr auto kernels =
        detail::joined<const catena_kernel*>(cuda::KernelTable<F>::list...);
    static constexpr auto extensions = [] {
        if constexpr (cuda::ManyTable<F...>::any)
            return std::array<const catena_extension*, 1>{&cuda::ManyTable<F...>::extension};
        else return std::array<const catena_extension*, 0>{};
    }();
    static constexpr const char* devices = "cuda";
#else
    static constexpr auto functions =
        detail::joined<const catena_function*>(detail::functions_of<F>()...);
#if defined(CATENA_DESCRIPTIONS)  // a module that only describes
    static constexpr std::array<const catena_kernel*, 0> kernels = {};
#else
    static constexpr auto kernels =
        detail::joined<const catena_kernel*>(detail::KernelTable<F>::list...);
#endif
    static constexpr std::array<const catena_extension*, 0> extensions = {};
    static constexpr const char* devices = "cpu";
#endif
    static constexpr Contents contents = {functions, kernels, {}, extensions};
    static constexpr catena_plugin table = table_of(contents);
};

namespace detail {
// Returns the table of all translation units, which lives as long as the module. A function that
// two units list is in it once. Throws std::bad_alloc.
const catena_plugin& table_of(const Contents* const* begin, const Contents* const* end);
}  // namespace detail

}  // namespace catena::plugin

// CATENA_PLUGIN("org.example.id", "1.0.0", Function...): the two symbols that a plugin exports.
// Use it once in a plugin, at file scope. A plugin of several translation units has CATENA_PLUGIN
// without functions in one of them, and CATENA_FUNCTIONS(Function...) in each that describes some.
#define CATENA_PLUGIN(id, version, ...) \
    CATENA_PLUGIN_PARTS##__VA_OPT__(_NAMED)(id, version __VA_OPT__(, ) __VA_ARGS__)
#define CATENA_PLUGIN_PARTS_NAMED(id, version, ...)                                     \
    CATENA_EXPORT_PLUGIN(id, version, (::catena::plugin::Plugin<__VA_ARGS__>::devices), \
                         (::catena::plugin::Plugin<__VA_ARGS__>::table))
// The linker joins the pointers to the parts into one array.
#define CATENA_PLUGIN_PARTS(id, version)                                                         \
    extern "C" {                                                                                 \
    extern __attribute__((weak)) const ::catena::plugin::Contents* const __start_catena_parts[]; \
    extern __attribute__((weak)) const ::catena::plugin::Contents* const __stop_catena_parts[];  \
    }                                                                                            \
    CATENA_EXPORT_PLUGIN(                                                                        \
        id, version, ::catena::plugin::Plugin<>::devices,                                        \
        ::catena::plugin::detail::table_of(__start_catena_parts, __stop_catena_parts))
// A .cu file lists its functions in CATENA_PLUGIN, after the specializations of Kernels<F>.
#if defined(CATENA_CUDA)
#define CATENA_FUNCTIONS(...) static_assert(true)
#else
#define CATENA_FUNCTIONS(...) CATENA_FUNCTIONS_AT(__COUNTER__, __VA_ARGS__)
#define CATENA_FUNCTIONS_AT(n, ...) CATENA_FUNCTIONS_IN(n, __VA_ARGS__)
#define CATENA_FUNCTIONS_IN(n, ...)                                                               \
    __attribute__((section("catena_parts"), used)) static constexpr const auto* catena_part_##n = \
        &::catena::plugin::Plugin<__VA_ARGS__>::contents;                                         \
    static_assert(true)
#endif
