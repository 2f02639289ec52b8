// UserFunction: what functions that a program defines have in common.
#pragma once

#include <catena/lists.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
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
        if (values.size() != N) throw_count("unpack", N, values.size());
        return catena::unpack<N>(values);
    }
    template <std::size_t N, class T>
    std::array<T, N> unpack(const std::vector<T>& values) const {
        return unpack<N>(std::span<const T>(values));
    }
    // Throws InvalidError: "[label] what: expected .., got ..".
    [[noreturn]] void throw_count(const char* what, std::size_t expected, std::size_t got) const;

    // Whether one of the arrays is on a GPU, as cuda::is_gpu() says; an empty array, which stands for
    // a missing one, is not. If so, forward() and backward() call forward_gpu() and backward_gpu(),
    // else forward_cpu() and backward_cpu().
    static bool any_on_gpu(ArraySpan arrays);
    // Throws UnsupportedError, which says that the class has no forward_WHERE().
    [[noreturn]] void throw_missing(const char* where) const;
};

}  // namespace catena
