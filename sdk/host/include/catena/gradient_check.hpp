// Gradient checks: compare computed gradients with numerical ones.
#pragma once

#include <catena/core/error.hpp>
#include <catena/lists.hpp>

#include <optional>

namespace catena::gradient_check {

// A failed check. The message contains all numbers.
class CheckError : public Error {
public:
    explicit CheckError(const std::string& text) : Error(text, CATENA_E_VALUE) {}
};

// Throws CheckError unless |actual - expected| <= atol + rtol * |expected| for all elements, for
// any devices and dtypes. NaN equals NaN. The message names the worst element; verbose adds all.
void assert_allclose(const Array& actual, const Array& expected, double atol = 1e-5,
                     double rtol = 1e-4, bool verbose = true);

// The values around a point show that the function is not differentiable there.
class NondifferentiableError : public Error {
public:
    explicit NondifferentiableError(const std::string& text) : Error(text, CATENA_E_VALUE) {}
};

struct NumericalOptions {
    double eps = 1e-3;
    // Evaluates at five points, 0, +-eps / 2 and +-eps, instead of two. Throws
    // NondifferentiableError if an output is finite at only some of them, or the root mean square
    // residual of a fitted parabola exceeds diff_atol + diff_rtol * (largest - smallest output).
    bool detect_nondifferentiable = false;
    double diff_atol = 0;
    double diff_rtol = 1e-2;
};

namespace detail {
// One value, or several as a list.
template <class T, class Result>
std::vector<T> as_list(Result&& result) {
    if constexpr (std::convertible_to<Result, std::vector<T>>) return std::forward<Result>(result);
    else if constexpr (std::convertible_to<Result, T>) return {std::forward<Result>(result)};
    else return std::vector<T>(result.begin(), result.end());
}
}  // namespace detail

// The function to differentiate: computes one or several Arrays from arrays that it captures.
class ArrayExpression {
public:
    template <std::invocable F>
        requires(!std::same_as<std::remove_cvref_t<F>, ArrayExpression>)
    ArrayExpression(F&& f)  // NOLINT: any such function
        : call_([f = std::forward<F>(f)]() mutable { return detail::as_list<Array>(f()); }) {}

    Arrays operator()() const { return call_(); }

private:
    std::function<Arrays()> call_;
};

// Gradients of sum_j sum(gy[j] * f()[j]) with respect to inputs, by central differences, computed
// in float64 and returned in the inputs' dtypes. f must read the inputs, whose elements are changed
// in place one at a time and always restored. A gy of one element applies to all elements of its
// output; an empty one is zero. Throws InvalidError unless eps > 0, DtypeError for inputs that are
// not floating, ShapeError if outputs and grad_outputs do not match.
//
//     const auto [gx] = unpack<1>(numerical_grad([&] { return x * x; }, x, gy));
Arrays numerical_grad(const ArrayExpression& f, const ArrayList& inputs,
                      const ArrayList& grad_outputs, const NumericalOptions& options);
inline Arrays numerical_grad(const ArrayExpression& f, const ArrayList& inputs,
                             const ArrayList& grad_outputs, double eps = 1e-3) {
    return numerical_grad(f, inputs, grad_outputs, NumericalOptions{.eps = eps});
}

// The function to check. It computes one or several Variables from inputs, which it takes as one
// list of type Variables or as separate arguments. It may capture parameters:
//
//     check_backward([](const Variable& x) { return F::relu(x); }, x, gy);
//     check_backward([](const Variable& x, const Variable& y) { return x * y; }, {x, y}, gy);
class VariableFunction {
public:
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, VariableFunction>)
    VariableFunction(F&& f)  // NOLINT: any such function
        : call_([f = std::forward<F>(f)](const Variables& x) mutable {
              if constexpr (std::invocable<decltype(f)&, const Variables&>) {
                  return detail::as_list<Variable>(f(x));
              } else {
                  return call<1>(f, x);
              }
          }) {}

    Variables operator()(const Variables& x) const { return call_(x); }

private:
    static constexpr std::size_t most_arguments = 8;

    // Calls f with as many arguments as there are inputs, N or more.
    template <std::size_t N, class F>
    static Variables call(F& f, const Variables& x) {
        if constexpr (N > most_arguments) {
            throw InvalidError("[gradient_check] function: expected one that takes " +
                               std::to_string(x.size()) + " variables, got another");
        } else {
            const auto go = [&]<std::size_t... I>(std::index_sequence<I...>)->Variables {
                if constexpr (std::invocable<F&, decltype(x[I])...>) {
                    if (x.size() == N) return detail::as_list<Variable>(f(x[I]...));
                }
                return call<N + 1>(f, x);
            };
            return go(std::make_index_sequence<N>());
        }
    }

    std::function<Variables(const Variables&)> call_;
};

struct Options {
    double eps = 1e-3;
    double atol = 1e-5;
    double rtol = 1e-4;
    std::vector<Variable> params = {};  // further variables on which the function depends
    std::vector<bool> no_grads = {};    // per input: must get no gradient; default: not floating
    std::optional<Dtype> dtype = {};    // floating inputs and params are converted to it first
    std::uint64_t seed = 0;             // for the direction
    bool detect_nondifferentiable = false;  // see NumericalOptions
    double diff_atol = 0;
    double diff_rtol = 1e-2;
};

// Compares derivatives along one random direction through all floating inputs and params, as
// Chainer 7 does: sum(gradient * direction) with the result of numerical_grad() along the
// direction, whose elements have a size of at least 0.1 / sqrt(n). y_grads has one array for each
// output; an empty one means 1, for an output of one element. Inputs are copied. At the end params
// have their old values and no gradient. Throws CheckError if the numbers differ or an input of
// no_grads got a gradient, ShapeError if outputs and y_grads do not match, NondifferentiableError
// if detection is on. The message contains inputs, y_grads, gradients, direction and both numbers.
void check_backward(const VariableFunction& function, const ArrayList& inputs,
                    const ArrayList& y_grads, const Options& options = {});

// check_backward() applied to the first gradient as a function of inputs and y_grads. x_grad_grads
// has an array for each floating input not in no_grads, then one for each of options.params.
void check_double_backward(const VariableFunction& function, const ArrayList& inputs,
                           const ArrayList& y_grads, const ArrayList& x_grad_grads,
                           const Options& options = {.atol = 1e-4, .rtol = 1e-3});

}  // namespace catena::gradient_check
