// A call of a function as text, as in catena_function.examples: "x=(2,3)[0.5,2] axis=1"; its
// attributes and its errors. Does not need a World, so tests of other hosts can include it.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "catena/testing/array.hpp"

namespace catena::testing {

// A call that failed: its status and the kernel's text.
class Failure : public std::runtime_error {
public:
    Failure(catena_status status, const std::string& text)
        : std::runtime_error(text), status_(status) {}
    catena_status status() const { return status_; }

private:
    catena_status status_;
};
struct NoKernel : Failure {  // no kernel has these dtypes or supports the call
    using Failure::Failure;
};
// A violation of the rules for kernels: for example, an exception left a piece of parallel_for().
struct Violation : Failure {
    using Failure::Failure;
};
struct OutOfBounds : Violation {  // a kernel wrote outside its memory
    using Violation::Violation;
};
struct InputChanged : Violation {  // a kernel wrote to read-only memory
    using Violation::Violation;
};

using Attrs = std::vector<catena_named_value>;  // the caller owns lists and strings

// Attributes with their own lists and strings. Copies share these, which do not change.
class OwnedAttrs {
public:
    OwnedAttrs() = default;
    explicit OwnedAttrs(const Attrs& attrs) {
        for (const catena_named_value& a : attrs) set(a.name, a.value);
    }
    const Attrs& list() const { return list_; }
    const catena_value* find(const std::string& name) const;
    void set(const std::string& name, const catena_value& value);

private:
    template <class T>
    const T* keep(const T* from, std::size_t n);

    Attrs list_;
    std::vector<std::shared_ptr<const void>> kept_;
};

namespace detail {
// Converts a value to the schema's kind if nothing is lost, as hosts do: 2 to 2.0, 2.0 to 2.
catena_value converted(const catena_attr_spec& spec, catena_value v);
// Returns a host's message if a value violates the schema's kind, range or choices; else empty.
std::string refused(const catena_attr_spec& spec, const catena_value& v);
// Returns a value as text: lists in brackets with `comma` between numbers, strings in `quote`.
std::string text_of(const catena_value& v, const char* comma, char quote);
}  // namespace detail

// A call: shapes, the range of values or the elements of each input, and attributes. It is separate
// from the text and from arrays of numbers, so that tests can derive other calls from it.
struct Example {
    struct Input {
        bool present = false;
        Dims shape = {};
        bool ranged = false;
        double low = -1;
        double high = 1;
        std::vector<std::int64_t> elements = {};  // of an integer input; empty: any numbers
    };
    std::vector<Input> inputs;  // at least one for each port, missing ones included
    OwnedAttrs attrs;
};

// Throws a Failure that says where the text is wrong.
Example parse_example(const catena_function& f, const std::string& text);
std::string text_of(const catena_function& f, const Example& e);

}  // namespace catena::testing
