// Views, which share the memory of x: reshape and identity.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Reshape {
    static constexpr auto about =
        describe("catena.reshape", "y = x in another shape, in the same memory", in("x"), out("y"),
                 required<Ints>(
                     "shape", "the new shape; one extent may be -1: it is computed from the size"))
            .view()
            .example("x=(2,6) shape=[3,4]")
            .example("x=(2,6) shape=[3,-1]")
            .example("x=() shape=[1,1]");

    static void infer(const auto& s) {
        const Ints wanted = s.template attr<"shape">();
        s.check(wanted.size() <= CATENA_MAX_NDIM, "shape", "at most 16 extents", wanted.size());
        std::int64_t shape[CATENA_MAX_NDIM];
        std::int64_t known = 1;
        std::int64_t* open = nullptr;
        for (std::size_t d = 0; d < wanted.size(); ++d) {
            shape[d] = wanted[d];
            if (wanted[d] == -1 && open == nullptr) open = &shape[d];
            else if (wanted[d] < 0) s.check(false, "shape", "one -1 at most", wanted);
            else if (__builtin_mul_overflow(known, wanted[d], &known)) mismatch(s, wanted);
        }
        std::int64_t size = 1;
        for (const std::int64_t d : s.x(0))
            s.check(!__builtin_mul_overflow(size, d, &size), "x.shape", "at most 2^63 - 1 elements",
                    s.x(0));
        if (open != nullptr) {
            if (known == 0 || size % known != 0) mismatch(s, wanted);
            *open = size / known;
        } else if (known != size) {
            mismatch(s, wanted);
        }
        s.y(0, Shape(shape, wanted.size()));
    }
    static void gradient(const auto& g) { g.gx(0, reshape(g.gy(0), g.x_shape(0))); }

private:
    static void mismatch(const auto& s, Ints wanted) {
        s.check(false, "shape", text_of(s.size(0)) + " elements of x " + text_of(s.x(0)), wanted);
    }
};

struct Identity {
    static constexpr auto about =
        describe("catena.identity", "y = x, in the same memory", in("x"), out("y"))
            .view()
            .example("x=(2,3)")
            .example("x=()");

    static void infer(const auto& s) { s.y(0, s.x(0)); }
    static void gradient(const auto& g) { g.gx(0, g.gy(0)); }
};

CATENA_FUNCTIONS(Reshape, Identity);

}  // namespace catena::plugins
