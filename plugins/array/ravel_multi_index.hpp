// Flat indices from one index for each axis.
#pragma once

#include "indices.hpp"

namespace catena::plugins {

// An index for each of up to 16 axes, and the axes' lengths.
template <class I>
struct AxisIndices {
    // Returns the flat index at position i, or `wrong`.
    CATENA_FN I operator()(std::int64_t i) const {
        std::int64_t flat = 0;
        bool right = true;
        for (std::size_t d = 0; d < n; ++d) {
            const std::int64_t index = ids[d][i];
            right = right && index >= -length[d] && index < length[d];
            flat = flat * length[d] + (index < 0 ? index + length[d] : index);
        }
        return right ? static_cast<I>(flat) : std::numeric_limits<I>::min();
    }

    const I* ids[CATENA_MAX_NDIM];
    std::int64_t length[CATENA_MAX_NDIM];
    std::size_t n;
};

template <class F, Isa isa, class I>
CATENA_KERNEL void ravel(const Call<F, isa>& call, const AxisIndices<I>& indices, Tensor<I> y) {
    for (std::size_t d = 0; d < indices.n; ++d)
        check_indices(F::about.name, ("x[" + std::to_string(d) + "]").c_str(), indices.ids[d],
                      y.shape, indices.length[d]);
    call.parallel(y.size(), static_cast<std::int64_t>(2 * indices.n),
                  [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) y[i] = indices(i);
                  });
}

struct RavelMultiIndex {
    static constexpr auto about =
        describe("catena.ravel_multi_index",
                 "y = the index in the flattened array for an index along each axis, as "
                 "numpy.ravel_multi_index\n\n"
                 "A negative index counts from the end. An index out of range is an error; on "
                 "CUDA, which does not wait for the indices, y is the least integer.",
                 in(Port("x", "for each axis, indices of the same shape").of("I").variadic()),
                 out(Port("y").of("I")), required<Ints>("shape", "the shape of the array"))
            .not_differentiable()
            .example("x=(2,2)[0,3] x=(2,2)[-5,4] shape=[4,5]")
            .example("x=(3)[-2,1] shape=[2]");
    using types = Rows<Row<std::int32_t>, Row<std::int64_t>>;
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        const Ints shape = shape_attribute(s);
        s.check(shape.size() == s.n_x(), "x", text_of(shape.size()) + " arrays, one for each axis",
                s.n_x());
        for (std::size_t i = 1; i < s.n_x(); ++i)
            s.check(std::ranges::equal(s.x(i), s.x(0)),
                    ("x[" + std::to_string(i) + "].shape").c_str(), s.x(0), s.x(i));
        std::int64_t size = 1;
        for (const std::int64_t d : shape)
            s.check(!__builtin_mul_overflow(size, d, &size), "shape", "at most 2^63 - 1 elements",
                    shape);
        s.check(s.dtype(0).bits == 64 || size <= std::numeric_limits<std::int32_t>::max(), "shape",
                "at most 2^31 - 1 elements for int32", shape);
        s.y(0, s.x(0));
    }
    template <class I>
    CATENA_KERNEL static void forward(const auto& call) {
        const Ints shape = call.template attr<"shape">();
        AxisIndices<I> indices = {.ids = {}, .length = {}, .n = shape.size()};
        for (std::size_t d = 0; d < indices.n; ++d) {
            indices.ids[d] = call.template x<I>(d).data;
            indices.length[d] = shape[d];
        }
        ravel(call, indices, call.template y<I>(0));
    }
};

CATENA_FUNCTIONS(RavelMultiIndex);

}  // namespace catena::plugins
