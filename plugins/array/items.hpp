// Elements at index arrays along several axes, and replaced elements: what NumPy's keys consist of.
#pragma once

#include "axes.hpp"
#include "get_item.hpp"

namespace catena::plugins {

inline constexpr Port indices_of_axes =
    Port("indices", "for each of the axes; they broadcast together").of("I").not_differentiable();
inline constexpr Attribute indexed_axes =
    required<Ints>("axes", "the indexed axes of x, in rising order");
inline constexpr Attribute first_attribute =
    attr("first", false, "whether the axes of the indices come first, not in place of axes[0]");

// x with its indexed axes merged into one, and indices of that one.
class Merged {
public:
    Merged(const auto& g, const std::vector<Var>& indices) {
        const Meta x = g.x_meta(0);
        const Ints axes = g.template attr<"axes">();
        g.check(axes.size() == indices.size(), "indices", text_of(axes.size()) + " arrays",
                indices.size(), CATENA_E_INVALID);
        const bool rising = !axes.empty() && axes[0] >= 0 &&
                            std::ranges::adjacent_find(axes, std::greater_equal()) == axes.end();
        g.check(rising, "axes", "axes from 0 on, in rising order", axes, CATENA_E_INVALID);
        const auto indexed = marked(g, axes, x.shape().size(), "axes");
        axis_ = g.template attr<"first">() ? 0 : axes[0];
        List lengths;
        const auto add = [&](std::int64_t from, std::int64_t to, bool wanted) {
            for (std::int64_t d = from; d < to; ++d)
                if (indexed[static_cast<std::size_t>(d)] == wanted) order_.push_back(d);
        };
        add(0, axis_, false);
        add(0, x.ndim, true);
        add(axis_, x.ndim, false);
        for (const std::int64_t d : order_) split_.push_back(x.dim(d));
        for (const std::int64_t d : axes) lengths.push_back(x.dim(d));
        shape_ = split_;
        const auto begin = shape_.begin() + axis_;
        *begin = size_of(lengths);
        shape_.erase(begin + 1, begin + static_cast<std::ptrdiff_t>(axes.size()));
        x_ = reshape(permuted(g.x(0), order_), shape_);
        indices_ = axes.size() == 1 ? indices[0] : flat(g, indices, lengths);
    }
    const Var& x() const { return x_; }
    const Var& indices() const { return indices_; }
    std::int64_t axis() const { return axis_; }
    // The merged shape with other extents in place of the axis.
    List shape(Ints extents) const {
        List shape = shape_;
        const auto at = shape.erase(shape.begin() + axis_);
        shape.insert(at, extents.begin(), extents.end());
        return shape;
    }
    // An array like x() as one like the given x.
    Var undo(const Var& y) const {
        List inverse(order_.size());
        for (std::size_t d = 0; d < order_.size(); ++d)
            inverse[static_cast<std::size_t>(order_[d])] = static_cast<std::int64_t>(d);
        return permuted(reshape(y, split_), inverse);
    }

private:
    static Var flat(const auto& g, const std::vector<Var>& indices, const List& lengths) {
        List shape;
        std::string shapes;
        for (const Var& i : indices) {
            const Meta meta = i.meta();
            shapes += (shapes.empty() ? "" : " and ") + text_of(meta.shape());
            if (meta.shape().size() > shape.size())
                shape.insert(shape.begin(), meta.shape().size() - shape.size(), 1);
            for (std::int64_t d = 1; d <= meta.ndim; ++d) {
                std::int64_t& extent = *(shape.end() - d);
                g.check(extent == 1 || meta.dim(-d) == 1 || extent == meta.dim(-d), "indices",
                        "arrays that broadcast together", shapes);
                if (extent == 1) extent = meta.dim(-d);
            }
        }
        std::vector<Var> wide;
        for (const Var& i : indices)
            wide.push_back(broadcast_to(cast(i, dtype_of<std::int64_t>()), shape));
        return call<"catena.ravel_multi_index">(wide, {set("shape", Ints(lengths))});
    }

    List order_, split_, shape_;
    std::int64_t axis_ = 0;
    Var x_, indices_;
};

struct GetItemAt {
    static constexpr auto about =
        describe("catena.get_item_at", "y = the elements of x at indices along some axes",
                 in("x", indices_of_axes.variadic()), out("y"), indexed_axes, first_attribute)
            .internal()
            .promotes()
            .example("x=(2,3,4) indices=[1,0,1] indices=[3,-4,2] axes=[0,2] first=true")
            .example("x=(2,3,4) indices=(2,1)[0,2] indices=(2)[0,3] axes=[1,2]");

    static Var compose(const auto& g) {
        const Merged m(g, g.xs(1));
        return take(m.x(), m.indices(), m.axis());
    }
};

struct SetItemAt {
    static constexpr auto about =
        describe("catena.set_item_at",
                 "y = x with elements replaced at indices along some axes; if they repeat, the "
                 "last value counts",
                 in("x", Port("value", "broadcasts to the elements"), indices_of_axes.variadic()),
                 out("y"), indexed_axes, first_attribute)
            .internal()
            .promotes()
            .example("x=(2,3,4) value=(3) indices=[1,0,1] indices=[3,-4,2] axes=[0,2] first=true")
            .example("x=(2,3) value=() indices=[1,1] axes=[1]");

    static Var compose(const auto& g) {
        const Merged m(g, g.xs(2));
        const Meta indices = m.indices().meta();
        const Var rows = broadcast_to(g.x(1), m.shape(indices.shape()));
        if (indices.size() == 0) return g.x(0);
        // 1 + the position of each element's value, or 0; then the position, with any for 0.
        const std::int64_t length[] = {m.x().dim(m.axis())};
        const Var last = call<"catena.last_along_axis">(
            {reshape(m.indices(), {-1})}, {set("shape", Ints(length)), set("axis", 0)});
        const Var hit = last > 0.0;
        List wide(static_cast<std::size_t>(m.x().ndim()), 1);
        wide[static_cast<std::size_t>(m.axis())] = length[0];
        const std::int64_t n[] = {indices.size()};
        return m.undo(math::where(cast(reshape(hit, wide), dtype_of<bool>()),
                                  take(reshape(rows, m.shape(n)), last - hit, m.axis()), m.x()));
    }
};

struct SetSlice {
    static constexpr auto about =
        describe("catena.set_slice", "y = x, but y[begin:end:step, ...] = value",
                 in("x", Port("value", "the shape of the slice")), out("y"), begin_attribute,
                 end_attribute, step_attribute)
            .internal()
            .promotes()
            .example("x=(4,3) value=(2,3) begin=[1] end=[3]")
            .example("x=(4,5) value=(2,2) begin=[-1,0] end=[-4,5] step=[-2,3]");

    static Var compose(const auto& g) {
        const Meta x = g.x_meta(0), value = g.x_meta(1);
        const auto placed = [&](const Var& v) {
            return call<"catena.put_item">(
                {v}, {set("shape", x.shape()), g.same("begin"), g.same("end"), g.same("step")});
        };
        return math::where(placed(full(value.shape(), 1, dtype_of<bool>())), placed(g.x(1)),
                           g.x(0));
    }
};

CATENA_FUNCTIONS(GetItemAt, SetItemAt, SetSlice);

}  // namespace catena::plugins
