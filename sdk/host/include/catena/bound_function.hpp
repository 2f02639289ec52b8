// BoundFunction: a function called with changing attributes, bound once for each set of them.
#pragma once

#include <catena/core/function.hpp>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace catena {

// A list of integers, or one, as an argument: F::reshape(x, {2, -1}). Valid for the call only.
class Ints {
public:
    Ints(std::initializer_list<std::int64_t> values) : view_(values.begin(), values.size()) {}
    Ints(std::span<const std::int64_t> values) : view_(values) {}  // NOLINT: is a list
    Ints(const std::vector<std::int64_t>& values) : view_(values) {}  // NOLINT: is a list
    Ints(const Shape& shape) : view_(shape.begin(), shape.end()) {}  // NOLINT: is a list
    operator std::vector<std::int64_t>() const { return {view_.begin(), view_.end()}; }
    bool operator==(const std::vector<std::int64_t>& other) const {
        return std::equal(view_.begin(), view_.end(), other.begin(), other.end());
    }

private:
    std::span<const std::int64_t> view_;
};

// Any number of variables as an argument: F::concat({a, b}). Valid for the call only.
class Variables {
public:
    Variables(std::initializer_list<Variable> values) : view_(values.begin(), values.size()) {}
    Variables(std::span<const Variable> values) : view_(values) {}  // NOLINT: is a list
    Variables(const std::vector<Variable>& values) : view_(values) {}  // NOLINT: is a list
    auto begin() const { return view_.begin(); }
    auto end() const { return view_.end(); }
    std::size_t size() const { return view_.size(); }

private:
    std::span<const Variable> view_;
};

// How an attribute given as A is kept.
template <class A>
using Kept = std::conditional_t<
    std::is_same_v<A, Ints>, std::vector<std::int64_t>,
    std::conditional_t<std::is_same_v<A, std::string_view>, std::string,
                       std::conditional_t<std::is_same_v<A, std::span<const double>>,
                                          std::vector<double>, A>>>;

// Keeps what the last few sets of attributes were bound to: a call with a known set does no search
// by name and no checks. For one thread: generated wrappers keep it thread_local.
template <class... A>
class BoundFunction {
public:
    BoundFunction(std::string_view function, std::array<std::string_view, sizeof...(A)> names)
        : function_(function), names_(names) {}

    const Function& operator()(const A&... values) {
        for (const auto& entry : entries_) {
            if (entry && matches(entry->values, values...)) return entry->function;
        }
        auto& entry = entries_[next_];
        next_ = (next_ + 1) % entries_.size();
        entry.reset();
        entry.emplace(Entry{{Kept<A>(values)...}, bind(std::index_sequence_for<A...>(), values...)});
        return entry->function;
    }

private:
    struct Entry {
        std::tuple<Kept<A>...> values;
        Function function;
    };

    static bool matches(const std::tuple<Kept<A>...>& kept, const A&... values) {
        return std::apply([&](const Kept<A>&... k) { return (equal(values, k) && ...); }, kept);
    }
    template <class V, class K>
    static bool equal(const V& value, const K& kept) {
        if constexpr (std::is_same_v<V, std::span<const double>>) {
            return std::equal(value.begin(), value.end(), kept.begin(), kept.end());
        } else {
            return value == kept;
        }
    }
    template <std::size_t... I>
    Function bind(std::index_sequence<I...>, const A&... values) const {
        return Function(function_, {Attribute(names_[I], Kept<A>(values))...});
    }

    std::string_view function_;
    std::array<std::string_view, sizeof...(A)> names_;
    std::array<std::optional<Entry>, 8> entries_;
    std::size_t next_ = 0;
};

}  // namespace catena
