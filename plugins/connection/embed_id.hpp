// Embedding: gathers a row of a table for each id; its gradient adds rows to a table by id.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/add_rows.hpp>

namespace catena::plugins {

using namespace catena::plugin;

using IdTypes = Rows<Row<std::int32_t, float>, Row<std::int64_t, float>, Row<std::int32_t, double>,
                     Row<std::int64_t, double>>;

inline constexpr Attribute ignore_label_attribute =
    attr("ignore_label", Ints{}, "one or several ids, whose row is 0 and gets no gradient");

// The ids of a call, checked against the number of rows.
template <class I>
class Ids {
public:
    // Throws CATENA_E_VALUE for the first id that is neither a row nor ignored.
    Ids(const auto& call, Tensor<const I> x, std::int64_t rows)
        : ids_(x.data), ignored_(call.template attr<"ignore_label">()) {
        const std::int64_t n = x.size();
        bool right = true;
        for (std::int64_t i = 0; i < n; ++i) right = right && ids_[i] >= 0 && ids_[i] < rows;
        if (right) [[likely]] {
            all_ = ignored_.empty();
            return;
        }
        for (std::int64_t i = 0; i < n; ++i)
            if (!ignores(i) && (ids_[i] < 0 || ids_[i] >= rows)) refuse(call, x, i, rows);
    }
    std::int64_t operator[](std::int64_t i) const { return ids_[i]; }
    bool ignores(std::int64_t i) const {
        return !all_ && std::ranges::find(ignored_, std::int64_t{ids_[i]}) != ignored_.end();
    }

private:
    [[noreturn]] static void refuse(const auto& call, Tensor<const I> x, std::int64_t i,
                                    std::int64_t rows) {
        call.fail(
            CATENA_E_VALUE, text_of_element("x", i, x.shape).c_str(),
            rows == 0 ? "no id, for W has no rows" : "an id from 0 to " + std::to_string(rows - 1),
            x[i]);
    }

    const I* ids_;
    Ints ignored_;
    bool all_ = false;
};

// Sets row i of y to row x[i] of the table (0 for an ignored id), or adds it.
template <class I, class T>
CATENA_KERNEL void gather_rows(const auto& call, Tensor<const I> x, Tensor<const T> table, T* y,
                               bool add) {
    const Ids<I> ids(call, x, table.dim(0));
    const std::int64_t width = table.dim(1);
    call.parallel(x.size(), width, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t i = begin; i < end; ++i) {
            T* const to = y + i * width;
            if (ids.ignores(i)) {
                if (!add) std::fill_n(to, width, T(0));
                continue;
            }
            const T* const from = table.data + ids[i] * width;
            if (!add) {
                std::copy_n(from, width, to);
                continue;
            }
            CATENA_LOOP
            for (std::int64_t k = 0; k < width; ++k) to[k] += from[k];
        }
    });
}

// Adds rows[i] to table[x[i]], in the order of i. Without `add`, sets the table to 0 first.
template <class I, class T>
CATENA_KERNEL void scatter_rows(const auto& call, Tensor<const I> x, const T* rows, Tensor<T> table,
                                bool add) {
    const Ids<I> ids(call, x, table.dim(0));
    const std::int64_t size = table.dim(1);
    if (!add)
        call.parallel(table.dim(0), size, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            std::fill_n(table.data + begin * size, (end - begin) * size, T(0));
        });
    add_rows(call, {.n = x.size(), .table = table.dim(0), .size = size}, rows, table.data,
             [&](std::int64_t i) CATENA_LAMBDA { return ids.ignores(i) ? -1 : ids[i]; });
}

struct EmbedId {
    static constexpr auto about =
        describe(
            "catena.embed_id",
            "y = the row of W for each id\n\nAn id that is not a row is an error unless it is in "
            "ignore_label; negative ids do not count from the end. The gradient of W is added to "
            "the rows of the ids; if there is a gradient already, no other row is accessed.",
            in(Port("x", "ids, of any shape").of("I").not_differentiable(),
               Port("W", "(ids, size)")),
            out(Port("y", "x.shape + (size,)")), ignore_label_attribute)
            .example("x=(4) W=(2,3)")
            .example("x=(2,3) W=(3,2)")
            .example("x=() W=(2,3)")
            .example("x=(5) W=(2,2) ignore_label=1");
    using types = IdTypes;
    static constexpr auto retain_x = ports(0);

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        s.check_ndim(1, 2);
        s.check(x.size() < CATENA_MAX_NDIM, "x.ndim", "at most 15", x.size());
        std::int64_t shape[CATENA_MAX_NDIM];
        *std::copy(x.begin(), x.end(), shape) = s.x(1)[1];
        s.y(0, Shape(shape, x.size() + 1), s.dtype(1));
    }
    static void gradient(const auto& g) {
        g.gx(1, call<"catena.embed_id_gradient">(
                    {g.x(0), g.gy(0)}, {set("rows", g.x_shape(1)[0]), g.same("ignore_label")}));
    }

    template <class I, class T>
    CATENA_KERNEL static void forward(const auto& call) {
        gather_rows(call, call.template x<I>(0), call.template x<T>(1), call.template y<T>(0).data,
                    call.adds(0));
    }
    template <class I, class T>
    CATENA_KERNEL static void backward(const auto& call) {
        if (const auto gw = call.template gx<T>(1))
            scatter_rows(call, call.template x<I>(0), call.template gy<T>(0).data, gw,
                         call.adds(1));
    }
};

struct EmbedIdGradient {
    static constexpr auto about =
        describe("catena.embed_id_gradient",
                 "y = zeros (rows, size), to which each row of gy is "
                 "added where its id says",
                 in(Port("x", "ids").of("I").not_differentiable(), Port("gy", "x.shape + (size,)")),
                 out(Port("y", "(rows, size)")),
                 required<std::int64_t>("rows", "how many rows y has"), ignore_label_attribute)
            .internal()
            .example("x=(4) gy=(4,3) rows=2")
            .example("x=(2,2) gy=(2,2,3) rows=3 ignore_label=1");
    using types = IdTypes;
    static constexpr auto retain_x = ports(0);

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        const Shape gy = s.x(1);
        const std::int64_t rows = s.template attr<"rows">();
        s.check(rows >= 0, "rows", "at least 0", rows, CATENA_E_INVALID);
        if (gy.size() != x.size() + 1 || !std::ranges::equal(x, gy.first(x.size()))) [[unlikely]]
            s.check(false, "gy.shape", text_of(x) + " and one more axis", gy);
        const std::int64_t shape[] = {rows, gy.back()};
        s.y(0, shape, s.dtype(1));
    }
    static void gradient(const auto& g) {
        g.gx(1, call<"catena.embed_id">({g.x(0), g.gy(0)}, {g.same("ignore_label")}));
    }

    template <class I, class T>
    CATENA_KERNEL static void forward(const auto& call) {
        scatter_rows(call, call.template x<I>(0), call.template x<T>(1).data, call.template y<T>(0),
                     call.adds(0));
    }
    template <class I, class T>
    CATENA_KERNEL static void backward(const auto& call) {
        if (const auto gx = call.template gx<T>(1))
            gather_rows(call, call.template x<I>(0), call.template gy<T>(0), gx.data, call.adds(1));
    }
};

CATENA_FUNCTIONS(EmbedId, EmbedIdGradient);

}  // namespace catena::plugins
