// Functions with few inputs: correct ones, and ones that do not handle a missing input.
#include "few_inputs.hpp"

namespace few_inputs {

enum class Forgot { y_dtype, shape, dtype, gradient_shape, gradient };
constexpr const char* names[] = {"org.example.y_dtype", "org.example.shape", "org.example.dtype",
                                 "org.example.gradient_shape", "org.example.gradient"};

template <Forgot forgot>
struct Forgetful {
    static constexpr auto about =
        describe(names[static_cast<int>(forgot)], "y = b", in(Port("a").optional(), "b"), out("y"));
    static void infer(const auto& s) {
        if constexpr (forgot == Forgot::y_dtype) s.y(0, s.x(1));
        else if constexpr (forgot == Forgot::shape) s.y(0, s.x(0), s.dtype(1));
        else if constexpr (forgot == Forgot::dtype) s.y(0, s.x(1), s.wide(0));
        else s.y(0, s.x(1), s.dtype(1));
    }
    static void gradient(const auto& g) {
        if constexpr (forgot == Forgot::gradient_shape) g.gx(1, sum_to(g.gy(0), g.x_shape(0)));
        if constexpr (forgot == Forgot::gradient) g.gx(0, g.gy(0));
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto b = call.template x<T>(1);
        const auto y = call.template y<T>(0);
        for (std::int64_t i = 0; i < y.size(); ++i) store(y[i], call.adds(0), b[i]);
    }
};

}  // namespace few_inputs

using few_inputs::Forgetful;
using few_inputs::Forgot;
CATENA_PLUGIN("org.example.few_inputs", "1.0.0", few_inputs::Ramp, few_inputs::Scaled,
              Forgetful<Forgot::y_dtype>, Forgetful<Forgot::shape>, Forgetful<Forgot::dtype>,
              Forgetful<Forgot::gradient_shape>, Forgetful<Forgot::gradient>);
