// Attributes for a call, with their own copies of lists and strings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "catena/plugin/describe.hpp"

namespace catena::testing {

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

}  // namespace catena::testing
