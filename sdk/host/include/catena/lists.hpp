// Lists of arrays and variables, as types and as arguments.
#pragma once

#include <catena/core/variable.hpp>

namespace catena {

// Arguments and results of FunctionNode and Function. Targets are indexes of inputs.
using Arrays = std::vector<Array>;
using Variables = std::vector<Variable>;
using ArraySpan = std::span<const Array>;
using VariableSpan = std::span<const Variable>;
using Targets = std::span<const std::size_t>;

// Any number of variables or arrays as an argument: F::concat({a, b}). A single array is a list
// too. Non-owning, valid for the call only.
template <class T>
class ListOf {
public:
    ListOf(std::initializer_list<T> values) : view_(values.begin(), values.size()) {}
    ListOf(std::span<const T> values) : view_(values) {}     // NOLINT: is a list
    ListOf(const std::vector<T>& values) : view_(values) {}  // NOLINT: is a list
    ListOf(const Array& value) requires(std::same_as<T, Array>)
        : view_(&value, 1) {}  // NOLINT: is a list
    template <std::size_t N>
    ListOf(const std::array<T, N>& values) : view_(values) {}  // NOLINT: is a list

    std::span<const T> view() const { return view_; }
    // A call's inputs, variables by address: those of the function's first ports, then these.
    using Input = std::conditional_t<std::same_as<T, Array>, Array, const T*>;
    auto after(std::initializer_list<Input> first) const {
        SmallVector<Input, 16> inputs(first);
        for (const T& value : view_) {
            if constexpr (std::same_as<T, Array>) inputs.push_back(value);
            else inputs.push_back(&value);
        }
        return inputs;
    }

private:
    std::span<const T> view_;
};
using VariableList = ListOf<Variable>;
using ArrayList = ListOf<Array>;

// Throws InvalidError: "[where] what: expected .., got ..".
[[noreturn]] void throw_count(const char* where, std::size_t expected, std::size_t got);

// The N values of a list, for a structured binding: const auto [c, h] = unpack<2>(f({&x, &y})).
// Throws InvalidError if there are not N.
template <std::size_t N, class List>
auto unpack(const List& values) {
    if (values.size() != N) throw_count("unpack", N, values.size());
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::array<std::remove_cvref_t<decltype(values[0])>, N>{values[I]...};
    }
    (std::make_index_sequence<N>());
}

}  // namespace catena
