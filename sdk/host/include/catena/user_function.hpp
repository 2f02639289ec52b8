// UserFunction: the common base of functions that a program defines.
#pragma once

#include <catena/lists.hpp>

namespace catena {

class UserFunction {
public:
    virtual ~UserFunction() = default;

    // The name in messages; by default the name of the class.
    virtual std::string label() const;

protected:
    UserFunction() = default;
    UserFunction(const UserFunction&) = default;
    UserFunction& operator=(const UserFunction&) = default;

    // N arrays or variables as a std::array, for a structured binding. Throws InvalidError if there
    // are not N.
    template <std::size_t N, class List>
    auto unpack(const List& values) const {
        if (values.size() != N) throw_count("unpack", N, values.size());
        return catena::unpack<N>(values);
    }
    // Throws InvalidError: "[label] what: expected .., got ..".
    [[noreturn]] void throw_count(const char* what, std::size_t expected, std::size_t got) const;

    // Whether one of the arrays is on a GPU, as in cuda::is_gpu(). An empty array, which is a
    // missing input, is not. If so, forward() and backward() call forward_gpu() and backward_gpu(),
    // else forward_cpu() and backward_cpu().
    static bool any_on_gpu(ArraySpan arrays);
    // Throws UnsupportedError with the message that the class has no forward_WHERE().
    [[noreturn]] void throw_missing(const char* where) const;
};

}  // namespace catena
