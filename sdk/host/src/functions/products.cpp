// batch_matmul, tensordot and einsum: each pair of operands becomes one F::matmul of stacks.
#include "promotion.hpp"

#include <catena/function_forms.hpp>

#include <numeric>

namespace catena::functions {
namespace {

using Labels = std::vector<int>;

bool has(const Labels& labels, int label) {
    return std::ranges::find(labels, label) != labels.end();
}
Labels joined(Labels first, const Labels& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}
// Returns the labels for which f returns true, in order.
template <class F>
Labels select(const Labels& labels, const F& f) {
    Labels selected;
    std::ranges::copy_if(labels, std::back_inserter(selected), f);
    return selected;
}

// Returns f(operands) in their common dtype. f gets all in the dtype in which this is computed, so
// that the dtype of a result does not depend on how it is computed.
template <class X, class F>
X in_common_dtype(const char* function, std::span<const X> operands, const F& f) {
    const Dtype dtype = arithmetic_dtype(common_dtype(function, "operands", operands));
    // Products of several half-precision operands would be rounded, or overflow, between them.
    const bool widened = item_size(dtype) == 2 && operands.size() > 2;
    std::vector<X> converted;
    for (const X& x : operands)
        converted.push_back(widened ? X(cast(promoted(x, dtype), Dtype::float32))
                                    : promoted(x, computed_dtype(dtype)));
    const X y = f(std::span<const X>(converted));
    return widened ? cast(y, dtype) : promoted(y, dtype);
}

// An array whose axes have labels, each once.
template <class X>
struct Labelled {
    X x;
    Labels labels;
};

// The extents of labels, 1 at first.
class LabelExtents {
public:
    LabelExtents() { of_.fill(1); }
    std::int64_t& operator[](int label) { return of_[static_cast<std::size_t>(label)]; }
    std::int64_t operator[](int label) const { return of_[static_cast<std::size_t>(label)]; }
    std::vector<std::int64_t> operator()(const Labels& labels) const {
        std::vector<std::int64_t> shape;
        for (const int label : labels) shape.push_back((*this)[label]);
        return shape;
    }
    std::int64_t size(const Labels& labels) const {
        std::int64_t size = 1;
        for (const int label : labels) size *= (*this)[label];
        return size;
    }
    double cost(const Labels& labels) const {  // the size, which may be beyond 2^63
        double cost = 1;
        for (const int label : labels) cost *= static_cast<double>((*this)[label]);
        return cost;
    }

private:
    std::array<std::int64_t, 128 + CATENA_MAX_NDIM> of_;
};

template <class X>
X reshaped(const X& x, std::span<const std::int64_t> shape) {
    return std::ranges::equal(x.shape(), shape) ? x : reshape(x, shape);
}
template <class X>
X transposed(const Labelled<X>& from, const Labels& to) {
    if (from.labels == to) return from.x;
    std::vector<std::int64_t> axes;
    for (const int label : to)
        axes.push_back(std::ranges::find(from.labels, label) - from.labels.begin());
    return transpose(from.x, axes);
}
template <class X>
Labelled<X> summed(const Labelled<X>& from, const Labels& to) {
    std::vector<std::int64_t> axes;
    for (std::size_t d = 0; d < from.labels.size(); ++d)
        if (!has(to, from.labels[d])) axes.push_back(static_cast<std::int64_t>(d));
    return axes.empty() ? from
                        : Labelled<X>{sum(from.x, axes),
                                      select(from.labels, [&](int l) { return has(to, l); })};
}

// Multiplies elements. Axes are in the order `to`, which has the labels of both.
template <class X>
X multiplied(const Labelled<X>& a, const Labelled<X>& b, const Labels& to,
             const LabelExtents& extents) {
    const auto aligned = [&](const Labelled<X>& of) {
        const X x = transposed(of, select(to, [&](int l) { return has(of.labels, l); }));
        std::vector<std::int64_t> shape;
        for (const int label : to) shape.push_back(has(of.labels, label) ? extents[label] : 1);
        return reshaped(x, shape);
    };
    return aligned(a) * aligned(b);
}

// The order of axes for a product of stacks of matrices: a is batch x rows x sum, b is batch x sum
// x columns, or the last two are exchanged and matmul transposes.
struct Layout {
    Labels batch, rows, sum, columns;
    bool ta, tb;
    bool swapped;  // a is the second operand
    Labels a() const { return joined(batch, ta ? joined(sum, rows) : joined(rows, sum)); }
    Labels b() const { return joined(batch, tb ? joined(columns, sum) : joined(sum, columns)); }
    Labels y() const { return joined(batch, joined(rows, columns)); }
};

// Returns the layout that moves the fewest elements. target: the order of the result, or null.
Layout best_layout(const Labels& a, const Labels& b, const Labels& sum, const Labels* target,
                   const LabelExtents& extents) {
    const auto in_order = [](const Labels& labels, const Labels& of) {
        return select(of, [&](int l) { return has(labels, l); });
    };
    const auto orders = [&](const Labels& labels, std::initializer_list<const Labels*> of) {
        std::vector<Labels> found;
        for (const Labels* order : of) {
            if (order == nullptr) continue;
            const Labels candidate = in_order(labels, *order);
            if (std::ranges::find(found, candidate) == found.end()) found.push_back(candidate);
        }
        return found;
    };
    const Labels batch = select(a, [&](int l) { return has(b, l) && !has(sum, l); });
    Layout best;
    double least = -1;
    const auto consider = [&](const Layout& layout) {
        const Labels& first = layout.swapped ? b : a;
        const Labels& second = layout.swapped ? a : b;
        const Labels y = layout.y();
        double moved = 0;
        if (layout.a() != first) moved += extents.cost(first);
        if (layout.b() != second) moved += extents.cost(second);
        if (target != nullptr && y != *target) moved += extents.cost(y);
        if (least >= 0 && moved >= least) return;
        best = layout;
        least = moved;
    };
    for (const bool swapped : {false, true}) {
        const Labels& first = swapped ? b : a;
        const Labels& second = swapped ? a : b;
        const auto only = [](const Labels& of, const Labels& other) {
            return select(of, [&](int l) { return !has(other, l); });
        };
        for (const Labels& batches : orders(batch, {&first, &second, target}))
            for (const Labels& rows : orders(only(first, second), {&first, target}))
                for (const Labels& sums : orders(sum, {&first, &second}))
                    for (const Labels& columns : orders(only(second, first), {&second, target}))
                        for (const int t : {0, 1, 2, 3})
                            if (least != 0)
                                consider(
                                    {batches, rows, sums, columns, t % 2 != 0, t > 1, swapped});
    }
    return best;
}

// Multiplies a and b and sums over the labels that are not in `keep`, which both have. target: the
// wanted order of the result, or null.
template <class X>
Labelled<X> contracted(const Labelled<X>& a, const Labelled<X>& b, const Labels& keep,
                       const Labels* target, const LabelExtents& extents) {
    // Up to this length, single dot products are slower than a product of elements and its sum.
    constexpr std::int64_t short_sum = 512;
    const auto shared = [&](int l) { return has(b.labels, l); };
    const Labels sum = select(a.labels, [&](int l) { return shared(l) && !has(keep, l); });
    const Labels only_b = select(b.labels, [&](int l) { return !has(a.labels, l); });
    if (sum.empty()) {
        const Labels to = target != nullptr ? *target : joined(a.labels, only_b);
        return {multiplied(a, b, to, extents), to};
    }
    const bool dots = only_b.empty() && std::ranges::all_of(a.labels, shared) &&
                      a.labels.size() > sum.size() && extents.size(sum) <= short_sum;
    if (dots || !is_floating(elements(a.x))) {  // matmul has no integers
        const Labels all = joined(a.labels, only_b);
        const auto sum_of_products = [&](const Labelled<X>& x, const Labelled<X>& y) {
            return summed(Labelled<X>{multiplied(x, y, all, extents), all}, keep);
        };
        if (item_size(a.x.dtype()) != 2) return sum_of_products(a, b);
        const auto wide = [](const Labelled<X>& of) {
            return Labelled<X>{cast(of.x, Dtype::float32), of.labels};
        };
        const Labelled<X> y = sum_of_products(wide(a), wide(b));
        return {cast(y.x, a.x.dtype()), y.labels};
    }
    const Layout layout = best_layout(a.labels, b.labels, sum, target, extents);
    const Labelled<X>& first = layout.swapped ? b : a;
    const Labelled<X>& second = layout.swapped ? a : b;
    const std::int64_t m = extents.size(layout.rows), n = extents.size(layout.columns);
    const std::int64_t k = extents.size(layout.sum);
    const auto stack = [&](const Labelled<X>& of, const Labels& order, std::int64_t rows,
                           std::int64_t columns) {
        std::vector<std::int64_t> shape = {rows, columns};
        if (!layout.batch.empty()) shape.insert(shape.begin(), extents.size(layout.batch));
        return reshaped(transposed(of, order), shape);
    };
    const X y = matmul(stack(first, layout.a(), layout.ta ? k : m, layout.ta ? m : k),
                       stack(second, layout.b(), layout.tb ? n : k, layout.tb ? k : n), layout.ta,
                       layout.tb);
    return {reshaped(y, extents(layout.y())), layout.y()};
}

// ---- tensordot

std::vector<std::int64_t> checked_axes(const char* what, Ints axes, const Shape& shape) {
    std::vector<std::int64_t> checked;
    for (const std::int64_t axis : axes.view()) {
        checked.push_back(axis_index("tensordot", axis, shape, what));
        if (std::ranges::count(checked, checked.back()) > 1)
            fail<InvalidError>("[tensordot] {}: expected each axis once, got {} twice", what, axis);
    }
    return checked;
}

template <class X>
X tensordot_of(const X& a, const X& b, Ints axes_a, Ints axes_b) {
    expect("tensordot", "a", a);
    expect("tensordot", "b", b);
    const Shape shape_a = a.shape(), shape_b = b.shape();
    const auto of_a = checked_axes("axes_a", axes_a, shape_a);
    const auto of_b = checked_axes("axes_b", axes_b, shape_b);
    if (of_a.size() != of_b.size())
        fail<ShapeError>("[tensordot] axes_b: expected {} axes, as many as axes_a, got {}",
                         of_a.size(), of_b.size());
    LabelExtents extents;
    Labels labels_a(static_cast<std::size_t>(shape_a.ndim()));
    std::iota(labels_a.begin(), labels_a.end(), 0);
    for (const int d : labels_a) extents[d] = shape_a[d];
    Labels labels_b;
    for (int d = 0; d < shape_b.ndim(); ++d) {
        const auto pair = std::ranges::find(of_b, d) - of_b.begin();
        const bool summed = std::cmp_less(pair, of_b.size());
        const int label =
            summed ? static_cast<int>(of_a[static_cast<std::size_t>(pair)]) : shape_a.ndim() + d;
        if (summed && extents[label] != shape_b[d])
            fail<ShapeError>("[tensordot] b.shape[{}]: expected {}, as a.shape[{}], got {}", d,
                             extents[label], label, shape_b[d]);
        extents[label] = shape_b[d];
        labels_b.push_back(label);
    }
    const Labels y = joined(select(labels_a, [&](int l) { return !has(labels_b, l); }),
                            select(labels_b, [&](int l) { return !has(labels_a, l); }));
    const X operands[] = {a, b};
    return in_common_dtype("tensordot", std::span<const X>(operands), [&](std::span<const X> x) {
        return transposed(
            contracted(Labelled<X>{x[0], labels_a}, Labelled<X>{x[1], labels_b}, y, &y, extents),
            y);
    });
}

template <class X>
X tensordot_of(const X& a, const X& b, int axes) {
    expect("tensordot", "a", a);
    expect("tensordot", "b", b);
    const int most = std::min(a.shape().ndim(), b.shape().ndim());
    if (axes < 0 || axes > most)
        fail<ShapeError>("[tensordot] axes: expected 0 to {}, for {} and {}, got {}", most,
                         to_string(a.shape()), to_string(b.shape()), axes);
    std::vector<std::int64_t> of_a(static_cast<std::size_t>(axes)), of_b = of_a;
    std::iota(of_a.begin(), of_a.end(), a.shape().ndim() - axes);
    std::iota(of_b.begin(), of_b.end(), 0);
    return tensordot_of(a, b, Ints(of_a), Ints(of_b));
}

// ---- batch_matmul

template <class X>
X batch_matmul_of(const X& a, const X& b, bool transa, bool transb) {
    const auto stack = [](const char* what, const X& x) {
        expect("batch_matmul", what, x);
        const Shape shape = x.shape();
        if (shape.ndim() != 2 && shape.ndim() != 3)
            fail<ShapeError>("[batch_matmul] {}.ndim: expected 2 or 3, got {}", what, shape.ndim());
        return shape.ndim() == 3 ? x : reshape(x, {shape[0], shape[1], 1});
    };
    const X left = stack("a", a), right = stack("b", b);
    if (left.shape()[0] != right.shape()[0])
        fail<ShapeError>("[batch_matmul] b.shape[0]: expected {}, got {}", left.shape()[0],
                         right.shape()[0]);
    return matmul(left, right, transa, transb);
}

// ---- einsum

// Labels: letters by their codes, unnamed axes from `unnamed` on, counted from the last.
constexpr int unnamed = 128;

struct Term {
    Labels before, after;  // of "..."
    bool dots = false;
    std::size_t size() const { return before.size() + after.size(); }
};

[[noreturn]] void fail_subscripts(std::string_view expected, std::string_view got) {
    fail<InvalidError>("[einsum] subscripts: expected {}, got \"{}\"", expected, got);
}

Term parse_term(std::string_view text, std::string_view all) {
    Term term;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == ' ') continue;
        if (text.substr(i, 3) == "...") {
            if (term.dots) fail_subscripts("one \"...\" at most in a term", all);
            term.dots = true;
            i += 2;
        } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
            (term.dots ? term.after : term.before).push_back(c);
        } else {
            fail_subscripts(fmt::format("letters, \",\", \"...\" and one \"->\", not '{}'", c),
                            all);
        }
    }
    return term;
}

struct Subscripts {
    std::vector<Term> inputs;
    Term output;
    bool is_explicit = false;
};

Subscripts parse_subscripts(std::string_view text, std::size_t n_operands) {
    Subscripts subscripts;
    const std::size_t arrow = text.find("->");
    subscripts.is_explicit = arrow != std::string_view::npos;
    std::string_view rest = text.substr(0, arrow);
    for (std::size_t comma = 0; comma != std::string_view::npos;) {
        comma = rest.find(',');
        subscripts.inputs.push_back(parse_term(rest.substr(0, comma), text));
        if (comma != std::string_view::npos) rest.remove_prefix(comma + 1);
    }
    if (subscripts.inputs.size() != n_operands)
        fail_subscripts(
            fmt::format("a term for each of {} operands, separated by \",\"", n_operands), text);
    if (!subscripts.is_explicit) return subscripts;
    subscripts.output = parse_term(text.substr(arrow + 2), text);
    const Labels labels = joined(subscripts.output.before, subscripts.output.after);
    for (const int label : labels) {
        const auto c = static_cast<char>(label);
        if (std::ranges::count(labels, label) > 1)
            fail_subscripts(fmt::format("'{}' once in the output", c), text);
        if (std::ranges::none_of(subscripts.inputs, [&](const Term& input) {
                return has(input.before, label) || has(input.after, label);
            }))
            fail_subscripts(fmt::format("'{}' of the output in an input", c), text);
    }
    return subscripts;
}

Labels unnamed_axes(int n) {
    Labels labels;
    while (n > 0) labels.push_back(unnamed + --n);
    return labels;
}

// Replaces two axes with the same label, `first` and `second`, by their diagonal.
template <class X>
X diagonal(const X& x, std::size_t first, std::size_t second) {
    const Shape shape = x.shape();
    std::vector<std::int64_t> axes, end;
    for (std::size_t d = 0; d < static_cast<std::size_t>(shape.ndim()); ++d)
        if (d != first && d != second) {
            axes.push_back(static_cast<std::int64_t>(d));
            end.push_back(shape[static_cast<int>(d)]);
        }
    axes.insert(axes.end(), {static_cast<std::int64_t>(first), static_cast<std::int64_t>(second)});
    const std::int64_t n = shape[static_cast<int>(first)];
    end.push_back(n * n);
    const std::vector<std::int64_t> begin(end.size(), 0);
    std::vector<std::int64_t> step(end.size(), 1);
    step.back() = n + 1;
    const X last = std::ranges::is_sorted(axes) ? x : transpose(x, axes);
    return get_item(reshape(last, end), begin, end, step);
}

// Sets the extents of a term's labels, and labels the operand: axes of length 1 vanish, repeated
// labels become diagonals.
template <class X>
Labelled<X> labelled(const X& x, const Labels& axes, std::size_t operand, LabelExtents& extents) {
    Labelled<X> result{x, {}};
    std::vector<std::int64_t> shape;
    for (std::size_t d = 0; d < axes.size(); ++d) {
        const std::int64_t n = x.shape()[static_cast<int>(d)];
        std::int64_t& extent = extents[axes[d]];
        if (n != extent && n != 1 && extent != 1) {
            const std::string label = axes[d] < unnamed
                                          ? fmt::format("'{}'", static_cast<char>(axes[d]))
                                          : std::string("\"...\"");
            fail<ShapeError>(
                "[einsum] operands[{}].shape[{}]: expected {} or 1 for {}, got {} in {}", operand,
                d, extent, label, n, to_string(x.shape()));
        }
        if (n == 1) continue;
        extent = n;
        shape.push_back(n);
        result.labels.push_back(axes[d]);
    }
    result.x = reshaped(x, shape);
    Labels& labels = result.labels;
    for (std::size_t d = 0; d < labels.size();) {
        const auto again =
            std::find(labels.begin() + static_cast<std::ptrdiff_t>(d) + 1, labels.end(), labels[d]);
        if (again == labels.end()) {
            ++d;
            continue;
        }
        const int label = labels[d];
        result.x = diagonal(result.x, d, static_cast<std::size_t>(again - labels.begin()));
        labels.erase(again);
        labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(d));
        labels.push_back(label);  // the diagonal is the last axis
    }
    return result;
}

template <class X>
X einsum_of(std::string_view text, std::span<const X> operands) {
    if (operands.empty()) throw InvalidError("[einsum] operands: expected at least one, got none");
    const Subscripts subscripts = parse_subscripts(text, operands.size());
    int n_unnamed = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const Term& term = subscripts.inputs[i];
        const int ndim = operands[i].shape().ndim(), named = static_cast<int>(term.size());
        if (term.dots ? ndim < named : ndim != named)
            fail<ShapeError>("[einsum] operands[{}].ndim: expected {}{} by \"{}\", got {}", i,
                             term.dots ? "at least " : "", named, text, ndim);
        n_unnamed = std::max(n_unnamed, ndim - named);
    }
    LabelExtents extents;
    std::vector<Labelled<X>> left;
    Labels all;  // of letters, with repetitions
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const Term& term = subscripts.inputs[i];
        const int rest = operands[i].shape().ndim() - static_cast<int>(term.size());
        left.push_back(labelled(
            operands[i], joined(joined(term.before, unnamed_axes(rest)), term.after), i, extents));
        all = joined(all, joined(term.before, term.after));
    }
    Labels output;
    if (subscripts.is_explicit) {
        const Term& term = subscripts.output;
        if (n_unnamed > 0 && !term.dots)
            fail_subscripts("\"...\" in the output, because operands have axes for it", text);
        output = joined(joined(term.before, unnamed_axes(term.dots ? n_unnamed : 0)), term.after);
    } else {
        std::ranges::sort(all);
        output = joined(unnamed_axes(n_unnamed),
                        select(all, [&](int l) { return std::ranges::count(all, l) == 1; }));
    }
    const Labels target = select(output, [&](int l) { return extents[l] != 1; });
    // Labels that the result needs after the operands i and j are one.
    const auto kept = [&](std::size_t i, std::size_t j) {
        Labels labels = target;
        for (std::size_t other = 0; other < left.size(); ++other)
            if (other != i && other != j) labels = joined(labels, left[other].labels);
        return labels;
    };
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = summed(left[i], kept(i, i));
    while (left.size() > 1) {
        std::size_t first = 0, second = 1;
        std::pair<double, double> least;
        for (std::size_t i = 0; i < left.size() && left.size() > 2; ++i)
            for (std::size_t j = i + 1; j < left.size(); ++j) {
                const Labels keep = kept(i, j);
                const Labels both =
                    joined(left[i].labels,
                           select(left[j].labels, [&](int l) { return !has(left[i].labels, l); }));
                const std::pair cost = {
                    extents.cost(select(both, [&](int l) { return has(keep, l); })) -
                        extents.cost(left[i].labels) - extents.cost(left[j].labels),
                    extents.cost(both)};
                if (i + j > 1 && cost >= least) continue;
                least = cost;
                first = i;
                second = j;
            }
        left[first] = contracted(left[first], left[second], kept(first, second),
                                 left.size() == 2 ? &target : nullptr, extents);
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(second));
    }
    const X y = transposed(left[0], target);
    // A call, so that the result is never an operand itself.
    return operands.size() == 1 ? reshape(y, extents(output)) : reshaped(y, extents(output));
}

}  // namespace

#define CATENA_PRODUCTS(X, LIST)                                                                   \
    X batch_matmul(const X& a, const X& b, bool transa, bool transb) {                             \
        return batch_matmul_of(a, b, transa, transb);                                              \
    }                                                                                              \
    X tensordot(const X& a, const X& b, int axes) { return tensordot_of(a, b, axes); }             \
    X tensordot(const X& a, const X& b, Ints axes_a, Ints axes_b) {                                \
        return tensordot_of(a, b, axes_a, axes_b);                                                 \
    }                                                                                              \
    X einsum(std::string_view subscripts, const LIST& operands) {                                  \
        return in_common_dtype("einsum", operands.view(),                                          \
                               [&](std::span<const X> x) { return einsum_of<X>(subscripts, x); }); \
    }
CATENA_PRODUCTS(Variable, VariableList)
CATENA_PRODUCTS(Array, ArrayList)
#undef CATENA_PRODUCTS

}  // namespace catena::functions
