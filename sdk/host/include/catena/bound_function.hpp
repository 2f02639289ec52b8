// BoundFunction: a function whose attributes change, bound once for each set of attributes.
#pragma once

#include <catena/core/memory.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/lists.hpp>

#include <algorithm>
#include <optional>
#include <tuple>

namespace catena {

// An integer or a list as an argument: F::reshape(x, {2, -1}). Non-owning, valid for the call only.
class Ints {
public:
    Ints(std::int64_t value) : one_(value) {}  // NOLINT: is a list
    Ints(std::initializer_list<std::int64_t> v) : Ints(v.begin(), v.size()) {}
    Ints(std::span<const std::int64_t> v) : Ints(v.data(), v.size()) {}     // NOLINT: is a list
    Ints(const std::vector<std::int64_t>& v) : Ints(v.data(), v.size()) {}  // NOLINT: is a list
    Ints(const Shape& shape)
        : Ints(shape.begin(), static_cast<std::size_t>(shape.ndim())) {}  // NOLINT

    std::span<const std::int64_t> view() const {
        return is_one_ ? std::span(&one_, 1) : std::span(values_, n_);
    }

private:
    Ints(const std::int64_t* values, std::size_t n) : values_(values), n_(n), is_one_(false) {}

    std::int64_t one_ = 0;
    const std::int64_t* values_ = nullptr;
    std::size_t n_ = 0;
    bool is_one_ = true;
};

// How an attribute given as A is kept: views become values.
template <class A>
auto keep(const A& value) {
    if constexpr (std::is_same_v<A, Ints>) {
        const auto view = value.view();
        return std::vector<std::int64_t>(view.begin(), view.end());
    } else if constexpr (std::is_same_v<A, std::string_view>) {
        return std::string(value);
    } else if constexpr (std::is_same_v<A, std::span<const double>>) {
        return std::vector<double>(value.begin(), value.end());
    } else {
        return value;
    }
}
template <class A>
using Kept = decltype(keep(std::declval<const A&>()));

// Caches the functions bound to the last few sets of attributes, so a call with a known set needs
// no search by name and no checks. Not thread-safe.
template <class... A>
class BoundFunction {
public:
    BoundFunction(std::string_view function, std::array<std::string_view, sizeof...(A)> names)
        : function_(function), names_(names) {}

    const PluginFunction& operator()(const A&... values) {
        for (const auto& entry : entries_) {
            if (entry && matches(entry->values, values...)) return entry->function;
        }
        auto& entry = entries_[next_];
        next_ = (next_ + 1) % entries_.size();
        entry.emplace(Entry{std::tuple<Kept<A>...>(keep(values)...),
                            bind(std::index_sequence_for<A...>(), values...)});
        return entry->function;
    }

private:
    struct Entry {
        std::tuple<Kept<A>...> values;
        PluginFunction function;
    };

    static bool matches(const std::tuple<Kept<A>...>& kept, const A&... values) {
        return std::apply([&](const Kept<A>&... k) { return (equal(values, k) && ...); }, kept);
    }
    template <class V, class K>
    static bool equal(const V& value, const K& kept) {
        if constexpr (std::is_same_v<V, Ints>) return std::ranges::equal(value.view(), kept);
        else if constexpr (std::is_same_v<V, std::span<const double>>)
            return std::ranges::equal(value, kept);
        else return value == kept;
    }
    template <std::size_t... I>
    PluginFunction bind(std::index_sequence<I...>, const A&... values) const {
        return entries_[0] ? entries_[0]->function.with({Attribute(names_[I], keep(values))...})
                           : PluginFunction(function_, {Attribute(names_[I], keep(values))...});
    }

    std::string_view function_;
    std::array<std::string_view, sizeof...(A)> names_;
    std::array<std::optional<Entry>, 8> entries_;
    std::size_t next_ = 0;
};

// One BoundFunction per thread. It must be thread_local and constinit, as in generated wrappers.
template <class... A>
class ThreadFunction {
public:
    constexpr ThreadFunction(std::string_view function,
                             std::array<std::string_view, sizeof...(A)> names)
        : function_(function), names_(names) {}

    const PluginFunction& operator()(const A&... values) {
        return bound_.get(function_, names_)(values...);
    }

private:
    std::string_view function_;
    std::array<std::string_view, sizeof...(A)> names_;
    PerThread<BoundFunction<A...>> bound_;
};

}  // namespace catena
