// log_sum_exp: a reduction along one axis, in parallel over the lines along that axis.
#include <catena/plugin.hpp>
#include <catena/plugin/rows.hpp>

#include <limits>

using namespace catena::plugin;

struct LogSumExp {
    static constexpr auto about =
        describe("org.example.log_sum_exp", "y = log of the sum of e^x along an axis", in("x"),
                 out("y"), attr("axis", -1, "the axis to sum along; negative: from the last"))
            .example("x=(2,3)")
            .example("x=(2,3,4) axis=1")
            .example("x=(5) axis=0");
    static constexpr auto retain_x = ports(0);
    static constexpr auto retain_y = ports(0);

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        const std::size_t axis = s.axis(s.template attr<"axis">(), x.size());
        std::int64_t shape[CATENA_MAX_NDIM];
        const auto end = std::copy(x.begin(), x.begin() + axis, shape);
        std::copy(x.begin() + axis + 1, x.end(), end);
        s.y(0, Shape(shape, x.size() - 1));
    }

    // gx = softmax(x) gy. Reshapes y and gy to extent 1 on the axis, so that they broadcast.
    static void gradient(const auto& g) {
        const Shape x = g.x_shape(0);
        std::int64_t shape[CATENA_MAX_NDIM];
        std::copy(x.begin(), x.end(), shape);
        shape[axis_index(g.template attr<"axis">(), x.size())] = 1;
        const Shape kept(shape, x.size());
        g.gx(0, reshape(g.gy(0), kept) * math::exp(g.x(0) - reshape(g.y(0), kept)));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        const bool add = call.adds(0);
        const Axis axis(x.shape, axis_index(call.template attr<"axis">(), x.ndim()));
        for_each_line(call, axis, [&](std::int64_t line, std::int64_t first) CATENA_LAMBDA {
            const T* const v = x.data + first;
            const auto at = [&](std::int64_t i) CATENA_LAMBDA { return v[i * axis.inner]; };
            // Kept finite, so that infinity is not subtracted from itself.
            T most = std::numeric_limits<T>::lowest();
            for (std::int64_t i = 0; i < axis.length; ++i) most = at(i) > most ? at(i) : most;
            most = std::min(most, std::numeric_limits<T>::max());
            const T sum = sum_lanes<T>(
                axis.length, [&](std::int64_t i) CATENA_LAMBDA { return math::exp(at(i) - most); });
            store(y[line], add, most + math::log(sum));
        });
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const bool add = call.adds(0);
        const Axis axis(x.shape, axis_index(call.template attr<"axis">(), x.ndim()));
        for_each_line(call, axis, [&](std::int64_t line, std::int64_t first) CATENA_LAMBDA {
            for (std::int64_t i = 0; i < axis.length; ++i) {
                const std::int64_t k = first + i * axis.inner;
                store(gx[k], add, gy[line] * math::exp(x[k] - y[line]));
            }
        });
    }

private:
    // Calls body(line, first) for each line along the axis; x[first] is its first element.
    static void for_each_line(const auto& call, const Axis& axis, const auto& body) {
        call.parallel(axis.count(), axis.length,
                      [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                          for (std::int64_t i = begin; i < end; ++i)
                              body(i, i / axis.inner * axis.length * axis.inner + i % axis.inner);
                      });
    }
};

CATENA_PLUGIN("org.example.log_sum_exp", "1.0.0", LogSumExp);
