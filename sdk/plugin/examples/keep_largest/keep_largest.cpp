// keep_largest: forward stores a mask for backward in a hidden output, and uses scratch memory.
#include <catena/plugin.hpp>

#include <limits>

using namespace catena::plugin;

struct KeepLargest {
    static constexpr auto about =
        describe("org.example.keep_largest",
                 "y = x where it is among the k largest of its row in magnitude, else 0\n\n"
                 "A row lies along the last axis; of equal ones the first are kept.",
                 in("x"), out("y", Port("mask", "1: kept").of("M").hidden()),
                 required<std::int64_t>("k", "how many to keep").range(1, 0x1p31))
            .example("x=(2,5) k=2")
            .example("x=(4) k=1")
            .example("x=(2,2,3) k=3");
    using types = Rows<Row<float, std::uint8_t>, Row<double, std::uint8_t>>;
    // Retains the mask, a byte per element, instead of x or y. A host never asks to add to
    // integers. A hidden float output would be stored with call.adds(1), like y with call.adds(0).
    static constexpr auto retain_y = ports(1);

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        s.check(!x.empty(), "x.ndim", "at least 1", x.size());
        s.y(0, x);
        s.y(1, x, dtype_of<std::uint8_t>());
    }
    static void gradient(const auto& g) { g.gx(0, g.gy(0) * cast(g.y(1), g.x_meta(0).dtype)); }

    // Requests scratch memory for the magnitudes of all rows. Kernels do not allocate memory.
    template <class T, class>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_FORWARD)
            plan.scratch_bytes = sizeof(T) * static_cast<std::uint64_t>(size_of(*call.raw().x[0]));
    }
    template <class T, class>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        const auto mask = call.template y<std::uint8_t>(1);
        T* const sizes = call.template scratch<T>();
        const bool add = call.adds(0);
        const std::int64_t length = x.dim(x.ndim() - 1);
        const std::int64_t k = std::min(call.template attr<"k">(), length);
        call.parallel(x.count(0, x.ndim() - 1), 8 * length,
                      [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                          for (std::int64_t r = begin * length; r < end * length; r += length) {
                              choose(x.data + r, length, k, sizes + r, mask.data + r);
                              for (std::int64_t i = r; i < r + length; ++i)
                                  store(y[i], add, mask[i] != 0 ? x[i] : T(0));
                          }
                      });
    }
    template <class T, class>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const auto mask = call.template y<std::uint8_t>(1);
        const bool add = call.adds(0);
        call.parallel(gx.size(), 1, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i)
                store(gx[i], add, mask[i] != 0 ? gy[i] : T(0));
        });
    }

private:
    template <class T>
    static T magnitude(T v) {
        return math::isnan(v) ? std::numeric_limits<T>::infinity() : math::abs(v);
    }
    // Sets mask[i] to 1 for the k largest of n > 0 numbers, else to 0. sizes has room for n.
    template <class T>
    static void choose(const T* x, std::int64_t n, std::int64_t k, T* sizes, std::uint8_t* mask) {
        std::transform(x, x + n, sizes, magnitude<T>);
        std::nth_element(sizes, sizes + (k - 1), sizes + n, std::greater<>());
        const T least = sizes[k - 1];
        std::int64_t equal = k - std::count_if(sizes, sizes + k, [&](T v) { return v > least; });
        for (std::int64_t i = 0; i < n; ++i) {
            const T m = magnitude(x[i]);
            mask[i] = m > least || (m == least && equal-- > 0) ? 1 : 0;
        }
    }
};

CATENA_PLUGIN("org.example.keep_largest", "1.0.0", KeepLargest);
