// Functions that rearrange elements: functions/shapes.hpp. Each is a template for variables and
// arrays, in the class Rearrange<X>.
#include "promotion.hpp"

#include <catena/function_forms.hpp>

#include <limits>
#include <numeric>

namespace catena::functions {
namespace {

using Extents = SmallVector<std::int64_t, CATENA_MAX_NDIM>;
constexpr auto farthest = std::numeric_limits<std::int64_t>::max();

// Returns which of ndim axes are in a list that names each at most once.
std::vector<bool> marked(const char* function, Ints axes, int ndim, const Shape& shown) {
    std::vector<bool> marks(static_cast<std::size_t>(ndim));
    for (const std::int64_t axis : axes.view()) {
        const int d = axis_index(function, axis, ndim, shown);
        if (marks[static_cast<std::size_t>(d)])
            fail<InvalidError>("[{}] axis: expected each axis once, got [{}]", function,
                               fmt::join(axes.view(), ", "));
        marks[static_cast<std::size_t>(d)] = true;
    }
    return marks;
}
std::span<const std::int64_t> span_of(const Extents& extents) {
    return {extents.data(), extents.size()};
}
Shape shape_of(const Extents& extents) { return Shape(span_of(extents)); }
Extents extents_of(const Shape& shape) {
    Extents extents;
    for (const std::int64_t d : shape) extents.push_back(d);
    return extents;
}

// The indices of an axis of n elements that padding repeats before and after it.
class PaddedAxis {
public:
    PaddedAxis(std::string_view mode, std::int64_t n) : mode_(mode), n_(n) {}
    // i: an index of the axis; negative before it, n and larger behind it.
    std::int64_t operator()(std::int64_t i) const {
        if (mode_ == "edge") return std::clamp<std::int64_t>(i, 0, n_ - 1);
        if (mode_ == "wrap") return modulo(i, n_);
        if (mode_ == "symmetric") {
            const std::int64_t at = modulo(i, 2 * n_);
            return at < n_ ? at : 2 * n_ - 1 - at;
        }
        if (n_ == 1) return 0;  // reflect
        const std::int64_t at = modulo(i, 2 * (n_ - 1));
        return at < n_ ? at : 2 * (n_ - 1) - at;
    }

private:
    static std::int64_t modulo(std::int64_t i, std::int64_t n) { return (i % n + n) % n; }

    std::string_view mode_;
    std::int64_t n_;
};

template <class X>
struct Rearrange {
    using List = std::span<const X>;

    static void check(const char* function, const X& x) { expect(function, "x", x); }
    static void check(const char* function, List xs) {
        if (xs.empty())
            fail<InvalidError>("[{}] xs: expected at least one array, got none", function);
        expect_each(function, "xs", xs);
    }
    static void need_axes(const char* function, const X& x, int n) {
        check(function, x);
        if (x.ndim() < n)
            fail<ShapeError>("[{}] x: expected at least {} axes, got shape {}", function, n,
                             to_string(x.shape()));
    }

    static X reshaped(const X& x, const Extents& extents) { return reshape(x, span_of(extents)); }
    static X broadcasted(const X& x, const Extents& extents) {
        return broadcast_to(x, span_of(extents));
    }
    // Returns x[..., begin:end:step, ...] along one axis.
    static X slice(const X& x, int axis, std::int64_t begin, std::int64_t end,
                   std::int64_t step = 1) {
        Extents from, to, steps;
        for (int d = 0; d < axis; ++d) {
            from.push_back(0);
            to.push_back(farthest);
            steps.push_back(1);
        }
        from.push_back(begin);
        to.push_back(end);
        steps.push_back(step);
        return get_item(x, span_of(from), span_of(to), span_of(steps));
    }
    // Returns the result of a function that changes nothing. It is a variable of its own: x.data()
    // and x.grad() stay what they are when the result gets others. It shares x's memory.
    static X unchanged(const X& x) { return reshaped(x, extents_of(x.shape())); }
    static X reversed(const X& x, int axis) { return slice(x, axis, farthest, -farthest - 1, -1); }

    static X joined(const std::vector<X>& parts, int axis) {
        return parts.size() == 1 ? parts[0] : concat(parts, axis);
    }

    // Returns x with its axes in another order, by a reshape if the elements keep theirs.
    static X permuted(const X& x, const Extents& axes) {
        const Shape shape = x.shape();
        bool same = true;
        bool ordered = true;
        std::int64_t last = -1;
        Extents extents;
        for (std::size_t d = 0; d < axes.size(); ++d) {
            const std::int64_t length = shape[static_cast<int>(axes[d])];
            same = same && axes[d] == static_cast<std::int64_t>(d);
            extents.push_back(length);
            if (length == 1) continue;
            ordered = ordered && axes[d] > last;
            last = axes[d];
        }
        if (same) return unchanged(x);
        return ordered ? reshaped(x, extents) : transpose(x, span_of(axes));
    }

    static X concatenated(List xs, std::int64_t axis) {
        thread_local constinit ThreadFunction function("catena.concat", {"axis"});
        std::vector<X> converted;
        if (std::ranges::any_of(
                xs, [&](const X& x) { return !x || !same_dtype(elements(x), elements(xs[0])); })) {
            const Dtype dtype = common_dtype("concat", "xs", xs);
            for (const X& x : xs) converted.push_back(promoted(x, dtype));
            xs = converted;
        }
        const auto inputs = ListOf<X>(xs).after({});
        return function({axis}).first(std::span(inputs.data(), inputs.size()));
    }

    static X stacked(List xs, int axis) {
        check("stack", xs);
        const Shape shape = xs[0].shape();
        const int n = shape.ndim() + 1;
        if (axis < -n || axis >= n)
            fail<ShapeError>("[stack] axis: expected {} to {} for arrays of shape {}, got {}", -n,
                             n - 1, to_string(shape), axis);
        const int at = axis < 0 ? axis + n : axis;
        Extents extents;
        for (int d = 0; d < n; ++d) extents.push_back(d == at ? 1 : shape[d < at ? d : d - 1]);
        std::vector<X> parts;
        for (std::size_t i = 0; i < xs.size(); ++i) {
            if (xs[i].shape() != shape)
                fail<ShapeError>("[stack] xs[{}].shape: expected {}, got {}", i, to_string(shape),
                                 to_string(xs[i].shape()));
            parts.push_back(reshaped(xs[i], extents));
        }
        return concat(parts, at);
    }
    // Joins arrays that have at least n axes along one of these.
    static X stacked_along(const char* function, List xs, int n, int axis) {
        check(function, xs);
        std::vector<X> parts;
        for (const X& x : xs) {
            Extents extents = extents_of(x.shape());
            if (extents.size() == 0 && n > 0) extents.push_back(1);
            if (extents.size() == 1 && n > 1) {
                extents.push_back(extents[0]);
                extents[0] = 1;
            }
            if (extents.size() == 2 && n > 2) extents.push_back(1);
            parts.push_back(static_cast<int>(extents.size()) == x.ndim() ? x
                                                                         : reshaped(x, extents));
        }
        if (axis < 0) axis = parts[0].ndim() == 1 ? 0 : 1;  // hstack
        return concat(parts, axis);
    }
    static std::vector<X> separated(const X& x, int axis) {
        check("separate", x);
        const Shape shape = x.shape();
        const int at = axis_index("separate", axis, shape.ndim(), shape);
        Extents extents;
        for (int d = 0; d < shape.ndim(); ++d)
            if (d != at) extents.push_back(shape[d]);
        std::vector<X> parts;
        for (std::int64_t i = 0; i < shape[at]; ++i)
            parts.push_back(reshaped(slice(x, at, i, i + 1), extents));
        return parts;
    }
    static std::vector<X> broadcast_all(List xs) {
        check("broadcast", xs);
        int n = 0;
        for (const X& x : xs) n = std::max(n, x.ndim());
        Extents extents;
        for (int d = 0; d < n; ++d) extents.push_back(1);
        for (std::size_t i = 0; i < xs.size(); ++i) {
            const Shape before = shape_of(extents);
            if (!broadcast_with(xs[i].shape(), {extents.data(), extents.size()}))
                fail<ShapeError>("[broadcast] xs[{}].shape: expected broadcastable to {}, got {}",
                                 i, to_string(before), to_string(xs[i].shape()));
        }
        std::vector<X> results;
        for (const X& x : xs)
            results.push_back(x.shape() == shape_of(extents) ? unchanged(x)
                                                             : broadcasted(x, extents));
        return results;
    }
    static X padded_sequence(List xs, std::int64_t length, double padding) {
        check("pad_sequence", xs);
        std::int64_t longest = 0;
        for (std::size_t i = 0; i < xs.size(); ++i) {
            need_axes("pad_sequence", xs[i], 1);
            const Shape shape = xs[i].shape();
            longest = std::max(longest, shape[0]);
            Shape expected = xs[0].shape();
            expected[0] = shape[0];
            if (shape != expected)
                fail<ShapeError>("[pad_sequence] xs[{}].shape: expected {}, got {}", i,
                                 to_string(expected), to_string(shape));
        }
        if (length == -1) length = longest;
        if (length < longest)
            fail<ShapeError>("[pad_sequence] length: expected at least {}, got {}", longest,
                             length);
        std::vector<X> parts;
        for (const X& x : xs) {
            parts.push_back(x);
            Shape rest = x.shape();
            rest[0] = length - rest[0];
            if (rest[0] > 0)
                parts.push_back(constant(x, Array::full(rest, padding, x.dtype(), x.device())));
        }
        Extents extents = extents_of(xs[0].shape());
        extents[0] = length;
        Extents all;
        all.push_back(static_cast<std::int64_t>(xs.size()));
        for (const std::int64_t d : span_of(extents)) all.push_back(d);
        return reshaped(concat(parts, 0), all);
    }

    static X expanded(const X& x, Ints axis) {
        check("expand_dims", x);
        const Shape shape = x.shape();
        const int n = shape.ndim() + static_cast<int>(axis.view().size());
        const auto is_new = marked("expand_dims", axis, n, shape);
        Extents extents;
        int from = 0;
        for (int d = 0; d < n; ++d)
            extents.push_back(is_new[static_cast<std::size_t>(d)] ? 1 : shape[from++]);
        return reshaped(x, extents);
    }
    static X squeezed(const X& x, const Ints* axis) {
        check("squeeze", x);
        const Shape shape = x.shape();
        std::vector<bool> gone(static_cast<std::size_t>(shape.ndim()), true);
        if (axis) gone = marked("squeeze", *axis, shape.ndim(), shape);
        Extents extents;
        for (int d = 0; d < shape.ndim(); ++d) {
            const bool leaves = gone[static_cast<std::size_t>(d)];
            if (leaves && axis && shape[d] != 1)
                fail<ShapeError>("[squeeze] axis: expected axes of length 1 of {}, got {}",
                                 to_string(shape), d);
            if (!leaves || shape[d] != 1) extents.push_back(shape[d]);
        }
        return reshaped(x, extents);
    }
    static X flattened(const char* function, const X& x) {
        check(function, x);
        return x.ndim() == 1 ? unchanged(x) : reshape(x, -1);
    }
    static X moved(const X& x, Ints source, Ints destination) {
        check("moveaxis", x);
        const Shape shape = x.shape();
        const int n = shape.ndim();
        const auto from = source.view();
        const auto to = destination.view();
        if (from.size() != to.size())
            fail<InvalidError>("[moveaxis] destination: expected {} axes as in source, got {}",
                               from.size(), to.size());
        const auto moves = marked("moveaxis", source, n, shape);
        marked("moveaxis", destination, n, shape);
        Extents axes;
        for (int d = 0; d < n; ++d) axes.push_back(-1);
        for (std::size_t i = 0; i < from.size(); ++i)
            axes[static_cast<std::size_t>(axis_index("moveaxis", to[i], n, shape))] =
                axis_index("moveaxis", from[i], n, shape);
        int next = 0;
        for (int d = 0; d < n; ++d) {
            std::int64_t& axis = axes[static_cast<std::size_t>(d)];
            if (axis >= 0) continue;
            while (moves[static_cast<std::size_t>(next)]) ++next;
            axis = next++;
        }
        return permuted(x, axes);
    }
    static X swapped(const X& x, int axis1, int axis2) {
        check("swapaxes", x);
        const Shape shape = x.shape();
        Extents axes;
        for (int d = 0; d < shape.ndim(); ++d) axes.push_back(d);
        std::swap(
            axes[static_cast<std::size_t>(axis_index("swapaxes", axis1, shape.ndim(), shape))],
            axes[static_cast<std::size_t>(axis_index("swapaxes", axis2, shape.ndim(), shape))]);
        return permuted(x, axes);
    }
    static X rolled_back(const X& x, int axis, int start) {
        check("rollaxis", x);
        const Shape shape = x.shape();
        const int n = shape.ndim();
        const int from = axis_index("rollaxis", axis, n, shape);
        if (start < -n || start > n)
            fail<ShapeError>("[rollaxis] start: expected {} to {}, got {}", -n, n, start);
        int to = start < 0 ? start + n : start;
        if (from < to) --to;
        return moved(x, from, to);
    }

    static X flipped(const char* function, const X& x, const Ints* axis, int least = 0) {
        need_axes(function, x, least);
        const Shape shape = x.shape();
        std::vector<bool> flips(static_cast<std::size_t>(shape.ndim()), true);
        if (axis) flips = marked(function, *axis, shape.ndim(), shape);
        Extents begin, end, step;
        bool any = false;
        for (const bool flip : flips) {
            begin.push_back(flip ? farthest : 0);
            end.push_back(flip ? -farthest - 1 : farthest);
            step.push_back(flip ? -1 : 1);
            any = any || flip;
        }
        return any ? get_item(x, span_of(begin), span_of(end), span_of(step)) : unchanged(x);
    }
    static X rolled(X x, Ints shift, Ints axis) {
        check("roll", x);
        bool any = false;
        const Shape shape = x.shape();
        const auto shifts = shift.view();
        const auto axes = axis.view();
        if (shifts.size() != 1 && shifts.size() != axes.size())
            fail<InvalidError>("[roll] shift: expected one number or {}, got {}", axes.size(),
                               shifts.size());
        for (std::size_t i = 0; i < axes.size(); ++i) {
            const int d = axis_index("roll", axes[i], shape.ndim(), shape);
            const std::int64_t n = shape[d];
            const std::int64_t by = n == 0 ? 0 : (shifts[shifts.size() == 1 ? 0 : i] % n + n) % n;
            if (by == 0) continue;
            x = concat({slice(x, d, n - by, farthest), slice(x, d, 0, n - by)}, d);
            any = true;
        }
        return any ? x : unchanged(x);
    }

    static X tiled(const X& x, Ints reps) {
        check("tile", x);
        const auto times = reps.view();
        const Shape shape = x.shape();
        const auto n_reps = static_cast<int>(times.size());
        const int n = std::max(shape.ndim(), n_reps);
        Extents apart, repeated, together;
        for (int d = 0; d < n; ++d) {
            const int own = d - (n - shape.ndim());
            const int rep = d - (n - n_reps);
            const std::int64_t length = own < 0 ? 1 : shape[own];
            const std::int64_t by = rep < 0 ? 1 : times[static_cast<std::size_t>(rep)];
            if (by < 0)
                fail<InvalidError>("[tile] reps: expected no negative number, got [{}]",
                                   fmt::join(times, ", "));
            if (by != 1) {
                apart.push_back(1);
                repeated.push_back(by);
            }
            apart.push_back(length);
            repeated.push_back(length);
            together.push_back(length * by);
        }
        if (repeated.size() == together.size()) return reshaped(x, together);
        return reshaped(broadcasted(reshaped(x, apart), repeated), together);
    }
    static X repeated(const X& x, Ints repeats, int axis) {
        check("repeat", x);
        const Shape shape = x.shape();
        const int d = axis_index("repeat", axis, shape.ndim(), shape);
        const auto times = repeats.view();
        if (times.size() != 1 && static_cast<std::int64_t>(times.size()) != shape[d])
            fail<InvalidError>("[repeat] repeats: expected one number or {}, got {}", shape[d],
                               times.size());
        if (std::ranges::any_of(times, [](std::int64_t n) { return n < 0; }))
            fail<InvalidError>("[repeat] repeats: expected no negative number, got [{}]",
                               fmt::join(times, ", "));
        if (times.empty()) return unchanged(x);  // no elements
        if (times.size() == 1) return times[0] == 1 ? unchanged(x) : each_repeated(x, times[0], d);
        std::vector<X> parts;
        for (std::size_t i = 0; i < times.size();) {
            std::size_t end = i;
            while (end < times.size() && times[end] == times[i]) ++end;
            const X part =
                slice(x, d, static_cast<std::int64_t>(i), static_cast<std::int64_t>(end));
            parts.push_back(each_repeated(part, times[i], d));
            i = end;
        }
        return joined(parts, d);
    }
    static X each_repeated(const X& x, std::int64_t times, int axis) {
        if (times == 1) return x;
        Extents apart, repeats, together;
        const Shape shape = x.shape();
        for (int d = 0; d < shape.ndim(); ++d) {
            apart.push_back(shape[d]);
            repeats.push_back(shape[d]);
            together.push_back(d == axis ? shape[d] * times : shape[d]);
            if (d != axis) continue;
            apart.push_back(1);
            repeats.push_back(times);
        }
        return reshaped(broadcasted(reshaped(x, apart), repeats), together);
    }

    static X padded(X x, Ints pad_width, std::string_view mode, double value) {
        check("pad", x);
        const Shape shape = x.shape();
        const auto n = static_cast<std::size_t>(shape.ndim());
        const auto given = pad_width.view();
        if (given.size() > 2 ? given.size() != 2 * n : given.empty())
            fail<InvalidError>("[pad] pad_width: expected 1, 2 or {} numbers, got {}", 2 * n,
                               given.size());
        Extents before, after;
        bool any = false;
        for (std::size_t d = 0; d < n; ++d) {
            const std::size_t first = given.size() > 2 ? 2 * d : 0;
            before.push_back(given[first]);
            after.push_back(given[given.size() == 1 ? 0 : first + 1]);
            any = any || before[d] != 0 || after[d] != 0;
        }
        if (std::ranges::any_of(given, [](std::int64_t w) { return w < 0; }))
            fail<InvalidError>("[pad] pad_width: expected no negative number, got [{}]",
                               fmt::join(given, ", "));
        constexpr std::string_view modes[] = {"constant", "edge", "reflect", "symmetric", "wrap"};
        if (std::ranges::find(modes, mode) == std::end(modes))
            fail<InvalidError>("[pad] mode: expected one of {}, got {}", fmt::join(modes, ", "),
                               mode);
        Extents extents;
        for (std::size_t d = 0; d < n; ++d) {
            extents.push_back(shape[static_cast<int>(d)]);
            if (__builtin_add_overflow(extents[d], before[d], &extents[d]) ||
                __builtin_add_overflow(extents[d], after[d], &extents[d]))
                fail<InvalidError>("[pad] pad_width: expected extents below 2^63, got {} + {} + {}",
                                   before[d], shape[static_cast<int>(d)], after[d]);
        }
        if (!any) return unchanged(x);
        if (mode == modes[0]) return padded_with(x, before, after, value);
        // Fails now if the result is too large, before the loops over its elements.
        (void)Array::empty(shape_of(extents), x.dtype(), x.device());
        for (std::size_t d = 0; d < n; ++d)
            x = padded_axis(x, static_cast<int>(d), before[d], after[d], mode);
        return x;
    }
    static X padded_with(const X& x, const Extents& before, const Extents& after, double value) {
        const Shape shape = x.shape();
        Extents extents, end;
        for (std::size_t d = 0; d < before.size(); ++d) {
            const std::int64_t length = shape[static_cast<int>(d)];
            end.push_back(before[d] + length);
            extents.push_back(end[d] + after[d]);
        }
        thread_local constinit ThreadFunction put("catena.put_item",
                                                  {"shape", "begin", "end", "step"});
        const auto placed = [&](const auto& z) {
            return run(
                put({Ints(span_of(extents)), Ints(span_of(before)), Ints(span_of(end)), Ints({})}),
                z);
        };
        if (value == 0) return placed(x);
        const Array inside = placed(Array::full(shape, 1, Dtype::bool8, x.device()));
        return where(constant(x, inside), placed(x), constant_like(x, value));
    }
    // Joins slices of x whose indices rise or fall by 1.
    static X padded_axis(const X& x, int axis, std::int64_t before, std::int64_t after,
                         std::string_view mode) {
        if (before == 0 && after == 0) return x;
        const std::int64_t n = x.shape()[axis];
        if (n == 0)
            fail<ShapeError>("[pad] x: expected elements along axis {} for mode {}, got shape {}",
                             axis, mode, to_string(x.shape()));
        const PaddedAxis index(mode, n);
        std::vector<X> parts;
        const auto add = [&](std::int64_t begin, std::int64_t end) {
            while (begin < end) {
                const std::int64_t first = index(begin);
                const std::int64_t step =
                    begin + 1 < end ? std::clamp<std::int64_t>(index(begin + 1) - first, -2, 2) : 1;
                std::int64_t next = begin + 1;
                while (next < end && index(next) - index(next - 1) == step) ++next;
                if (step != 0 && step != 1 && step != -1) next = begin + 1;
                const std::int64_t length = next - begin;
                if (step == 0)
                    parts.push_back(each_repeated(slice(x, axis, first, first + 1), length, axis));
                else if (step == -1)
                    parts.push_back(reversed(slice(x, axis, first - length + 1, first + 1), axis));
                else parts.push_back(slice(x, axis, first, first + length));
                begin = next;
            }
        };
        add(-before, 0);
        parts.push_back(x);
        add(n, n + after);
        return concat(parts, axis);
    }

    static X triangle(const char* function, const X& x, int k, bool upper) {
        need_axes(function, x, 2);
        const Shape shape = x.shape();
        const std::int64_t rows = shape[shape.ndim() - 2];
        const std::int64_t columns = shape[shape.ndim() - 1];
        const Array lower = tri(rows, columns, upper ? k - 1 : k, Dtype::bool8, x.device());
        const X zero = constant_like(x, 0);
        return upper ? where(constant(x, lower), zero, x) : where(constant(x, lower), x, zero);
    }
};

}  // namespace

#define CATENA_SHAPES(X)                                                                       \
    X concat(const ListOf<X>& xs, std::int64_t axis) {                                         \
        return Rearrange<X>::concatenated(xs.view(), axis);                                    \
    }                                                                                          \
    X stack(const ListOf<X>& xs, int axis) { return Rearrange<X>::stacked(xs.view(), axis); }  \
    X vstack(const ListOf<X>& xs) {                                                            \
        return Rearrange<X>::stacked_along("vstack", xs.view(), 2, 0);                         \
    }                                                                                          \
    X hstack(const ListOf<X>& xs) {                                                            \
        return Rearrange<X>::stacked_along("hstack", xs.view(), 1, -1);                        \
    }                                                                                          \
    X dstack(const ListOf<X>& xs) {                                                            \
        return Rearrange<X>::stacked_along("dstack", xs.view(), 3, 2);                         \
    }                                                                                          \
    std::vector<X> separate(const X& x, int axis) { return Rearrange<X>::separated(x, axis); } \
    std::vector<X> broadcast(const ListOf<X>& xs) {                                            \
        return Rearrange<X>::broadcast_all(xs.view());                                         \
    }                                                                                          \
    X pad_sequence(const ListOf<X>& xs, std::int64_t length, double padding) {                 \
        return Rearrange<X>::padded_sequence(xs.view(), length, padding);                      \
    }                                                                                          \
    X expand_dims(const X& x, Ints axis) { return Rearrange<X>::expanded(x, axis); }           \
    X squeeze(const X& x) { return Rearrange<X>::squeezed(x, nullptr); }                       \
    X squeeze(const X& x, Ints axis) { return Rearrange<X>::squeezed(x, &axis); }              \
    X flatten(const X& x) { return Rearrange<X>::flattened("flatten", x); }                    \
    X moveaxis(const X& x, Ints source, Ints destination) {                                    \
        return Rearrange<X>::moved(x, source, destination);                                    \
    }                                                                                          \
    X swapaxes(const X& x, int axis1, int axis2) {                                             \
        return Rearrange<X>::swapped(x, axis1, axis2);                                         \
    }                                                                                          \
    X rollaxis(const X& x, int axis, int start) {                                              \
        return Rearrange<X>::rolled_back(x, axis, start);                                      \
    }                                                                                          \
    X flip(const X& x) { return Rearrange<X>::flipped("flip", x, nullptr); }                   \
    X flip(const X& x, Ints axis) { return Rearrange<X>::flipped("flip", x, &axis); }          \
    X fliplr(const X& x) {                                                                     \
        const Ints axis(1);                                                                    \
        return Rearrange<X>::flipped("fliplr", x, &axis, 2);                                   \
    }                                                                                          \
    X flipud(const X& x) {                                                                     \
        const Ints axis(0);                                                                    \
        return Rearrange<X>::flipped("flipud", x, &axis, 1);                                   \
    }                                                                                          \
    X roll(const X& x, std::int64_t shift) {                                                   \
        const X flat = Rearrange<X>::flattened("roll", x);                                     \
        return reshape(Rearrange<X>::rolled(flat, shift, 0), x.shape());                       \
    }                                                                                          \
    X roll(const X& x, Ints shift, Ints axis) { return Rearrange<X>::rolled(x, shift, axis); } \
    X tile(const X& x, Ints reps) { return Rearrange<X>::tiled(x, reps); }                     \
    X repeat(const X& x, Ints repeats) {                                                       \
        return Rearrange<X>::repeated(Rearrange<X>::flattened("repeat", x), repeats, 0);       \
    }                                                                                          \
    X repeat(const X& x, Ints repeats, int axis) {                                             \
        return Rearrange<X>::repeated(x, repeats, axis);                                       \
    }                                                                                          \
    X pad(const X& x, Ints pad_width, std::string_view mode, double value) {                   \
        return Rearrange<X>::padded(x, pad_width, mode, value);                                \
    }                                                                                          \
    X tril(const X& x, int k) { return Rearrange<X>::triangle("tril", x, k, false); }          \
    X triu(const X& x, int k) { return Rearrange<X>::triangle("triu", x, k, true); }
CATENA_SHAPES(Variable)
CATENA_SHAPES(Array)
#undef CATENA_SHAPES

}  // namespace catena::functions
