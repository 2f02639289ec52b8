// A slice of an array.
#pragma once

#include "slices.hpp"

namespace catena::plugins {

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
    using types = Numbers;

    static void infer(const auto& s) {
        check_slices(s, s.x(0));
        s.y(0, slices_of(s, s.x(0)).shape());
    }
    static void gradient(const auto& g) {
        if (g.gy(0).is_constant()) return;
        g.gx(0, call<"catena.put_item">({g.gy(0)}, {set("shape", g.x_shape(0)),
                                                    set("begin", g.template attr<"begin">()),
                                                    set("end", g.template attr<"end">()),
                                                    set("step", g.template attr<"step">())}));
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
    using types = Numbers;

    static void infer(const auto& s) {
        const Ints shape = s.template attr<"shape">();
        const bool fits = shape.size() <= CATENA_MAX_NDIM &&
                          std::ranges::all_of(shape, [](std::int64_t d) { return d >= 0; });
        s.check(fits, "shape", "one that an array can have", shape, CATENA_E_INVALID);
        check_slices(s, shape);
        const Slices slices = slices_of(s, shape);
        s.check(std::ranges::equal(s.x(0), slices.shape()), "x.shape", slices.shape(), s.x(0));
        s.y(0, shape);
    }
    static void gradient(const auto& g) {
        if (g.gy(0).is_constant()) return;
        g.gx(0, call<"catena.get_item">({g.gy(0)}, {set("begin", g.template attr<"begin">()),
                                                    set("end", g.template attr<"end">()),
                                                    set("step", g.template attr<"step">())}));
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
        if (gy) take_slice(call, slices_of(call, gy.shape), gy.data, gx.data, call.adds(0));
        else if (!call.adds(0)) fill_zeros(call, gx);
    }
};

CATENA_FUNCTIONS(GetItem, PutItem);

}  // namespace catena::plugins
