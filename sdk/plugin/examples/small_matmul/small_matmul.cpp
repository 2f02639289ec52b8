// small_matmul: a faster kernel for another plugin's function, for the calls in which it is faster.
#include <catena/plugin.hpp>

using namespace catena::plugin;

struct SmallMatmul {
    // Ports and attributes in the order that `catena describe matmul` shows.
    static constexpr auto about = kernels_for("catena.matmul", in("a", "b"), out("y"),
                                              attr("transa", false), attr("transb", false))
                                      .since(2)
                                      .named("small");
    using types = Rows<Row<float>>;
    static constexpr unsigned widened = 0;  // keeps half precision on math.catena

    struct Sizes {
        explicit Sizes(const auto& call)
            : transa(call.template attr<"transa">()),
              transb(call.template attr<"transb">()),
              m(call.template x<float>(0).dim(transa ? 1 : 0)),
              k(call.template x<float>(0).dim(transa ? 0 : 1)),
              n(call.template x<float>(1).dim(transb ? 0 : 1)) {}
        bool transa, transb;
        std::int64_t m, k, n;
    };

    // Other calls run on the kernel of math.catena. Reads only shapes: there may be no data yet.
    static bool supports(const auto& call) {
        // The largest extent; a BLAS is faster for larger matrices.
        constexpr std::int64_t most = 8;
        // It computes single matrices; matmul also takes vectors and stacks.
        if (call.template x<float>(0).ndim() != 2 || call.template x<float>(1).ndim() != 2)
            return false;
        const Sizes s(call);
        return s.m <= most && s.n <= most && s.k <= most;
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        const auto y = call.template y<T>(0);
        const Sizes s(call);
        for (std::int64_t i = 0; i < s.m; ++i)
            for (std::int64_t j = 0; j < s.n; ++j) {
                T sum = 0;
                for (std::int64_t l = 0; l < s.k; ++l)
                    sum += a[s.transa ? l * s.m + i : i * s.k + l] *
                           b[s.transb ? j * s.k + l : l * s.n + j];
                store(y[i * s.n + j], call.adds(0), sum);
            }
    }
};

CATENA_PLUGIN("org.example.small_matmul", "1.0.0", SmallMatmul);
