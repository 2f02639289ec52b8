// A slice of an array, as by NumPy's basic slicing.
#pragma once

#include <limits>

#include "runs.hpp"

namespace catena::plugins {

inline constexpr Attribute begin_attribute = attr(
    "begin", Ints{}, "first index for each leading axis; negative: from the end; none: the start");
inline constexpr Attribute end_attribute =
    attr("end", Ints{},
         "index after the last one, for each leading axis; negative: from the end; none or out of "
         "range: the end");
inline constexpr Attribute step_attribute =
    attr("step", Ints{}, "step between indices, negative for backwards; empty: all 1");

// A slice of an array of shape x. An axis without begin and end is taken whole; step defaults to 1.
class Slices {
public:
    Slices(Shape x, Ints begin, Ints end, Ints step) : ndim_(x.size()) {
        using Limits = std::numeric_limits<std::int64_t>;
        std::int64_t stride = 1;
        for (std::size_t d = ndim_; d-- > 0;) {
            const std::int64_t by = d < step.size() ? step[d] : 1;
            add(d, x[d], stride,
                d < begin.size() ? begin[d]
                : by > 0         ? 0
                                 : Limits::max(),
                d < end.size() ? end[d]
                : by > 0       ? Limits::max()
                               : Limits::min(),
                by);
            stride = times(stride, x[d]);
        }
        last_ = n_ > 0 ? axes_[0] : Run{1, 1};
        for (std::size_t i = 1; i < n_; ++i) rows_ = times(rows_, axes_[i].length);
    }
    Shape shape() const { return {shape_, ndim_}; }
    // The offset of the first element; lengths and strides of the axes after merging.
    std::int64_t start() const { return start_; }
    std::size_t n_axes() const { return n_; }
    std::int64_t length(std::size_t i) const { return axes_[n_ - 1 - i].length; }
    std::int64_t stride(std::size_t i) const { return axes_[n_ - 1 - i].stride; }

    // Calls body(dense, sparse, n, step) in parallel for runs of n elements: a run starts at offset
    // `dense` in the slice and at `sparse` in the array, where its elements are `step` apart.
    template <class Body>
    void for_each_run(const auto& call, const Body& body) const {
        for_each_piece(call, rows_, last_.length,
                       [&](std::int64_t row, std::int64_t first, std::int64_t n) {
                           std::int64_t sparse = start_ + first * last_.stride;
                           std::int64_t rest = row;
                           for (std::size_t i = 1; i < n_; rest /= axes_[i++].length)
                               sparse += rest % axes_[i].length * axes_[i].stride;
                           body(row * last_.length + first, sparse, n, last_.stride);
                       });
    }

private:
    struct Run {
        std::int64_t length;
        std::int64_t stride;  // in elements of the array
    };

    // Adds axis d; called from the last axis to the first. Merges axes that form one run.
    void add(std::size_t d, std::int64_t n, std::int64_t stride, std::int64_t begin,
             std::int64_t end, std::int64_t step) {
        const std::int64_t low = step > 0 ? 0 : -1;
        const std::int64_t high = step > 0 ? n : n - 1;
        const auto cut = [&](std::int64_t i) { return std::clamp(i < 0 ? i + n : i, low, high); };
        begin = cut(begin);
        end = cut(end);
        const bool some = step > 0 ? begin < end : begin > end;
        const std::int64_t length = some ? (end - begin - (step > 0 ? 1 : -1)) / step + 1 : 0;
        shape_[d] = length;
        start_ = plus(start_, length > 0 ? times(begin, stride) : 0);
        // The step is irrelevant for a single element.
        const std::int64_t jump = length > 1 ? times(step, stride) : stride;
        if (n_ > 0 && jump == stride && times(axes_[n_ - 1].stride, axes_[n_ - 1].length) == stride)
            axes_[n_ - 1].length = times(axes_[n_ - 1].length, length);
        else axes_[n_++] = {length, jump};
    }

    std::size_t ndim_;
    std::size_t n_ = 0;
    std::int64_t shape_[CATENA_MAX_NDIM];
    Run axes_[CATENA_MAX_NDIM];  // the last axis first
    Run last_;
    std::int64_t start_ = 0;
    std::int64_t rows_ = 1;
};

// Returns the slice that the call's attributes describe. Call check_slices() before.
template <class Call>
Slices slices_of(const Call& call, Shape x) {
    return {x, call.template attr<"begin">(), call.template attr<"end">(),
            call.template attr<"step">()};
}
inline void check_slices(const auto& s, Shape x) {
    const Ints begin = s.template attr<"begin">();
    const Ints end = s.template attr<"end">();
    const Ints step = s.template attr<"step">();
    const auto wrong = [&](const char* what, const std::string& expected, Ints got) {
        s.check(false, what, expected, got, CATENA_E_INVALID);
    };
    const std::string most = "at most " + text_of(x.size()) + " indices, one for each axis";
    if (begin.size() > x.size()) wrong("begin", most, begin);
    if (end.size() > x.size()) wrong("end", most, end);
    if (step.size() > x.size()) wrong("step", most, step);
    const auto unlike = [](Ints a, Ints b) {
        return !a.empty() && !b.empty() && a.size() != b.size();
    };
    if (unlike(begin, end)) wrong("end", text_of(begin.size()) + " indices, as begin has", end);
    if (unlike(begin, step) || unlike(end, step))
        wrong("step", "as many distances as begin and end have indices", step);
    if (std::ranges::find(step, 0) != step.end()) wrong("step", "no 0", step);
}

// take_slice() copies or adds a slice of x to the dense y, write_slice() the dense y to a slice of x.
template <class T>
CATENA_KERNEL void take_slice(const auto& call, const Slices& slices, const T* x, T* y, bool add) {
    slices.for_each_run(
        call, [&](std::int64_t dense, std::int64_t sparse, std::int64_t n, std::int64_t step) {
            move_run(x + sparse, step, y + dense, 1, n, add);
        });
}
template <class T>
CATENA_KERNEL void write_slice(const auto& call, const Slices& slices, const T* y, T* x, bool add) {
    slices.for_each_run(
        call, [&](std::int64_t dense, std::int64_t sparse, std::int64_t n, std::int64_t step) {
            move_run(y + dense, 1, x + sparse, step, n, add);
        });
}
// Sets the rest of x to 0, unless it adds.
template <class T>
CATENA_KERNEL void put_slice(const auto& call, const Slices& slices, const T* y, Tensor<T> x,
                             bool add) {
    if (!add && size_of(slices.shape()) != x.size()) fill_zeros(call, x);
    write_slice(call, slices, y, x.data, add);
}

struct GetItem {
    static constexpr auto about =
        describe("catena.get_item",
                 "y = x[begin:end:step, ...], a copy of a slice as in NumPy\n\n"
                 "All axes are kept; axes beyond the length of the lists are not sliced.",
                 in("x"), out("y"), begin_attribute, end_attribute, step_attribute)
            .example("x=(4,3) begin=[1] end=[3]")
            .example("x=(4,5) begin=[-1,0] end=[-4,5] step=[-2,3]")
            .example("x=(2,3,2) begin=[0,1] end=[2,2]")
            .example("x=(4,3) begin=[1,-2]")
            .example("x=(3) begin=[2] end=[1]");
    using isas = IsaList<Isa::baseline>;
    using types = Elements;
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        check_slices(s, s.x(0));
        s.y(0, slices_of(s, s.x(0)).shape());
    }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.put_item">({g.gy(0)}, {set("shape", g.x_shape(0)), g.same("begin"),
                                                    g.same("end"), g.same("step")}));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        take_slice(call, slices_of(call, x.shape), x.data, call.template y<T>(0).data,
                   call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gx = call.template gx<T>(0);
        put_slice(call, slices_of(call, gx.shape), call.template gy<T>(0).data, gx, call.adds(0));
    }
};

struct PutItem {
    static constexpr auto about =
        describe("catena.put_item", "y = zeros but for y[begin:end:step, ...] = x", in("x"),
                 out("y"), required<Ints>("shape", "the shape of y"), begin_attribute,
                 end_attribute, step_attribute)
            .internal()
            .example("x=(2,3) shape=[4,3] begin=[1] end=[3]")
            .example("x=(2,2) shape=[4,5] begin=[-1,0] end=[-4,5] step=[-2,3]");
    using isas = IsaList<Isa::baseline>;
    using types = Elements;
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        const Ints shape = shape_attribute(s);
        check_slices(s, shape);
        const Slices slices = slices_of(s, shape);
        s.check_shape(0, slices.shape());
        s.y(0, shape);
    }
    static void gradient(const auto& g) {
        g.gx(0,
             call<"catena.get_item">({g.gy(0)}, {g.same("begin"), g.same("end"), g.same("step")}));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto y = call.template y<T>(0);
        put_slice(call, slices_of(call, y.shape), call.template x<T>(0).data, y, call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        take_slice(call, slices_of(call, gy.shape), gy.data, gx.data, call.adds(0));
    }
};

// Appends to a cache without a copy of it.
struct ItemUpdate {
    static constexpr auto about =
        describe("catena.item_update", "x[begin:end:step, ...] = value, in the memory of x",
                 in(Port("x").mutated(), "value"), out(), begin_attribute, end_attribute,
                 step_attribute)
            .not_differentiable()
            .internal()
            .example("x=(4,3) value=(2,3) begin=[1] end=[3]")
            .example("x=(2,5,2) value=(2,1,2) begin=[0,3] end=[2,4]")
            .example("x=(4,5) value=(2,2) begin=[-1,0] end=[-4,5] step=[-2,3]");
    using isas = IsaList<Isa::baseline>;
    using types = Elements;
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        check_slices(s, s.x(0));
        const Slices slices = slices_of(s, s.x(0));
        s.check_shape(1, slices.shape());
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template mutated<T>(0);
        write_slice(call, slices_of(call, x.shape), call.template x<T>(1).data, x.data, false);
    }
};

CATENA_FUNCTIONS(GetItem, PutItem, ItemUpdate);

}  // namespace catena::plugins
