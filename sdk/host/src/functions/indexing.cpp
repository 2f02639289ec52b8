// Indexing with NumPy's keys: slices, and index arrays for some of the axes of the slice.
#include "operands.hpp"

#include <catena/functions/indexing.hpp>
#include <catena/lists.hpp>

namespace catena::functions {
namespace {

using Numbers = std::vector<std::int64_t>;

// ---- get_item

struct Parts {
    Numbers begin, end, step;   // of the slice
    Numbers extents;            // of the slice
    Numbers shape;              // of the slice after integers are dropped and axes are added
    std::vector<Array> arrays;  // of indices
    Numbers axes;               // the axis in `shape` of each of them
    bool apart = false;         // index arrays and integers are not adjacent
    bool sliced = false;
};

bool is_mask(const Array& a) { return a.dtype() == Dtype::bool8; }

// The positions of true elements in a flat mask.
Numbers true_positions(const Array& mask) {
    const Array there = mask.to(Device::get("cpu"));
    const std::span<const bool> m = there.host<const bool>();
    // One more than needed, since each element writes its position.
    Numbers positions(static_cast<std::size_t>(std::ranges::count(m, true)) + 1);
    std::size_t n = 0;
    for (std::size_t i = 0; i < m.size(); ++i) {
        positions[n] = static_cast<std::int64_t>(i);
        n += m[i] ? 1 : 0;
    }
    positions.pop_back();
    return positions;
}
Array on_device(const Numbers& numbers, const Shape& shape, Device device) {
    return Array::from(numbers, shape).to(device);
}

[[noreturn]] void fail_range(std::size_t item, std::int64_t length, std::int64_t i) {
    if (length == 0)
        fail<ValueError>(
            "[get_item] index[{}]: expected no integer, for the axis has no elements, "
            "got {}",
            item, i);
    fail<ValueError>("[get_item] index[{}]: expected an index from {} to {}, got {}", item, -length,
                     length - 1, i);
}

// Assigns axes of x to the items of an index.
Parts parts_of(const Shape& x, Device device, std::span<const Index> index) {
    using Kind = Index::Kind;
    int indexed = 0;
    int ellipses = 0;
    for (const Index& item : index) {
        if (item.kind() == Kind::array) expect("get_item", "index", item.array());
        if (item.kind() == Kind::array && is_mask(item.array())) indexed += item.array().ndim();
        else if (item.kind() == Kind::rest) ++ellipses;
        else if (item.kind() != Kind::added) ++indexed;
    }
    if (ellipses > 1)
        fail<InvalidError>("[get_item] index: expected at most one ellipsis, got {}", ellipses);
    if (indexed > x.ndim())
        fail<InvalidError>("[get_item] index: expected items for at most {} axes of {}, got {}",
                           x.ndim(), to_string(x), indexed);

    Parts p;
    int d = 0;  // the next axis of x
    const auto take = [&](const Slice& s, std::int64_t extent) {
        p.extents.push_back(extent);
        // The limits stand for a missing begin or end.
        using Limits = std::numeric_limits<std::int64_t>;
        const bool forward = s.step > 0;
        p.begin.push_back(s.begin.value_or(forward ? 0 : Limits::max()));
        p.end.push_back(s.end.value_or(forward ? Limits::max() : Limits::min()));
        p.step.push_back(s.step);
        p.sliced = p.sliced || s.begin || s.end || s.step != 1;
    };
    const auto keep = [&](int n) {
        for (; n > 0; --n) {
            take({}, x[d]);
            p.shape.push_back(x[d++]);
        }
    };
    int last = -1;  // the last item that is an integer or an array
    for (std::size_t i = 0; i < index.size(); ++i) {
        const Index& item = index[i];
        if (item.kind() == Kind::rest) {
            keep(x.ndim() - indexed);
        } else if (item.kind() == Kind::added) {
            p.shape.push_back(1);
        } else if (item.kind() == Kind::slice) {
            const Slice& s = item.slice();
            if (s.step == 0)
                fail<InvalidError>("[get_item] index[{}].step: expected no 0, got 0", i);
            // As get_item() computes it.
            const std::int64_t n = x[d++];
            const bool forward = s.step > 0;
            const std::int64_t low = forward ? 0 : -1;
            const std::int64_t high = low + n;
            const auto cut = [&](const std::optional<std::int64_t>& at, std::int64_t missing) {
                return at ? std::clamp(*at < 0 ? *at + n : *at, low, high) : missing;
            };
            const std::int64_t begin = cut(s.begin, forward ? low : high);
            const std::int64_t end = cut(s.end, forward ? high : low);
            const bool some = forward ? begin < end : begin > end;
            p.shape.push_back(some ? (end - begin - (forward ? 1 : -1)) / s.step + 1 : 0);
            take(s, p.shape.back());
        } else {
            p.apart = p.apart || (last >= 0 && last + 1 != static_cast<int>(i));
            last = static_cast<int>(i);
            if (item.kind() == Kind::integer) {
                const std::int64_t n = x[d++];
                const std::int64_t at = item.integer();
                if (at < -n || at >= n) fail_range(i, n, at);
                const std::int64_t begin = at < 0 ? at + n : at;
                take({begin, begin + 1, 1}, 1);
                continue;
            }
            const Array& a = item.array();
            p.axes.push_back(static_cast<std::int64_t>(p.shape.size()));
            if (!is_mask(a)) {
                if (a.dtype() != Dtype::int32 && a.dtype() != Dtype::int64)
                    fail<DtypeError>("[get_item] index[{}]: expected int32, int64 or bool, got {}",
                                     i, name(a.dtype()));
                p.arrays.push_back(a);
                keep(1);
                continue;
            }
            if (a.ndim() == 0) {  // selects all or nothing along a new axis of length 1
                p.shape.push_back(1);
                const Numbers places(a.item<bool>() ? 1 : 0, 0);
                p.arrays.push_back(
                    on_device(places, {static_cast<std::int64_t>(places.size())}, device));
                continue;
            }
            const int first = d;
            std::int64_t merged = 1;
            for (; d < first + a.ndim(); ++d) {
                if (a.shape()[d - first] != x[d])
                    fail<ShapeError>(
                        "[get_item] index[{}].shape: expected the extents of x {} "
                        "from axis {}, got {}",
                        i, to_string(x), first, to_string(a.shape()));
                take({}, x[d]);
                merged *= x[d];
            }
            p.shape.push_back(merged);
            const Numbers positions = true_positions(a);
            p.arrays.push_back(
                on_device(positions, {static_cast<std::int64_t>(positions.size())}, device));
        }
    }
    keep(x.ndim() - d);
    return p;
}

template <class X>
X run(const PluginFunction& function, std::initializer_list<X> first, std::span<const Array> rest) {
    std::vector<X> all(first);
    for (const Array& array : rest) all.push_back(constant(all[0], array));
    const auto inputs = ListOf<X>(all).after({});
    return function.first(std::span(inputs.data(), inputs.size()));
}

template <class X>
X sliced(const X& x, const Parts& p) {
    return reshape(p.sliced ? get_item(x, p.begin, p.end, p.step) : x, p.shape);
}

template <class X>
X item(const X& x, std::span<const Index> index) {
    expect("get_item", "x", x);
    thread_local BoundFunction at("catena.get_item_at", {"axes", "first"});
    const Parts p = parts_of(x.shape(), elements(x).device(), index);
    const X y = sliced(x, p);
    if (p.arrays.empty()) return y;
    if (p.arrays.size() == 1 && !p.apart) return take(y, constant(x, p.arrays[0]), p.axes[0]);
    return run(at({Ints(p.axes), p.apart}), {y}, p.arrays);
}

template <class X>
X with_item(const X& x, std::span<const Index> index, const X& value) {
    expect("set_item", "x", x);
    expect("set_item", "value", value);
    thread_local BoundFunction at("catena.set_item_at", {"axes", "first"});
    thread_local BoundFunction slice("catena.set_slice", {"begin", "end", "step"});
    const Parts p = parts_of(x.shape(), elements(x).device(), index);
    const X part = p.arrays.empty()
                       ? broadcast_to(value, p.shape)
                       : run(at({Ints(p.axes), p.apart}), {sliced(x, p), value}, p.arrays);
    if (!p.sliced && !p.arrays.empty()) return reshape(part, x.shape());
    return run(slice({Ints(p.begin), Ints(p.end), Ints(p.step)}), {x, reshape(part, p.extents)},
               {});
}

}  // namespace

Variable get_item(const Variable& x, std::span<const Index> index) { return item(x, index); }
Array get_item(const Array& x, std::span<const Index> index) { return item(x, index); }
Variable set_item(const Variable& x, const ListOf<Index>& index, const Variable& value) {
    return with_item(x, index.view(), value);
}
Array set_item(const Array& x, const ListOf<Index>& index, const Array& value) {
    return with_item(x, index.view(), value);
}

Array nonzero(const Array& x) {
    expect("nonzero", "x", x);
    const Array mask = is_mask(x) ? x : x.astype(Dtype::bool8);
    const Numbers positions = true_positions(mask);
    const Shape shape = x.shape();
    const auto n = static_cast<std::int64_t>(positions.size());
    Numbers indices(positions.size() * static_cast<std::size_t>(shape.ndim()));
    auto to = indices.end();
    for (std::int64_t i = n; i-- > 0;) {
        std::int64_t rest = positions[static_cast<std::size_t>(i)];
        for (int d = shape.ndim(); d-- > 0; rest /= shape[d]) *--to = rest % shape[d];
    }
    return on_device(indices, {n, shape.ndim()}, x.device());
}

}  // namespace catena::functions
