// Indexing: compositions of get_item, take, take_along_axis, their gradients, reshape, transpose.
#include "../support.hpp"

#include <catena/function_forms.hpp>
#include <catena/functions/indexing.hpp>

#include <cstring>
#include <numeric>

namespace catena::functions {
namespace {

using Numbers = std::vector<std::int64_t>;

Variable as(const Variable&, const Array& a) { return as_variable(a); }
Array as(const Array&, const Array& a) { return a; }
const Array& array_of(const Variable& x) { return x.data(); }
const Array& array_of(const Array& x) { return x; }

template <class X>
void expect(const char* function, const char* what, const X& x) {
    if (!x) fail<InvalidError>("[{}] {}: expected an array, got an empty handle", function, what);
}

// Calls an internal function, whose attributes differ from call to call.
Variable run(BoundFunction& function, std::initializer_list<AttributeView> attributes,
             std::initializer_list<Variable> x) {
    const Variable* inputs[2];
    std::size_t n = 0;
    for (const Variable& v : x) inputs[n++] = &v;
    return function(attributes).first(std::span(inputs, n));
}
Array run(BoundFunction& function, std::initializer_list<AttributeView> attributes,
          std::initializer_list<Array> x) {
    return function(attributes).first(std::span(x.begin(), x.size()));
}
#define CATENA_INTERNAL(NAME)                                             \
    template <class X>                                                    \
    X NAME(std::initializer_list<X> x, Ints shape, std::int64_t axis) {   \
        thread_local BoundFunction f("catena." #NAME, {"shape", "axis"}); \
        return run(f, {shape, axis}, x);                                  \
    }
CATENA_INTERNAL(put_rows_add)
CATENA_INTERNAL(put_along_axis_add)
CATENA_INTERNAL(last_along_axis)
#undef CATENA_INTERNAL

// Returns the array x[:extents[0], :extents[1], ...], and its inverse, which adds zeros.
template <class X>
X cut(const X& x, const Shape& extents) {
    if (x.shape() == extents) return x;
    return get_item(x, Numbers(static_cast<std::size_t>(x.shape().ndim())), extents, {});
}
template <class X>
X extend(const X& x, const Shape& shape) {
    if (x.shape() == shape) return x;
    thread_local BoundFunction f("catena.put_item", {"shape", "begin", "end"});
    return run(
        f, {Ints(shape), Ints(Numbers(static_cast<std::size_t>(shape.ndim()))), Ints(x.shape())},
        {x});
}

int axis_index(const char* function, const Shape& shape, int axis) {
    const int n = shape.ndim();
    if (axis < -n || axis >= n)
        fail<ShapeError>("[{}] axis: expected one of {}, got {}", function, to_string(shape), axis);
    return axis < 0 ? axis + n : axis;
}
// Returns `whole` with another extent of an axis.
Shape with_extent(Shape whole, int axis, std::int64_t extent) {
    whole[axis] = extent;
    return whole;
}
// Throws unless the indices have as many axes as x, and none but the axis is longer.
void expect_within(const char* function, const char* what, const Shape& indices, const Shape& x,
                   int axis) {
    bool fits = indices.ndim() == x.ndim();
    for (int d = 0; fits && d < x.ndim(); ++d) fits = d == axis || indices[d] <= x[d];
    if (!fits)
        fail<ShapeError>("[{}] indices.shape: expected at most {}{}{}, got {}", function,
                         to_string(x), what, axis < 0 ? "" : fmt::format(" but for axis {}", axis),
                         to_string(indices));
}

// ---- get_item

struct Parts {
    Numbers begin, end, step;   // of the slice
    Numbers shape;              // of the slice after integers are dropped and axes are added
    std::vector<Array> arrays;  // of indices
    std::vector<int> axes;      // the axis in `shape` of each of them
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
    const auto take = [&](const Slice& s) {
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
            take({});
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
            take(s);
            // As get_item() computes it.
            const std::int64_t n = x[d++];
            const std::int64_t low = s.step > 0 ? 0 : -1;
            const std::int64_t high = s.step > 0 ? n : n - 1;
            const auto cut = [&](std::int64_t at) {
                return std::clamp(at < 0 ? at + n : at, low, high);
            };
            const std::int64_t begin = s.begin ? cut(*s.begin) : s.step > 0 ? 0 : n - 1;
            const std::int64_t end = s.end ? cut(*s.end) : s.step > 0 ? n : -1;
            const bool some = s.step > 0 ? begin < end : begin > end;
            p.shape.push_back(some ? (end - begin - (s.step > 0 ? 1 : -1)) / s.step + 1 : 0);
        } else {
            p.apart = p.apart || (last >= 0 && last + 1 != static_cast<int>(i));
            last = static_cast<int>(i);
            if (item.kind() == Kind::integer) {
                const std::int64_t n = x[d++];
                const std::int64_t at = item.integer();
                if (at < -n || at >= n) fail_range(i, n, at);
                const std::int64_t begin = at < 0 ? at + n : at;
                take({begin, begin + 1, 1});
                continue;
            }
            const Array& a = item.array();
            p.axes.push_back(static_cast<int>(p.shape.size()));
            if (!is_mask(a)) {
                if (a.dtype() != Dtype::int32 && a.dtype() != Dtype::int64)
                    fail<DtypeError>("[get_item] index[{}]: expected int32, int64 or bool, got {}",
                                     i, name(a.dtype()));
                p.arrays.push_back(a);
                keep(1);
                continue;
            }
            if (a.ndim() == 0)
                fail<InvalidError>("[get_item] index[{}]: expected a mask with axes, got a 0-d one",
                                   i);
            const int first = d;
            std::int64_t merged = 1;
            for (; d < first + a.ndim(); ++d) {
                if (a.shape()[d - first] != x[d])
                    fail<ShapeError>(
                        "[get_item] index[{}].shape: expected the extents of x {} "
                        "from axis {}, got {}",
                        i, to_string(x), first, to_string(a.shape()));
                take({});
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

// Broadcasts the index arrays, and merges them into indices of the product of their axes.
Array merged_indices(const Parts& p) {
    if (p.arrays.size() == 1) return p.arrays[0];
    int ndim = 0;
    for (const Array& a : p.arrays) ndim = std::max(ndim, a.ndim());
    const Numbers ones(static_cast<std::size_t>(ndim), 1);
    Shape shape{std::span(ones)};
    bool fits = true;
    for (const Array& a : p.arrays)
        for (int d = 0; d < a.ndim(); ++d) {
            std::int64_t& extent = shape[ndim - a.ndim() + d];
            fits = fits && (extent == 1 || a.shape()[d] == 1 || a.shape()[d] == extent);
            if (extent == 1) extent = a.shape()[d];
        }
    if (!fits) {
        std::vector<std::string> shapes;
        for (const Array& a : p.arrays) shapes.push_back(to_string(a.shape()));
        fail<ShapeError>("[get_item] index: expected arrays that broadcast together, got {}",
                         fmt::join(shapes, " and "));
    }
    std::vector<Array> wide;
    Numbers lengths;
    for (std::size_t i = 0; i < p.arrays.size(); ++i) {
        wide.push_back(broadcast_to(p.arrays[i].astype(Dtype::int64), shape));
        lengths.push_back(p.shape[static_cast<std::size_t>(p.axes[i])]);
    }
    return ravel_multi_index(wide, lengths);
}

template <class X>
X item(const X& x, std::span<const Index> index) {
    expect("get_item", "x", x);
    if (is_mask(array_of(x)))  // the kernels move numbers
        return as(x, item(array_of(x).astype(Dtype::int32), index).astype(Dtype::bool8));
    const Parts p = parts_of(x.shape(), array_of(x).device(), index);
    X y = p.sliced ? get_item(x, p.begin, p.end, p.step) : x;
    y = reshape(y, p.shape);
    if (p.arrays.empty()) return y;

    // Merges the indexed axes into one, which is where the axes of the indices belong.
    const auto ndim = static_cast<int>(p.shape.size());
    const int first = p.axes[0];
    const auto n = static_cast<int>(p.axes.size());
    const bool together = p.axes.back() - first + 1 == n;
    const int target = p.apart ? 0 : first;
    Numbers shape = p.shape;
    if (!together || target != first) {
        Numbers axes;
        const auto add_others = [&](int from, int to) {
            for (int d = from; d < to; ++d)
                if (std::ranges::find(p.axes, d) == p.axes.end()) axes.push_back(d);
        };
        add_others(0, target);
        axes.insert(axes.end(), p.axes.begin(), p.axes.end());
        add_others(target, ndim);
        for (std::size_t d = 0; d < axes.size(); ++d)
            shape[d] = p.shape[static_cast<std::size_t>(axes[d])];
        y = transpose(y, axes);
    }
    if (n > 1) {
        const auto begin = shape.begin() + target;
        *begin = std::reduce(begin, begin + n, std::int64_t{1}, std::multiplies());
        shape.erase(begin + 1, begin + n);
        y = reshape(y, shape);
    }
    return functions::take(y, as(x, merged_indices(p)), target);
}

// ---- the others

template <class X>
X gathered(const X& x, int axis, const X& indices) {
    expect("gather", "x", x);
    expect("gather", "indices", indices);
    const Shape shape = x.shape();
    axis = axis_index("gather", shape, axis);
    expect_within("gather", "", indices.shape(), shape, axis);
    return take_along_axis(cut(x, with_extent(indices.shape(), axis, shape[axis])), indices, axis);
}

template <class X>
X scattered(const char* function, const X& x, int axis, const X& indices, const X& src, bool add) {
    expect(function, "x", x);
    expect(function, "indices", indices);
    expect(function, "src", src);
    const Shape shape = x.shape();
    const Shape n = indices.shape();
    axis = axis_index(function, shape, axis);
    expect_within(function, "", n, shape, axis);
    expect_within(function, ", the shape of src", n, src.shape(), -1);
    if (n.size() == 0) return identity(x);
    const Shape part = with_extent(n, axis, shape[axis]);
    if (add) return x + extend(put_along_axis_add({cut(src, n), indices}, part, axis), shape);
    // 1 + the position in src of each element, or 0; then the position, with any for 0.
    const Array last = extend(last_along_axis({array_of(indices)}, part, axis), shape);
    const Array hit = last > 0;
    const X from = extend(cut(src, n), with_extent(shape, axis, n[axis]));
    return where(as(x, hit), take_along_axis(from, as(x, last - hit), axis), x);
}

template <class X>
X added(const X& x, int axis, const X& indices, const X& src) {
    expect("index_add", "x", x);
    expect("index_add", "indices", indices);
    expect("index_add", "src", src);
    return x + put_rows_add({src, indices}, x.shape(), axis_index("index_add", x.shape(), axis));
}

template <class X>
X with_values(const X& x, const X& indices, const X& values) {
    expect("put", "x", x);
    expect("put", "indices", indices);
    expect("put", "values", values);
    const std::int64_t n = indices.shape().size();
    const std::int64_t given = values.shape().size();
    if (n == 0) return identity(x);
    if (given == 0) fail<ShapeError>("[put] values: expected at least one, got none");
    X flat = reshape(values, {-1});
    if (given < n) {
        Numbers repeated(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < repeated.size(); ++i)
            repeated[i] = static_cast<std::int64_t>(i) % given;
        flat = functions::take(flat, as(x, on_device(repeated, {n}, array_of(x).device())));
    }
    const X y = scattered("put", reshape(x, {-1}), 0, reshape(indices, {-1}), flat, false);
    return reshape(y, x.shape());
}

template <class X>
X with_item(const X& x, std::span<const Index> index, const X& value) {
    expect("set_item", "x", x);
    expect("set_item", "value", value);
    Numbers all(static_cast<std::size_t>(x.shape().size()));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    const Array places = item(on_device(all, x.shape(), array_of(x).device()), index);
    return with_values(x, as(x, places), broadcast_to(value, places.shape()));
}

template <class X>
X selected(const X& x, const X& t) {
    expect("select_item", "x", x);
    expect("select_item", "t", t);
    const Shape shape = x.shape();
    if (shape.ndim() != 2)
        fail<ShapeError>("[select_item] x.ndim: expected 2, got {}", shape.ndim());
    if (t.shape() != Shape{shape[0]})
        fail<ShapeError>("[select_item] t.shape: expected {}, got {}", to_string({shape[0]}),
                         to_string(t.shape()));
    return reshape(take_along_axis(x, reshape(t, {shape[0], 1}), 1), {shape[0]});
}

template <class X>
X permutated(const X& x, const X& indices, int axis, bool inv) {
    expect("permutate", "x", x);
    expect("permutate", "indices", indices);
    const std::int64_t n = x.shape()[axis_index("permutate", x.shape(), axis)];
    if (indices.shape() != Shape{n})
        fail<ShapeError>("[permutate] indices.shape: expected {}, got {}", to_string({n}),
                         to_string(indices.shape()));
    Numbers inverse(static_cast<std::size_t>(n), -1);
    const auto order = array_of(indices).template to_vector<std::int64_t>();
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::int64_t at = order[i] < 0 ? order[i] + n : order[i];
        if (at < 0 || at >= n || inverse[static_cast<std::size_t>(at)] >= 0)
            fail<ValueError>(
                "[permutate] indices[{}]: expected each index of an axis of length {} "
                "once, got {}",
                i, n, order[i]);
        inverse[static_cast<std::size_t>(at)] = static_cast<std::int64_t>(i);
    }
    return functions::take(x, inv ? as(x, on_device(inverse, {n}, array_of(x).device())) : indices,
                           axis);
}

}  // namespace

#define CATENA_INDEXING(X)                                                                  \
    X get_item(const X& x, std::span<const Index> index) { return item(x, index); }         \
    X set_item(const X& x, std::span<const Index> index, const X& value) {                  \
        return with_item(x, index, value);                                                  \
    }                                                                                       \
    X gather(const X& x, int axis, const X& indices) { return gathered(x, axis, indices); } \
    X scatter(const X& x, int axis, const X& indices, const X& src) {                       \
        return scattered("scatter", x, axis, indices, src, false);                          \
    }                                                                                       \
    X scatter_add(const X& x, int axis, const X& indices, const X& src) {                   \
        return scattered("scatter_add", x, axis, indices, src, true);                       \
    }                                                                                       \
    X index_add(const X& x, int axis, const X& indices, const X& src) {                     \
        return added(x, axis, indices, src);                                                \
    }                                                                                       \
    X put(const X& x, const X& indices, const X& values) {                                  \
        return with_values(x, indices, values);                                             \
    }                                                                                       \
    X select_item(const X& x, const X& t) { return selected(x, t); }                        \
    X permutate(const X& x, const X& indices, int axis, bool inv) {                         \
        return permutated(x, indices, axis, inv);                                           \
    }
CATENA_INDEXING(Variable)
CATENA_INDEXING(Array)
#undef CATENA_INDEXING

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
