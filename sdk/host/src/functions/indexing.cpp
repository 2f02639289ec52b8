// Indexing: compositions of get_item, take, take_along_axis, their gradients, reshape, transpose.
#include "promotion.hpp"

#include <catena/function_forms.hpp>
#include <catena/function_node.hpp>
#include <catena/functions/indexing.hpp>

#include <cstring>
#include <numeric>

namespace catena::functions {
namespace {

using Numbers = std::vector<std::int64_t>;

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
    Numbers extents;            // of the slice
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
            const std::int64_t low = s.step > 0 ? 0 : -1;
            const std::int64_t high = s.step > 0 ? n : n - 1;
            const auto cut = [&](std::int64_t at) {
                return std::clamp(at < 0 ? at + n : at, low, high);
            };
            const std::int64_t begin = s.begin ? cut(*s.begin) : s.step > 0 ? 0 : n - 1;
            const std::int64_t end = s.end ? cut(*s.end) : s.step > 0 ? n : -1;
            const bool some = s.step > 0 ? begin < end : begin > end;
            p.shape.push_back(some ? (end - begin - (s.step > 0 ? 1 : -1)) / s.step + 1 : 0);
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
            p.axes.push_back(static_cast<int>(p.shape.size()));
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

// Broadcasts the index arrays, and merges them into indices of the product of their axes.
Array merged_indices(const Parts& p) {
    if (p.arrays.size() == 1) return p.arrays[0];
    int ndim = 0;
    for (const Array& a : p.arrays) ndim = std::max(ndim, a.ndim());
    Numbers shape(static_cast<std::size_t>(ndim), 1);
    if (!std::ranges::all_of(p.arrays,
                             [&](const Array& a) { return broadcast_with(a.shape(), shape); })) {
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
X sliced(const X& x, const Parts& p) {
    return p.sliced ? get_item(x, p.begin, p.end, p.step) : x;
}

// Merges the indexed axes into one, which is where the axes of the indices belong.
class Merge {
public:
    explicit Merge(const Parts& p) : split_(p.shape) {
        const auto ndim = static_cast<int>(p.shape.size());
        const int first = p.axes[0];
        const auto n = static_cast<int>(p.axes.size());
        axis_ = p.apart ? 0 : first;
        if (p.axes.back() - first + 1 != n || axis_ != first) {
            const auto add_others = [&](int from, int to) {
                for (int d = from; d < to; ++d)
                    if (std::ranges::find(p.axes, d) == p.axes.end()) order_.push_back(d);
            };
            add_others(0, axis_);
            order_.insert(order_.end(), p.axes.begin(), p.axes.end());
            add_others(axis_, ndim);
            for (std::size_t d = 0; d < order_.size(); ++d)
                split_[d] = p.shape[static_cast<std::size_t>(order_[d])];
        }
        shape_ = split_;
        const auto begin = shape_.begin() + axis_;
        *begin = std::reduce(begin, begin + n, std::int64_t{1}, std::multiplies());
        shape_.erase(begin + 1, begin + n);
    }
    int axis() const { return axis_; }
    const Numbers& shape() const { return shape_; }  // with the merged axis

    template <class X>
    X apply(const X& x) const {
        const X ordered = order_.empty() ? x : transpose(x, order_);
        return split_ == shape_ ? ordered : reshape(ordered, shape_);
    }
    template <class X>
    X undo(const X& y) const {
        const X split = reshape(y, split_);
        if (order_.empty()) return split;
        Numbers inverse(order_.size());
        for (std::size_t d = 0; d < order_.size(); ++d)
            inverse[static_cast<std::size_t>(order_[d])] = static_cast<std::int64_t>(d);
        return transpose(split, inverse);
    }

private:
    Numbers split_, shape_;
    Numbers order_;  // of the axes; empty: as they are
    int axis_ = 0;
};

template <class X>
X item(const X& x, std::span<const Index> index) {
    expect("get_item", "x", x);
    const Parts p = parts_of(x.shape(), elements(x).device(), index);
    const X y = reshape(sliced(x, p), p.shape);
    if (p.arrays.empty()) return y;
    const Merge merge(p);
    return functions::take(merge.apply(y), constant(x, merged_indices(p)), merge.axis());
}

// ---- the others

template <class X>
X gathered(const X& x, int axis, const X& indices) {
    expect("gather", "x", x);
    expect("gather", "indices", indices);
    const Shape shape = x.shape();
    axis = axis_index("gather", axis, shape);
    expect_within("gather", "", indices.shape(), shape, axis);
    return take_along_axis(cut(x, with_extent(indices.shape(), axis, shape[axis])), indices, axis);
}

// Calls f(x, src) in the dtype in which their sum is computed.
template <class X, class F>
X in_arithmetic(const F& f, const X& x, const X& src) {
    return run_in(arithmetic_dtype(common_dtype(x.dtype(), src.dtype())), f, x, src);
}

template <class X>
X scattered(const char* function, const X& x, int axis, const X& indices, const X& src, bool add) {
    expect(function, "x", x);
    expect(function, "indices", indices);
    expect(function, "src", src);
    const Shape shape = x.shape();
    const Shape n = indices.shape();
    axis = axis_index(function, axis, shape);
    expect_within(function, "", n, shape, axis);
    expect_within(function, ", the shape of src", n, src.shape(), -1);
    if (n.size() == 0) return identity(x);
    const Shape part = with_extent(n, axis, shape[axis]);
    if (add)
        return in_arithmetic(
            [&](const X& to, const X& from) {
                return to + extend(put_along_axis_add({cut(from, n), indices}, part, axis), shape);
            },
            x, src);
    // 1 + the position in src of each element, or 0; then the position, with any for 0.
    const Array last = extend(last_along_axis({elements(indices)}, part, axis), shape);
    const Array hit = last > 0;
    const X from = extend(cut(src, n), with_extent(shape, axis, n[axis]));
    return where(constant(x, hit), take_along_axis(from, constant(x, last - hit), axis), x);
}

template <class X>
X added(const X& x, int axis, const X& indices, const X& src) {
    expect("index_add", "x", x);
    expect("index_add", "indices", indices);
    expect("index_add", "src", src);
    const Shape shape = x.shape();
    axis = axis_index("index_add", axis, shape);
    Numbers expected(shape.begin(), shape.end());
    const Shape own = indices.shape();
    const auto at = expected.erase(expected.begin() + axis);
    expected.insert(at, own.begin(), own.end());
    if (!std::ranges::equal(src.shape(), expected))
        fail<ShapeError>("[index_add] src.shape: expected ({}), got {}", fmt::join(expected, ", "),
                         to_string(src.shape()));
    return in_arithmetic(
        [&](const X& to, const X& from) {
            return to + put_rows_add({from, indices}, shape, axis);
        },
        x, src);
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
        flat = functions::take(flat, constant(x, on_device(repeated, {n}, elements(x).device())));
    }
    const X y = scattered("put", reshape(x, {-1}), 0, reshape(indices, {-1}), flat, false);
    return reshape(y, x.shape());
}

// Returns x with another slice, whose shape is p.extents. They have the same dtype.
Array with_slice(const Array& x, const Parts& p, const Array& slice) {
    thread_local BoundFunction update("catena.item_update", {"begin", "end", "step"});
    const Array inputs[] = {x.copy(), slice};
    update({Ints(p.begin), Ints(p.end), Ints(p.step)}).forward(inputs);
    return inputs[0];
}
Variable with_slice(const Variable& x, const Parts& p, const Variable& slice);

class SetSlice final : public FunctionNode {
public:
    explicit SetSlice(Parts parts) : parts_(std::move(parts)) {}
    std::string label() const override { return "set_item"; }

private:
    Arrays forward(ArraySpan x) override { return {with_slice(x[0], parts_, x[1])}; }
    Variables backward(Targets, VariableSpan gy) override {
        const Variable slice = sliced(gy[0], parts_);
        const Array zeros = Array::zeros(slice.shape(), gy[0].dtype(), gy[0].device());
        return {with_slice(gy[0], parts_, Variable(zeros)), slice};
    }

    Parts parts_;
};
Variable with_slice(const Variable& x, const Parts& p, const Variable& slice) {
    return catena::apply<SetSlice>({x, slice}, p)[0];
}

// Returns x with other slices at n indices along an axis; of equal indices the last counts.
template <class X>
X with_rows(const X& x, int axis, const Array& indices, const X& rows) {
    const std::int64_t length = x.shape()[axis];
    const Array last = last_along_axis({indices}, Ints(length), 0);  // 1 + a position, or 0
    Numbers wide(static_cast<std::size_t>(x.ndim()), 1);
    wide[static_cast<std::size_t>(axis)] = length;
    const Array hit = last > 0;
    return where(constant(x, reshape(hit, wide)),
                 functions::take(rows, constant(x, last - hit), axis), x);
}

template <class X>
X with_item(const X& given, std::span<const Index> index, const X& new_value) {
    expect("set_item", "x", given);
    expect("set_item", "value", new_value);
    const Dtype dtype = common_dtype(given.dtype(), new_value.dtype());
    const X x = promoted(given, dtype), value = promoted(new_value, dtype);
    const Parts p = parts_of(x.shape(), elements(x).device(), index);
    if (p.arrays.empty()) return with_slice(x, p, reshape(broadcast_to(value, p.shape), p.extents));
    const Merge merge(p);
    const Array indices = merged_indices(p);
    const Shape own = indices.shape();
    Numbers shape = merge.shape();
    const auto at = shape.erase(shape.begin() + merge.axis());
    shape.insert(at, own.begin(), own.end());
    X rows = broadcast_to(value, shape);
    if (own.size() == 0) return identity(x);
    shape = merge.shape();
    shape[static_cast<std::size_t>(merge.axis())] = own.size();
    rows = reshape(rows, shape);
    const X part = merge.apply(reshape(sliced(x, p), p.shape));
    const X changed = merge.undo(with_rows(part, merge.axis(), indices.reshape({-1}), rows));
    return p.sliced ? with_slice(x, p, reshape(changed, p.extents)) : reshape(changed, p.extents);
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
    const std::int64_t n = x.shape()[axis_index("permutate", axis, x.shape())];
    if (indices.shape() != Shape{n})
        fail<ShapeError>("[permutate] indices.shape: expected {}, got {}", to_string({n}),
                         to_string(indices.shape()));
    Numbers inverse(static_cast<std::size_t>(n), -1);
    const auto order = elements(indices).template to_vector<std::int64_t>();
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::int64_t at = order[i] < 0 ? order[i] + n : order[i];
        if (at < 0 || at >= n || inverse[static_cast<std::size_t>(at)] >= 0)
            fail<ValueError>(
                "[permutate] indices[{}]: expected each index of an axis of length {} "
                "once, got {}",
                i, n, order[i]);
        inverse[static_cast<std::size_t>(at)] = static_cast<std::int64_t>(i);
    }
    return functions::take(
        x, inv ? constant(x, on_device(inverse, {n}, elements(x).device())) : indices, axis);
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
