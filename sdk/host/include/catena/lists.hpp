// Lists of arrays and variables, as types and as arguments.
#pragma once

#include <catena/core/memory.hpp>
#include <catena/core/variable.hpp>

#include <array>

namespace catena {

// The arguments and results of forward() and backward() of FunctionNode and Function. Targets are
// indexes of inputs.
using Arrays = std::vector<Array>;
using Variables = std::vector<Variable>;
using ArraySpan = std::span<const Array>;
using VariableSpan = std::span<const Variable>;
using Targets = std::span<const std::size_t>;

// Any number of variables as an argument: F::concat({a, b}). Non-owning, valid for the call only.
class VariableList {
public:
    VariableList(std::initializer_list<Variable> values) : view_(values.begin(), values.size()) {}
    VariableList(VariableSpan values) : view_(values) {}      // NOLINT: is a list
    VariableList(const Variables& values) : view_(values) {}  // NOLINT: is a list

    VariableSpan view() const { return view_; }
    // The inputs of a call: the variables of the function's first ports, followed by these.
    auto after(std::initializer_list<const Variable*> first) const {
        SmallVector<const Variable*, 16> pointers(first);
        for (const Variable& variable : view_) pointers.push_back(&variable);
        return pointers;
    }

private:
    VariableSpan view_;
};

// The same for arrays. A single array is a list too.
class ArrayList {
public:
    ArrayList(std::initializer_list<Array> values) : view_(values.begin(), values.size()) {}
    ArrayList(ArraySpan values) : view_(values) {}       // NOLINT: is a list
    ArrayList(const Arrays& values) : view_(values) {}   // NOLINT: is a list
    ArrayList(const Array& value) : view_(&value, 1) {}  // NOLINT: is a list
    template <std::size_t N>
    ArrayList(const std::array<Array, N>& values) : view_(values) {}  // NOLINT: is a list

    ArraySpan view() const { return view_; }
    auto after(std::initializer_list<Array> first) const {
        SmallVector<Array, 8> arrays(first);
        arrays.append(view_.begin(), view_.end());
        return arrays;
    }

private:
    ArraySpan view_;
};

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
