// Accuracy: the fraction of labels that have the largest score.
#pragma once

#include <atomic>
#include <limits>

#include "labels.hpp"

namespace catena::plugins {

struct Accuracy {
    static constexpr auto about =
        describe("catena.accuracy",
                 "y = fraction of the rows whose largest score is at their label\n\n"
                 "Of equal scores the first counts as the largest. NaN for an empty batch, 0 if "
                 "all labels are ignored.",
                 in(Port("y", "scores (N, classes, ...)"),
                    Port("t", "labels (N, ...)").of("I").not_differentiable()),
                 out(Port("y", "the fraction ()")), ignore_label)
            .not_differentiable()
            .example("y=(3,4) t=(3)[0,3]")
            .example("y=(2,3,2) t=(2,2)[0,2]")
            .example("y=(4,2) t=(4) ignore_label=0");
    using types = LabelTypes;
    using isas = IsaList<Isa::baseline>;

    static void infer(const auto& s) {
        check_labels(s, "y.shape[1]");
        s.y(0, {});
    }
    template <class T, class I>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto y = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const std::int64_t ignored = call.template attr<"ignore_label">();
        const Axis axis(y.shape, 1);
        const std::int64_t rows = count_labels(call, t, axis.length, ignored);
        std::atomic<std::int64_t> hits = 0;
        call.parallel(axis.count(), axis.length, [&](std::int64_t begin, std::int64_t end) {
            std::int64_t right = 0;
            for (std::int64_t i = begin; i < end; ++i) {
                if (t[i] == ignored) continue;
                const T* row = y.data + i / axis.inner * axis.length * axis.inner + i % axis.inner;
                right += largest(row, axis.length, axis.inner) == t[i];
            }
            hits += right;
        });
        const T none = axis.count() == 0 ? std::numeric_limits<T>::quiet_NaN() : T(0);
        store(call.template y<T>(0)[0], call.adds(0),
              rows == 0 ? none : static_cast<T>(hits) / static_cast<T>(rows));
    }

private:
    // Returns the same index as NumPy's argmax: the first of equals; NaN is the largest.
    template <class T>
    static std::int64_t largest(const T* p, std::int64_t n, std::int64_t step) {
        std::int64_t best = 0;
        for (std::int64_t i = 1; i < n && !math::isnan(p[best * step]); ++i)
            if (!(p[i * step] <= p[best * step])) best = i;
        return n == 0 ? -1 : best;
    }
};

CATENA_FUNCTIONS(Accuracy);

}  // namespace catena::plugins
