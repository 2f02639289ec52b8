// Calls derived from an example: smaller, empty, larger, malformed.
#pragma once

#include <algorithm>
#include <ctime>
#include <functional>
#include <set>

#include "testing/functions.hpp"

namespace catena::testing::detail {

struct Resize {
    std::int64_t from;
    std::int64_t to;
    bool multiples = false;   // extents that are multiples of `from` keep their ratio
    bool attributes = false;  // also changes integers in attributes
};
inline std::int64_t resized(std::int64_t extent, const Resize& r) {
    if (extent == r.from) return r.to;
    if (r.multiples && extent > r.from && extent % r.from == 0) return extent / r.from * r.to;
    return extent;
}
inline void resize_attributes(Example& e, const Resize& r) {
    if (!r.attributes) return;
    const Attrs attrs = e.attrs.list();
    for (const catena_named_value& a : attrs) {
        if (a.value.kind == CATENA_ATTR_INTS) {
            Dims list(a.value.v.ints, a.value.v.ints + a.value.n);
            for (std::int64_t& d : list) d = resized(d, r);
            e.attrs.set(a.name, plugin::value_of(plugin::Ints(list)));
        } else if (a.value.kind == CATENA_ATTR_INT) {
            e.attrs.set(a.name, plugin::value_of(resized(a.value.v.i, r)));
        }
    }
}
// Resizes every extent that equals r.from: equal extents are assumed to mean the same.
inline Example resize_all(Example e, const Resize& r) {
    for (Example::Input& in : e.inputs)
        for (std::int64_t& d : in.shape) d = resized(d, r);
    resize_attributes(e, r);
    return e;
}
// Resizes the first extents of the inputs in a set.
inline Example resize_first(Example e, std::uint64_t inputs, const Resize& r) {
    for (std::size_t i = 0; i < e.inputs.size(); ++i)
        if (i < 64 && (inputs >> i & 1) != 0)
            e.inputs[i].shape[0] = resized(e.inputs[i].shape[0], r);
    resize_attributes(e, r);
    return e;
}

// Returns sets of inputs whose first extents are equal, larger sets first.
inline std::vector<std::uint64_t> equal_firsts(const Example& e) {
    const std::size_t n = std::min<std::size_t>(e.inputs.size(), 5);
    std::vector<std::uint64_t> sets;
    for (std::uint64_t set = 1; set < std::uint64_t{1} << n; ++set) {
        std::set<std::int64_t> extents;
        for (std::size_t i = 0; i < n; ++i)
            if ((set >> i & 1) != 0) {
                const Example::Input& in = e.inputs[i];
                extents.insert(in.present && !in.shape.empty() ? in.shape[0] : -1);
            }
        if (extents.size() == 1 && *extents.begin() > 0) sets.push_back(set);
    }
    std::stable_sort(sets.begin(), sets.end(), [](std::uint64_t a, std::uint64_t b) {
        return __builtin_popcountll(a) > __builtin_popcountll(b);
    });
    return sets;
}
inline std::int64_t first_extent(const Example& e, std::uint64_t inputs) {
    return e.inputs[static_cast<std::size_t>(__builtin_ctzll(inputs))].shape[0];
}
// Returns the number of elements of the largest input.
inline std::int64_t elements(const Example& e) {
    std::int64_t most = 0;
    for (const Example::Input& in : e.inputs)
        if (in.present) most = std::max(most, plugin::size_of(in.shape));
    return most;
}

// How often each enlarge() of the process doubled an extent. This depends on the time that calls
// take, so a repetition must be given the numbers.
struct Doublings {
    std::vector<int> given;  // of the first calls of enlarge()
    std::vector<int> done;
    bool cut = false;              // the time limit ended the last call
    void (*told)(bool) = nullptr;  // called after each enlarge()
};
inline Doublings doublings;

// Returns a larger call that is still fast: doubles the extent from `from` to `to` as long as a
// call takes little time. make(extent) gives nothing if the call is refused.
inline std::optional<Sample> enlarge(
    std::int64_t from, std::int64_t to,
    const std::function<std::optional<Sample>(std::int64_t)>& make) {
#ifdef __SANITIZE_THREAD__  // which slows calls down
    constexpr std::clock_t most = CLOCKS_PER_SEC / 20;
#else
    constexpr std::clock_t most = CLOCKS_PER_SEC / 100;
#endif
    const bool timed = doublings.done.size() >= doublings.given.size();
    const int given = timed ? 0 : doublings.given[doublings.done.size()];
    auto largest = make(std::min(2 * from | 1, to));
    int n = 0;
    std::int64_t extent = 2 * from;
    for (bool goes_on = true; extent < to && goes_on && (timed || n < given); ++n) {
        extent = std::min(2 * extent, to);
        const std::clock_t start = std::clock();
        if (auto next = make(extent == to ? to : extent | 1)) largest = std::move(next);
        goes_on = !timed || std::clock() - start <= most;
    }
    doublings.done.push_back(n);
    doublings.cut = extent < to;
    if (doublings.told != nullptr) doublings.told(doublings.cut);
    return largest;
}
// Returns a call with longer first extents, up to `most` and to inputs of `total` elements, for
// which accepted() gives a sample; none if there is no such call.
inline std::optional<Sample> longer_first(
    const Example& e, std::int64_t total, std::int64_t most,
    const std::function<std::optional<Sample>(const Example&)>& accepted) {
    for (const std::uint64_t set : equal_firsts(e)) {
        const std::int64_t first = first_extent(e, set);
        std::int64_t row = 1;  // elements per index of the first axis
        for (std::size_t i = 0; i < e.inputs.size(); ++i)
            if (i < 64 && (set >> i & 1) != 0)
                row = std::max(row, plugin::size_of(e.inputs[i].shape) / first);
        for (const int way : {0, 1, 2}) {
            const auto make = [&](std::int64_t n) {
                const std::int64_t extent = way == 2 ? first * (n / first + 1) : n;
                return accepted(resize_first(e, set, {first, extent, false, way == 1}));
            };
            if (auto sample = enlarge(first, std::min(most, (total / row) | 1), make))
                return sample;
        }
    }
    return std::nullopt;
}

// Returns calls with one extent changed.
inline std::vector<Example> wrong_shapes(const Example& e) {
    std::vector<Example> result;
    for (std::size_t i = 0; i < e.inputs.size(); ++i)
        for (std::size_t d = 0; d < e.inputs[i].shape.size(); ++d)
            for (const std::int64_t extent :
                 {e.inputs[i].shape[d] + 1, 2 * e.inputs[i].shape[d] + 3}) {
                result.push_back(e);
                result.back().inputs[i].shape[d] = extent;
            }
    return result;
}
// Returns calls with one axis more or less.
inline std::vector<Example> wrong_ranks(const Example& e) {
    std::vector<Example> result;
    for (std::size_t i = 0; i < e.inputs.size(); ++i) {
        if (!e.inputs[i].present) continue;
        const auto change = [&](const auto& body) {
            result.push_back(e);
            body(result.back().inputs[i].shape);
        };
        change([](Dims& s) { s.push_back(2); });
        change([](Dims& s) { s.insert(s.begin(), 3); });
        if (e.inputs[i].shape.empty()) continue;
        change([](Dims& s) { s.pop_back(); });
        change([](Dims& s) { s.erase(s.begin()); });
    }
    return result;
}

}  // namespace catena::testing::detail
