// Attributes for a call, with their own copies of lists and strings.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "catena/plugin/describe.hpp"

namespace catena::testing {

using Attrs = std::vector<catena_named_value>;  // lists and strings stay the caller's

// Copies share what they own, which nobody changes.
class OwnedAttrs {
public:
    OwnedAttrs() = default;
    explicit OwnedAttrs(const Attrs& attrs) {
        for (const catena_named_value& a : attrs) set(a.name, a.value);
    }

    const Attrs& list() const { return list_; }
    const catena_value* find(const std::string& name) const {
        for (const catena_named_value& a : list_)
            if (name == a.name) return &a.value;
        return nullptr;
    }
    void set(const std::string& name, const catena_value& value) {
        catena_named_value mine = {nullptr, value};
        if (value.kind == CATENA_ATTR_STRING)
            mine.value.v.s = keep(value.v.s, std::strlen(value.v.s) + 1);
        else if (value.kind == CATENA_ATTR_INTS) mine.value.v.ints = keep(value.v.ints, value.n);
        else if (value.kind == CATENA_ATTR_FLOATS)
            mine.value.v.floats = keep(value.v.floats, value.n);
        for (catena_named_value& a : list_)
            if (name == a.name) {
                a.value = mine.value;
                return;
            }
        mine.name = keep(name.c_str(), name.size() + 1);
        list_.push_back(mine);
    }

private:
    template <class T>
    const T* keep(const T* from, std::size_t n) {
        auto copy = std::make_shared<std::vector<T>>(from, from + n);
        const T* data = copy->data();
        kept_.push_back(std::move(copy));
        return data;
    }

    Attrs list_;
    std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace catena::testing
