// Elementwise functions and updates on CUDA: their formulas as operations.
#pragma once

#include "catena/plugin/cuda/reduce.cuh"
#include "catena/plugin/update.hpp"

namespace catena::plugin::cuda {

namespace detail {

template <class T, class Index>
struct RepeatedOf;
template <class T, std::size_t... I>
struct RepeatedOf<T, std::index_sequence<I...>> {
    template <std::size_t>
    using One = T;
    using type = Types<One<I>...>;
};
// Types<T, T, ...>
template <class T, std::size_t n>
using Repeated = typename RepeatedOf<T, std::make_index_sequence<n>>::type;

template <class F, class C>
struct Attributes {
    C item[n_attributes<F> + 1];
};
template <class F, class C>
Attributes<F, C> attributes_of(const catena_value* attrs) {
    const auto values = formula_attributes<F, C>(attrs);
    Attributes<F, C> list;
    std::copy(values.begin(), values.end(), list.item);
    return list;
}

// Inputs: x.
template <class F, class T>
struct Forward {
    using In = Repeated<T, n_inputs<F>>;
    using Out = Types<T>;
    using Value = Compute<T>;
    static constexpr bool walks = n_inputs<F> > 1;

    __device__ __forceinline__ void operator()(const Value* x, Value* y) const {
        y[0] = call(x, std::make_index_sequence<n_inputs<F>>(),
                    std::make_index_sequence<n_attributes<F>>());
    }
    template <std::size_t... X, std::size_t... A>
    __device__ __forceinline__ Value call(const Value* x, std::index_sequence<X...>,
                                          std::index_sequence<A...>) const {
        return F::template forward<Value>(x[X]..., attributes.item[A]...);
    }
    Attributes<F, Value> attributes;
};

// Inputs: gy, x, y; what the formula does not use is not there. Outputs: the gradients of x.
template <class F, class T>
struct Backward {
    using In = Repeated<T, n_inputs<F> + 2>;
    using Out = Repeated<T, n_inputs<F>>;
    using Value = Compute<T>;
    static constexpr bool walks = n_inputs<F> > 1;

    __device__ __forceinline__ void operator()(const Value* in, Value* out) const {
        const auto g = gradient_of<F, Value>(in[0], in + 1, in[1 + n_inputs<F>], attributes.item);
        CATENA_UNROLL
        for (std::size_t k = 0; k < n_inputs<F>; ++k) out[k] = g.values[k];
    }
    Attributes<F, Value> attributes;
};

inline Operand operand(const catena_tensor* t, bool used = true) {
    // Without data: in plan(), or without elements. It is there all the same.
    static const char nothing = 0;
    if (t == nullptr || !used) return {};
    const void* const data = data_of<const char>(*t);
    return {data != nullptr ? data : &nothing, shape_of(*t)};
}
inline Result result(const catena_tensor* t, std::int32_t req = CATENA_REQ_WRITE) {
    if (t == nullptr) return {};
    return {data_of<char>(*t), req == CATENA_REQ_ADD};
}
inline std::size_t bytes_of(const catena_tensor& t) {
    return static_cast<std::size_t>(size_of(t)) * (t.dl.dtype.bits / 8);
}

template <int n, std::size_t bytes>
[[gnu::noinline]] void run_forward(const Queue& queue, const MapKernels<n, 1, bytes>& kernels,
                                   const void* op, const catena_call& call) {
    Operand in[n];
    for (int i = 0; i < n; ++i) in[i] = operand(call.x[i]);
    const Result out[] = {result(call.y[0], call.req[0])};
    map_ports(queue, kernels, op, shape_of(*call.y[0]), in, out);
}
// Gradients of inputs with the output's shape come from one launch, those of inputs that were
// repeated from a sum each.
template <int inputs, int n, std::size_t bytes>
[[gnu::noinline]] void run_backward(const Queue& queue, const MapKernels<inputs, n, bytes>& kernels,
                                    const SumKernels<inputs, n, bytes>& sums, const void* op,
                                    Retained retained, const catena_call& call) {
    if (call.gy[0] == nullptr) {
        for (int i = 0; i < n; ++i)
            if (const catena_tensor* gx = call.gx[i];
                gx != nullptr && call.req[i] == CATENA_REQ_WRITE)
                queue.zero(data_of<char>(*gx), bytes_of(*gx));
        return;
    }
    const Shape shape = shape_of(*call.gy[0]);
    Operand in[n + 2] = {operand(call.gy[0])};
    for (int i = 0; i < n; ++i) in[1 + i] = operand(call.x[i], (retained.x >> i & 1) != 0);
    in[1 + n] = operand(call.y[0], retained.y != 0);
    Result out[n];
    bool any = false;
    for (int i = 0; i < n; ++i) {
        const catena_tensor* gx = call.gx[i];
        if (gx == nullptr) continue;
        if (sums.walks && !same_shape(*gx, *call.gy[0])) {
            sum_ports(queue, sums, op, shape, in, i, Axes(shape, Repeats{shape, shape_of(*gx)}),
                      result(gx, call.req[i]), call.scratch);
            continue;
        }
        out[i] = result(gx, call.req[i]);
        any = true;
    }
    if (any) map_ports(queue, kernels, op, shape, in, out);
}
template <int n>
[[gnu::noinline]] void plan_backward(const catena_call& call, std::size_t sum_size,
                                     catena_plan& plan) {
    if (call.gy[0] == nullptr) return;
    const Shape shape = shape_of(*call.gy[0]);
    for (int i = 0; i < n; ++i) {
        const catena_tensor* gx = call.gx[i];
        if (gx == nullptr || same_shape(*gx, *call.gy[0])) continue;
        plan.scratch_bytes = std::max(
            plan.scratch_bytes, partial_bytes(shape, Repeats{shape, shape_of(*gx)}, sum_size));
    }
}
}  // namespace detail

template <class F, class T>
void forward_formula(const Queue& queue, const catena_call& call) {
    using Op = detail::Forward<F, T>;
    const Op op{detail::attributes_of<F, Compute<T>>(call.attrs)};
    detail::run_forward(queue, detail::map_kernels<Op>, &op, call);
}
template <class F, class T>
void backward_formula(const Queue& queue, const catena_call& call) {
    using Op = detail::Backward<F, T>;
    const Op op{detail::attributes_of<F, Compute<T>>(call.attrs)};
    constexpr auto sums = [] {
        if constexpr (Op::walks) return detail::sum_kernels<Op, T>;
        else return detail::ParametersOf<detail::SumKernels, Op>();
    }();
    detail::run_backward(queue, detail::map_kernels<Op>, sums, &op, retained_by_formula<F>(), call);
}
template <class F, class T>
void plan_backward_formula(const catena_call& call, catena_plan& plan) {
    using Op = detail::Backward<F, T>;
    detail::plan_backward<static_cast<int>(n_inputs<F>)>(call, sizeof(typename Op::Value), plan);
}

namespace detail {

// The type of a port: that of its type variable, which are numbered as they appear.
template <class F>
consteval std::size_t type_index(std::size_t port) {
    const auto first = [](std::size_t i) {
        for (std::size_t k = 0; k < i; ++k)
            if (std::string_view(F::about.inputs[k].type) == F::about.inputs[i].type) return k;
        return i;
    };
    std::size_t index = 0;
    for (std::size_t k = 0; k < first(port); ++k) index += first(k) == k;
    return index;
}
template <class F>
constexpr bool is_mutated(std::size_t port) {
    return (F::about.inputs[port].flags & CATENA_PORT_MUTATED) != 0;
}
template <class F>
consteval std::uint64_t mutated_ports() {
    std::uint64_t set = 0;
    for (std::size_t i = 0; i < n_inputs<F>; ++i) set |= std::uint64_t{is_mutated<F>(i)} << i;
    return set;
}
template <class F>
consteval std::uint64_t single_ports() {
    if constexpr (requires { F::single_x; }) return F::single_x;
    else return 0;
}
template <std::size_t i, class First, class... T>
struct Nth {
    using type = typename Nth<i - 1, T...>::type;
};
template <class First, class... T>
struct Nth<0, First, T...> {
    using type = First;
};

template <class F, class C>
auto constants_of(const catena_value* attrs) {
    if constexpr (requires { F::template prepare<C>; }) {
        const auto values = formula_attributes<F, double>(attrs);
        return [&]<std::size_t... A>(std::index_sequence<A...>) {
            return F::template prepare<C>(values[A]...);
        }
        (std::make_index_sequence<n_attributes<F>>());
    } else {
        return attributes_of<F, C>(attrs);
    }
}

// All ports are outputs as well; those that are not mutated are not written.
template <class F, class Index, class... T>
struct UpdateOp;
template <class F, std::size_t... X, class... T>
struct UpdateOp<F, std::index_sequence<X...>, T...> {
    using In = Types<typename Nth<type_index<F>(X), T...>::type...>;
    using Out = In;
    using Value = Compute<typename Nth<0, T...>::type>;
    static constexpr bool walks = false;

    __device__ __forceinline__ void operator()(const Value* x, Value* y) const {
        Value v[] = {x[X]...};
        if constexpr (requires { F::template update<Value>(v[X]..., constants); })
            F::template update<Value>(v[X]..., constants);
        else with_attributes(v, std::make_index_sequence<n_attributes<F>>());
        ((y[X] = v[X]), ...);
    }
    template <std::size_t... A>
    __device__ __forceinline__ void with_attributes(Value (&v)[sizeof...(X)],
                                                    std::index_sequence<A...>) const {
        F::template update<Value>(v[X]..., constants.item[A]...);
    }
    decltype(constants_of<F, Value>(nullptr)) constants;
};

}  // namespace detail

// T: the types of the type variables.
template <class F, class... T>
using UpdateOf = detail::UpdateOp<F, std::make_index_sequence<n_inputs<F>>, T...>;

template <class F, class... T>
void update_formula(const Queue& queue, const catena_call& call) {
    using Op = UpdateOf<F, T...>;
    Operand in[n_inputs<F>];
    Result out[n_inputs<F>];
    for (std::size_t i = 0; i < n_inputs<F>; ++i) {
        in[i] = detail::operand(call.x[i]);
        if (detail::is_mutated<F>(i)) out[i] = detail::result(call.x[i]);
    }
    map(queue, Op{detail::constants_of<F, typename Op::Value>(call.attrs)}, shape_of(*call.x[0]),
        in, out);
}

}  // namespace catena::plugin::cuda
