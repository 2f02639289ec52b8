// Elementwise functions and updates on CUDA: their formulas as operations.
#pragma once

#include "catena/plugin/cuda/reduce.cuh"
#include "catena/plugin/update.hpp"

namespace catena::plugin::cuda {

namespace detail {

// Returns the number of a type variable; they are numbered in the order of first use by inputs. One
// of an output alone is the last.
template <class F>
consteval std::size_t type_index(std::string_view name) {
    std::array<std::string_view, n_inputs<F> + 1> known;
    auto end = known.begin();
    for (const Port& input : F::about.inputs)
        if (std::find(known.begin(), end, input.type_var) == end) *end++ = input.type_var;
    return static_cast<std::size_t>(std::find(known.begin(), end, name) - known.begin());
}
// The type of an input or an output. T: the types of the type variables.
template <class F, std::size_t input, class... T>
using InputType =
    std::tuple_element_t<type_index<F>(F::about.inputs[input].type_var), std::tuple<T...>>;
template <class F, class... T>
using OutputType =
    std::tuple_element_t<type_index<F>(F::about.outputs[0].type_var), std::tuple<T...>>;
template <class F, class... T, std::size_t... I>
Types<InputType<F, I, T...>...> input_types(std::index_sequence<I...>);
template <class F, class... T>
using InputTypes = decltype(input_types<F, T...>(std::make_index_sequence<n_inputs<F>>()));
template <class... A, class... B>
Types<A..., B...> operator+(Types<A...>, Types<B...>);

// Inputs: x.
template <class F, class... T>
struct Forward : Operation<InputTypes<F, T...>, Types<OutputType<F, T...>>,
                           Compute<FormulaType<T...>>, (n_inputs<F> > 1)> {
    using Value = Compute<FormulaType<T...>>;
    __device__ __forceinline__ void operator()(const Value* x, Value* y) const {
        y[0] = call(x, std::make_index_sequence<n_inputs<F>>(),
                    std::make_index_sequence<n_attributes<F>>());
    }
    template <std::size_t... X, std::size_t... A>
    __device__ __forceinline__ Value call(const Value* x, std::index_sequence<X...>,
                                          std::index_sequence<A...>) const {
        return F::template forward<Value>(x[X]..., attributes.data()[A]...);
    }
    std::array<Value, n_attributes<F> + 1> attributes;
};

// Inputs: gy, x, y, without data if the formula does not use them. Outputs: the gradients of x;
// bool inputs have none. Only x can be broadcast: gy and y have the shape of the elements.
template <class F, class... T>
struct Backward : Operation<decltype(Types<OutputType<F, T...>>() + InputTypes<F, T...>() +
                                     Types<OutputType<F, T...>>()),
                            InputTypes<F, T...>, Compute<FormulaType<T...>>,
                            (n_inputs<F> > 1 && retained_by_formula<F>().x != 0)> {
    using Value = Compute<FormulaType<T...>>;
    __device__ __forceinline__ void operator()(const Value* in, Value* out) const {
        const auto g = gradient_of<F, Value>(in[0], in + 1, in[1 + n_inputs<F>], attributes.data());
        CATENA_UNROLL
        for (std::size_t k = 0; k < n_inputs<F>; ++k) out[k] = g.values[k];
    }
    std::array<Value, n_attributes<F> + 1> attributes;
};

inline Operand operand(const catena_tensor* t, bool used = true) {
    // A tensor without data, in plan() or without elements, still counts as present.
    static const char nothing = 0;
    if (t == nullptr || !used) return {};
    const void* const data = data_of<const char>(*t);
    return {data != nullptr ? data : &nothing, shape_of(*t)};
}
inline Result result(const catena_tensor* t, std::int32_t req = CATENA_REQ_WRITE) {
    if (t == nullptr) return {};
    return {data_of<char>(*t), req == CATENA_REQ_ADD};
}

}  // namespace detail

// T: the types of the type variables.
template <class F, class... T>
void forward_formula(const Queue& queue, const catena_call& call) {
    using Op = detail::Forward<F, T...>;
    Operand in[n_inputs<F>];
    for (std::size_t i = 0; i < n_inputs<F>; ++i) in[i] = detail::operand(call.x[i]);
    map(queue, Op{{}, formula_attributes<F, typename Op::Value>(call.attrs)}, shape_of(*call.y[0]),
        in, {detail::result(call.y[0], call.req[0])});
}
// One launch computes the gradients of all inputs with the output's shape. Each gradient of an
// input that was broadcast is computed by a sum of its own.
template <class F, class... T>
void backward_formula(const Queue& queue, const catena_call& call) {
    using Op = detail::Backward<F, T...>;
    constexpr std::size_t n = n_inputs<F>;
    constexpr Retained retained = retained_by_formula<F>();
    const Op op{{}, formula_attributes<F, typename Op::Value>(call.attrs)};
    const Shape shape = shape_of(*call.gy[0]);
    Operand in[n + 2] = {detail::operand(call.gy[0])};
    for (std::size_t i = 0; i < n; ++i)
        in[1 + i] = detail::operand(call.x[i], (retained.x >> i & 1) != 0);
    in[1 + n] = detail::operand(call.y[0], retained.y != 0);
    Result out[n];
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
        const catena_tensor* gx = call.gx[i];
        if (gx == nullptr) continue;
        const Result to = detail::result(gx, call.req[i]);
        if constexpr (n > 1)
            if (!same_shape(*gx, *call.gy[0])) {
                sum(queue, op, shape, in, static_cast<int>(i), Repeats{shape, shape_of(*gx)},
                    static_cast<FormulaType<T...>*>(to.data), to.add, call.scratch);
                continue;
            }
        out[i] = to;
        any = true;
    }
    if (any) map(queue, op, shape, in, out);
}
template <class F, class... T>
void plan_backward_formula(const catena_call& call, catena_plan& plan) {
    if (call.gy[0] == nullptr) return;
    const Shape shape = shape_of(*call.gy[0]);
    for (std::size_t i = 0; i < n_inputs<F>; ++i) {
        const catena_tensor* gx = call.gx[i];
        if (gx == nullptr || same_shape(*gx, *call.gy[0])) continue;
        plan.scratch_bytes = std::max(
            plan.scratch_bytes,
            sum_scratch(detail::Backward<F, T...>(), shape, Repeats{shape, shape_of(*gx)}));
    }
}

namespace detail {

// All ports are inputs and outputs of the operation; ports that are not mutated are not written.
template <class F, class Index, class... T>
struct UpdateOp;
template <class F, std::size_t... X, class... T>
struct UpdateOp<F, std::index_sequence<X...>, T...> {
    using In = Types<InputType<F, X, T...>...>;
    using Out = In;
    using Value = Compute<std::tuple_element_t<0, std::tuple<T...>>>;
    static constexpr bool walks = false;

    __device__ __forceinline__ void operator()(const Value* x, Value* y) const {
        ((y[X] = x[X]), ...);
        plugin::detail::update_element<F, Value>(y, constants, std::index_sequence<X...>());
    }
    update_constants<F, Value> constants;
};

}  // namespace detail

// T: the types of the type variables.
template <class F, class... T>
using UpdateOf = detail::UpdateOp<F, std::make_index_sequence<n_inputs<F>>, T...>;

template <class F, class... T>
void update_formula(const Queue& queue, const catena_call& call) {
    const auto run = [&]<std::size_t... X>(std::index_sequence<X...>) {
        using Op = detail::UpdateOp<F, std::index_sequence<X...>, T...>;
        const Operand in[] = {detail::operand(call.x[X])...};
        const Result out[] = {(mutated_ports<F>() >> X & 1) != 0 ? detail::result(call.x[X])
                                                                 : Result()...};
        map(queue, Op{constants_of<F, typename Op::Value>(call.attrs)}, shape_of(*call.x[0]),
            &in[0], &out[0]);
    };
    with_inputs<F>(call, run);
}

}  // namespace catena::plugin::cuda
