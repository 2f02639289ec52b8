// A call of a function in words, as in catena_function.examples: "x=(2,3)[0.5,2] axis=1"; its
// attributes, and the ways in which it fails. Needs no World: other hosts' tests may include it.
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
struct NoKernel : Failure {  // for these dtypes, or none that supports() the call
    using Failure::Failure;
};
// No error of the call: an exception left a piece of parallel_for(), say.
struct Violation : Failure {
    using Failure::Failure;
};
struct OutOfBounds : Violation {  // a kernel wrote beside its memory
    using Violation::Violation;
};
struct InputChanged : Violation {  // a kernel wrote what it may only read
    using Violation::Violation;
};

using Attrs = std::vector<catena_named_value>;  // lists and strings stay the caller's

// Copies share what they own, which does not change.
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
// As hosts do where nothing is lost: 2 to 2.0 and 2.0 to 2.
catena_value converted(const catena_attr_spec& spec, catena_value v);
// Why a value is not of the schema's kind, range and choices, in a host's words; empty: it is.
std::string refused(const catena_attr_spec& spec, const catena_value& v);
// A value in words: lists in brackets with `comma` between the numbers, strings in `quote`.
std::string text_of(const catena_value& v, const char* comma, char quote);
}  // namespace detail

// Shapes, the range of values for each input, and attributes. Text and numbers are apart, so that
// tests can derive other calls from it.
struct Example {
    struct Input {
        bool present = false;
        Dims shape = {};
        bool ranged = false;
        double low = -1;
        double high = 1;
    };
    std::vector<Input> inputs;  // at least one for each port, missing ones included
    OwnedAttrs attrs;
};

// Throws a Failure that says where the text is wrong.
Example parse_example(const catena_function& f, const std::string& text);
std::string text_of(const catena_function& f, const Example& e);

}  // namespace catena::testing
