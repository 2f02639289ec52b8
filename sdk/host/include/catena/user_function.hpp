// UserFunction: what functions that a program defines have in common.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena {

class UserFunction {
public:
    virtual ~UserFunction() = default;

    // For messages; the name of the class unless overridden.
    virtual std::string label() const;

protected:
    UserFunction() = default;
    UserFunction(const UserFunction&) = default;
    UserFunction& operator=(const UserFunction&) = default;

    // N arrays or variables, for a structured binding. Throws InvalidError if there are not N.
    template <std::size_t N, class T>
    std::array<T, N> unpack(std::span<const T> values) const {
        if (values.size() != N) throw_count(N, values.size());
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return std::array<T, N>{values[I]...};
        }
        (std::make_index_sequence<N>());
    }
    template <std::size_t N, class T>
    std::array<T, N> unpack(const std::vector<T>& values) const {
        return unpack<N>(std::span<const T>(values));
    }

private:
    [[noreturn]] void throw_count(std::size_t expected, std::size_t got) const;
};

}  // namespace catena
