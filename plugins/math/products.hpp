// batch_matmul, tensordot and einsum: each pair of operands becomes one product of stacks of matrices.
#pragma once

#include <array>
#include <string>

#include <catena/plugin.hpp>
#include <catena/plugin/precision.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// ---- Arrays whose axes have labels

using Labels = std::string;  // a character for each axis

inline bool has(const Labels& labels, char label) { return labels.find(label) != Labels::npos; }
inline Labels select(const Labels& labels, const auto& f) {
    Labels selected;
    std::ranges::copy_if(labels, std::back_inserter(selected), f);
    return selected;
}
// The labels that a set has, and those that it lacks, in order.
inline Labels within(const Labels& labels, const Labels& set) {
    return select(labels, [&](char l) { return has(set, l); });
}
inline Labels without(const Labels& labels, const Labels& set) {
    return select(labels, [&](char l) { return !has(set, l); });
}

struct Labelled {
    Var x;
    Labels labels;  // each once
};

// The extents of labels, 1 at first.
class LabelExtents {
public:
    LabelExtents() { of_.fill(1); }
    std::int64_t& operator[](char label) { return of_[static_cast<std::size_t>(label)]; }
    List operator()(const Labels& labels) const {
        List shape;
        for (const char label : labels) shape.push_back(of_[static_cast<std::size_t>(label)]);
        return shape;
    }
    std::int64_t size(const Labels& labels) const { return size_of((*this)(labels)); }
    double cost(const Labels& labels) const {  // the size, which may be beyond 2^63
        double cost = 1;
        for (const std::int64_t n : (*this)(labels)) cost *= static_cast<double>(n);
        return cost;
    }

private:
    std::array<std::int64_t, 128> of_;
};

inline Var reshaped(const Var& x, const List& shape) {
    const Meta meta = x.meta();
    return std::ranges::equal(meta.shape(), shape) ? x : reshape(x, shape);
}
inline Var transposed(const Labelled& from, const Labels& to) {
    if (from.labels == to) return from.x;
    List axes;
    for (const char label : to) axes.push_back(static_cast<std::int64_t>(from.labels.find(label)));
    return transpose(from.x, axes);
}
inline Labelled summed(const Labelled& from, const Labels& to) {
    List axes;
    for (std::size_t d = 0; d < from.labels.size(); ++d)
        if (!has(to, from.labels[d])) axes.push_back(static_cast<std::int64_t>(d));
    if (axes.empty()) return from;
    return {in_dtype(sum(from.x, axes), from.x.dtype()), within(from.labels, to)};
}
// Multiplies elements. Axes are in the order `to`, which has the labels of both.
inline Var multiplied(const Labelled& a, const Labelled& b, const Labels& to,
                      const LabelExtents& extents) {
    const auto aligned = [&](const Labelled& of) {
        List shape = extents(to);
        for (std::size_t d = 0; d < to.size(); ++d)
            if (!has(of.labels, to[d])) shape[d] = 1;
        return reshaped(transposed(of, within(to, of.labels)), shape);
    };
    return aligned(a) * aligned(b);
}

// The order of axes for a product of stacks of matrices: a is batch x rows x sum, b is batch x sum
// x columns, or the last two are exchanged and matmul transposes.
struct Layout {
    Labels batch, rows, sum, columns;
    bool ta, tb;
    bool swapped;  // a is the second operand
    Labels a() const { return batch + (ta ? sum + rows : rows + sum); }
    Labels b() const { return batch + (tb ? columns + sum : sum + columns); }
    Labels y() const { return batch + rows + columns; }
};

// Returns the layout that moves the fewest elements. target: the order of the result; empty: any.
inline Layout best_layout(const Labels& a, const Labels& b, const Labels& sum, const Labels& target,
                          const LabelExtents& extents) {
    const auto orders = [](const Labels& labels, const Labels& first, const Labels& second) {
        std::vector<Labels> found = {within(first, labels)};
        const Labels other = within(second, labels);
        if (other.size() == labels.size() && other != found[0]) found.push_back(other);
        return found;
    };
    Layout best;
    double least = -1;
    for (const bool swapped : {false, true}) {
        const Labels &first = swapped ? b : a, &second = swapped ? a : b;
        const auto consider = [&](const Layout& layout) {
            double moved = 0;
            if (layout.a() != first) moved += extents.cost(first);
            if (layout.b() != second) moved += extents.cost(second);
            if (!target.empty() && layout.y() != target) moved += extents.cost(target);
            if (least >= 0 && moved >= least) return;
            best = layout;
            least = moved;
        };
        const Labels both = without(within(a, b), sum);
        std::vector<Labels> batches = orders(both, first, second);
        if (!target.empty()) batches.push_back(within(target, both));
        for (const Labels& batch : batches)
            for (const Labels& rows : orders(without(first, second), first, target))
                for (const Labels& sums : orders(sum, first, second))
                    for (const Labels& columns : orders(without(second, first), second, target))
                        for (const int t : {0, 1, 2, 3})
                            if (least != 0)
                                consider({batch, rows, sums, columns, t % 2 != 0, t > 1, swapped});
    }
    return best;
}

// Multiplies a and b and sums over the labels that are not in `keep`, which both have. target: the
// wanted order of the result; empty: any.
inline Labelled contracted(const Labelled& a, const Labelled& b, const Labels& keep,
                           const Labels& target, const LabelExtents& extents) {
    // Up to this length, single dot products are slower than a product of elements and its sum.
    constexpr std::int64_t short_sum = 512;
    const Labels sum = without(within(a.labels, b.labels), keep);
    const Labels all = a.labels + without(b.labels, a.labels);
    if (sum.empty()) {
        const Labels to = target.empty() ? all : target;
        return {multiplied(a, b, to, extents), to};
    }
    const bool dots = a.labels.size() == b.labels.size() && all == a.labels &&
                      a.labels.size() > sum.size() && extents.size(sum) <= short_sum;
    const catena_dtype dtype = a.x.dtype();
    if (dots || dtype.code == CATENA_CODE_INT) {  // matmul has no integers
        const Labelled product = {
            multiplied({widened(a.x), a.labels}, {widened(b.x), b.labels}, all, extents), all};
        const Labelled y = summed(product, keep);
        return {in_dtype(y.x, dtype), y.labels};
    }
    const Layout layout = best_layout(a.labels, b.labels, sum, target, extents);
    const auto stack = [&](const Labelled& of, const Labels& order, bool transpose,
                           std::int64_t rows, std::int64_t columns) {
        if (transpose) std::swap(rows, columns);
        List shape = {rows, columns};
        if (!layout.batch.empty()) shape.insert(shape.begin(), extents.size(layout.batch));
        return reshaped(transposed(of, order), shape);
    };
    const std::int64_t k = extents.size(layout.sum);
    const Var y = matmul(
        stack(layout.swapped ? b : a, layout.a(), layout.ta, extents.size(layout.rows), k),
        stack(layout.swapped ? a : b, layout.b(), layout.tb, k, extents.size(layout.columns)),
        layout.ta, layout.tb);
    return {reshaped(y, extents(layout.y())), layout.y()};
}

// Calls body(x) in the dtype in which sums of products are computed: int32 for bytes and bool, and
// float32 for products of several half-precision operands, which would be rounded between them.
Var in_sums(std::vector<Var> x, const auto& body) {
    const catena_dtype dtype = x[0].dtype();
    const bool is_bool = dtype.code == CATENA_CODE_BOOL;
    for (Var& each : x)
        each = is_bool || dtype.code == CATENA_CODE_UINT ? cast(each, dtype_of<std::int32_t>())
               : x.size() > 2                            ? widened(each)
                                                         : each;
    return in_dtype(body(x), is_bool ? dtype_of<std::int32_t>() : dtype);
}

// ---- Functions

struct BatchMatmul {
    static constexpr auto about =
        describe("catena.batch_matmul", "y = the products of pairs of matrices",
                 in(Port("a", "(N, rows, columns), or (N, length) for columns of that length"),
                    Port("b", "as a")),
                 out("y"), attr("transa", false, "transpose each matrix of a first"),
                 attr("transb", false, "transpose each matrix of b first"))
            .example("a=(2,3,4) b=(2,4,2)")
            .example("a=(2,3) b=(2,3) transa=true");
    static Var compose(const auto& g) {
        const auto stack = [&](std::size_t i, const char* what) {
            const std::int64_t ndim = g.x(i).ndim();
            g.check(ndim == 2 || ndim == 3, what, "2 or 3", ndim);
            return ndim == 3 ? g.x(i) : expand_dims(g.x(i), {2});
        };
        const Var a = stack(0, "a.ndim"), b = stack(1, "b.ndim");
        g.check(a.dim(0) == b.dim(0), "b.shape[0]", a.dim(0), b.dim(0));
        return matmul(a, b, g.template attr<"transa">(), g.template attr<"transb">());
    }
};

struct Tensordot {
    static constexpr auto about =
        describe("catena.tensordot",
                 "y = the sum of products of a and b over pairs of axes, as numpy.tensordot\n\nThe "
                 "other "
                 "axes of a, then those of b, are the axes of y.",
                 in("a", "b"), out(Port("y").of("U")), required<Ints>("axes_a", "axes of a"),
                 required<Ints>("axes_b", "the axis of b for each of them"))
            .promotes()
            .example("a=(2,3,4) b=(3,4,2) axes_a=[1,2] axes_b=[0,1]")
            .example("a=(2,3,4) b=(4,2) axes_a=[2,0] axes_b=[0,1]");
    static Var compose(const auto& g) {
        const Meta a = g.x_meta(0), b = g.x_meta(1);
        const auto of_a = checked(g, "axes_a", g.template attr<"axes_a">(), a.shape().size());
        const auto of_b = checked(g, "axes_b", g.template attr<"axes_b">(), b.shape().size());
        g.check(of_a.size() == of_b.size(), "axes_b",
                text_of(of_a.size()) + " axes, as many as axes_a", of_b.size());
        LabelExtents extents;
        Labels labels_a, labels_b;
        for (std::size_t d = 0; d < a.shape().size(); ++d) {
            labels_a += static_cast<char>('A' + d);
            extents[labels_a[d]] = a.shape()[d];
        }
        for (std::size_t d = 0; d < b.shape().size(); ++d) {
            const std::size_t pair = of_b.find(static_cast<char>(d));
            const bool is_summed = pair != Labels::npos;
            labels_b += static_cast<char>(is_summed ? 'A' + of_a[pair] : 'a' + static_cast<int>(d));
            std::int64_t& extent = extents[labels_b[d]];
            if (is_summed && extent != b.shape()[d])
                g.check(false, ("b.shape[" + text_of(d) + "]").c_str(),
                        text_of(extent) + ", as a.shape[" + text_of(int{of_a[pair]}) + "]",
                        b.shape()[d]);
            extent = b.shape()[d];
        }
        const Labels y = without(labels_a, labels_b) + without(labels_b, labels_a);
        return in_sums({g.x(0), g.x(1)}, [&](const std::vector<Var>& x) {
            return transposed(contracted({x[0], labels_a}, {x[1], labels_b}, y, y, extents), y);
        });
    }

private:
    static Labels checked(const auto& g, const char* what, Ints axes, std::size_t ndim) {
        Labels indices;
        for (const std::int64_t axis : axes) {
            const auto d = static_cast<char>(g.axis(axis, ndim, what));
            if (has(indices, d))
                g.check(false, what, "each axis once", text_of(axis) + " twice", CATENA_E_INVALID);
            indices += d;
        }
        return indices;
    }
};

struct Einsum {
    static constexpr auto about =
        describe(
            "catena.einsum",
            "y = sums of products by numpy.einsum's subscripts\n\n"
            "A letter names an axis of an operand. Letters that are not in the output are "
            "summed; one that occurs twice in an operand is its diagonal. \"...\" stands for axes "
            "without names, which broadcast. An axis of length 1 broadcasts to the other axes "
            "of its letter. Without \"->\", the output has the axes of \"...\" and then all "
            "letters that occur once, in alphabetical order. Operands are multiplied in pairs, "
            "first those that leave the fewest elements.",
            in(Port("operands", "the arrays").variadic()), out(Port("y").of("U")),
            required<const char*>("subscripts", "a term for each operand: ij,jk->ik"))
            .promotes()
            .example("operands=(2,3) operands=(3,4) subscripts=\"ij,jk->ki\"")
            .example("operands=(2,3,2) subscripts=\"iji->ji\"")
            .example("operands=(2,2,3) operands=(3,2) subscripts=\"...ij,jk\"")
            .example("operands=(2) operands=(2,3) operands=(3) subscripts=\"i,ij,j->\"");
    static Var compose(const auto& g) {
        return in_sums(g.xs(0), [&](const std::vector<Var>& x) { return computed(g, x); });
    }

private:
    static void refuse(const auto& g, const std::string& expected) {
        g.check(false, "subscripts", expected,
                '"' + std::string(g.template attr<"subscripts">()) + '"', CATENA_E_INVALID);
    }
    // The letters of a term, with '.' for "...".
    static Labels parsed(const auto& g, std::string_view text) {
        Labels term;
        for (std::size_t i = 0; i < text.size(); ++i) {
            const char c = text[i];
            if (c == ' ') continue;
            const bool dots = text.substr(i, 3) == "...";
            if (!dots && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z'))
                refuse(g, std::string("letters, \",\", \"...\" and one \"->\", not '") + c + '\'');
            if (dots && has(term, '.')) refuse(g, "one \"...\" at most in a term");
            term += c;
            if (dots) i += 2;
        }
        return term;
    }
    // Replaces "..." by labels of n axes, counted from the last.
    static Labels expanded(Labels term, std::int64_t n) {
        Labels unnamed;
        while (n > 0) unnamed += static_cast<char>('0' + --n);
        const std::size_t at = term.find('.');
        return at == Labels::npos ? term : term.replace(at, 1, unnamed);
    }
    // Sets the extents of the labels. Axes of length 1 vanish, repeated labels become diagonals.
    static Labelled labelled(const auto& g, const Var& x, const Labels& axes, std::size_t operand,
                             LabelExtents& extents) {
        const Meta meta = x.meta();
        Labelled y{x, {}};
        for (std::size_t d = 0; d < axes.size(); ++d) {
            const std::int64_t n = meta.shape()[d];
            std::int64_t& extent = extents[axes[d]];
            if (n != extent && n != 1 && extent != 1)
                g.check(false,
                        ("operands[" + text_of(operand) + "].shape[" + text_of(d) + "]").c_str(),
                        text_of(extent) + " or 1 for " +
                            (axes[d] >= 'A' ? std::string{'\'', axes[d], '\''} : "\"...\""),
                        text_of(n) + " in " + text_of(meta.shape()));
            if (n == 1) continue;
            extent = n;
            y.labels += axes[d];
        }
        y.x = reshaped(x, extents(y.labels));
        for (std::size_t d = 0; d < y.labels.size();) {
            const std::size_t again = y.labels.find(y.labels[d], d + 1);
            if (again == Labels::npos) {
                ++d;
                continue;
            }
            y.x = call<"catena.diagonal">({y.x}, {set("axis1", d), set("axis2", again)});
            y.labels += y.labels[d];  // the diagonal is the last axis
            y.labels.erase(again, 1);
            y.labels.erase(d, 1);
        }
        return y;
    }

    static Var computed(const auto& g, const std::vector<Var>& x) {
        const std::string_view text = g.template attr<"subscripts">();
        const std::size_t arrow = text.find("->");
        const bool is_explicit = arrow != std::string_view::npos;
        std::vector<Labels> terms;
        std::string_view rest = text.substr(0, arrow);
        for (std::size_t comma = 0; comma != std::string_view::npos;) {
            comma = rest.find(',');
            terms.push_back(parsed(g, rest.substr(0, comma)));
            if (comma != std::string_view::npos) rest.remove_prefix(comma + 1);
        }
        if (terms.size() != x.size())
            refuse(g, "a term for each of " + text_of(x.size()) + " operands, separated by \",\"");
        Labels letters;  // of all terms, with repetitions
        for (const Labels& term : terms) letters += term;
        Labels output = is_explicit ? parsed(g, text.substr(arrow + 2)) : Labels();
        for (const char l : without(output, ".")) {
            const std::string name = {'\'', l, '\''};
            if (std::ranges::count(output, l) > 1) refuse(g, name + " once in the output");
            if (!has(letters, l)) refuse(g, name + " of the output in an input");
        }
        std::int64_t n_unnamed = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const bool dots = has(terms[i], '.');
            const std::int64_t named = static_cast<std::int64_t>(terms[i].size()) - (dots ? 1 : 0);
            const std::int64_t unnamed = x[i].ndim() - named;
            if (dots ? unnamed < 0 : unnamed != 0)
                g.check(
                    false, ("operands[" + text_of(i) + "].ndim").c_str(),
                    (dots ? "at least " : "") + text_of(named) + " by \"" + std::string(text) + '"',
                    x[i].ndim());
            n_unnamed = std::max(n_unnamed, unnamed);
        }
        if (is_explicit && n_unnamed > 0 && !has(output, '.'))
            refuse(g, "\"...\" in the output, because operands have axes for it");
        LabelExtents extents;
        std::vector<Labelled> left;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const auto named = static_cast<std::int64_t>(without(terms[i], ".").size());
            left.push_back(labelled(g, x[i], expanded(terms[i], x[i].ndim() - named), i, extents));
        }
        if (!is_explicit) {
            std::ranges::sort(letters);
            output = '.' + select(letters, [&](char l) {
                         return l != '.' && std::ranges::count(letters, l) == 1;
                     });
        }
        output = expanded(output, n_unnamed);
        const Labels target = select(output, [&](char l) { return extents[l] != 1; });
        // Labels that the result needs after the operands i and j are one.
        const auto kept = [&](std::size_t i, std::size_t j) {
            Labels labels = target;
            for (std::size_t other = 0; other < left.size(); ++other)
                if (other != i && other != j) labels += left[other].labels;
            return labels;
        };
        for (std::size_t i = 0; i < left.size(); ++i) left[i] = summed(left[i], kept(i, i));
        while (left.size() > 1) {
            std::size_t first = 0, second = 1;
            std::pair<double, double> least;
            for (std::size_t i = 0; i < left.size() && left.size() > 2; ++i)
                for (std::size_t j = i + 1; j < left.size(); ++j) {
                    const Labels both = left[i].labels + without(left[j].labels, left[i].labels);
                    const std::pair cost = {extents.cost(within(both, kept(i, j))) -
                                                extents.cost(left[i].labels) -
                                                extents.cost(left[j].labels),
                                            extents.cost(both)};
                    if (i + j > 1 && cost >= least) continue;
                    least = cost;
                    first = i;
                    second = j;
                }
            left[first] = contracted(left[first], left[second], kept(first, second),
                                     left.size() == 2 ? target : Labels(), extents);
            left.erase(left.begin() + static_cast<std::ptrdiff_t>(second));
        }
        return reshaped(transposed(left[0], target), extents(output));
    }
};

CATENA_FUNCTIONS(BatchMatmul, Tensordot, Einsum);

}  // namespace catena::plugins
