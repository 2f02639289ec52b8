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

    // Computes the outputs. The current device is that of the inputs, and calls in forward record
    // no graph. Outputs may be inputs or views of them. By default it calls forward_gpu() if an
    // input is on a GPU, else forward_cpu(); these throw UnsupportedError unless overridden.
    virtual Arrays forward(ArraySpan inputs);
    virtual Arrays forward_cpu(ArraySpan inputs);
    virtual Arrays forward_gpu(ArraySpan inputs);

    // N arrays or variables for a structured binding. Throws InvalidError if there are not N.
    template <std::size_t N, class List>
    auto unpack(const List& values) const {
        if (values.size() != N) throw_count("unpack", N, values.size());
        return catena::unpack<N>(values);
    }
    // Throws InvalidError: "[label] what: expected .., got ..".
    [[noreturn]] void throw_count(const char* what, std::size_t expected, std::size_t got) const;

    // Whether any array is on a GPU, as in cuda::is_gpu(). An empty array (a missing input) is not.
    static bool any_on_gpu(ArraySpan arrays);
};

}  // namespace catena
