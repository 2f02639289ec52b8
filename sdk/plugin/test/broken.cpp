// The function y = a b + c, z = a^2 with many faults, one at a time. conform() must find each
// fault, and none in the correct function.
#include <catena/plugin.hpp>

#include "faults.hpp"

namespace {

using namespace catena::plugin;

// Not differentiable: its gradient is that of a constant.
struct Frozen {
    static constexpr auto about =
        describe("org.example.frozen", "y = x", in("x"), out("y")).not_differentiable();
    template <class T>
    CATENA_FN static T forward(T x) {
        return x;
    }
};

template <Fault fault>
struct Broken {
    template <Fault... list>
    static constexpr bool is = ((fault == list) || ...);

    static constexpr const char* modes[] = {"one", "two", nullptr};
    static constexpr auto described() {
        if constexpr (is<Fault::choice, Fault::truth>)
            return describe(name_of(fault), "y = a b + c, z = a^2", in("a", "b", "c"),
                            out("y", "z"), attr("mode", "one", "a factor").one_of(modes),
                            attr("neg", false, "a sign"))
                .example("a=(2,3) b=(2,3) c=(2,3)");
        else return plain();
    }
    static constexpr auto plain() {
        const auto d =
            describe(name_of(fault), "y = a b + c, z = a^2", in("a", "b", "c"), out("y", "z"));
        if constexpr (is<Fault::no_example, Fault::no_call>) return d;
        else if constexpr (is<Fault::example_text>) return d.example("a=(2,3) b=(2,3) d=(2,3)");
        else return d.example("a=(2,3) b=(2,3) c=(2,3)").example("a=(4) b=(4) c=(4)");
    }
    static constexpr auto about = described();
    static constexpr auto retain_x = ports(0, 1);
    using isas = std::conditional_t<is<Fault::none, Fault::isa>, Isas, IsaList<Isa::baseline>>;
    using types = std::conditional_t<is<Fault::row>,
                                     Rows<Row<float>, Row<double>, Row<std::int32_t>>, Floating>;
    static constexpr unsigned widened = is<Fault::none> ? ~0u : 0u;

    static void infer(const auto& s) {
        if constexpr (is<Fault::row>)
            s.check(s.dtype(0).code == CATENA_CODE_FLOAT, "a.dtype", "a float", "another",
                    CATENA_E_DTYPE);
        if constexpr (is<Fault::dtype_name>)
            if (s.dtype(0).code != CATENA_CODE_FLOAT)
                fail(CATENA_E_DTYPE, "broken", "a.dtype", "a float", "another");
        if constexpr (is<Fault::no_call>) s.check(false, "a", "another", "this");
        if constexpr (is<Fault::name>) {
            for (std::size_t i = 1; i < 3; ++i)
                if (!std::ranges::equal(s.x(i), s.x(0)))
                    fail(CATENA_E_SHAPE, "broken", "shape", s.x(0), s.x(i));
        } else if constexpr (!is<Fault::shape, Fault::late>) {
            s.check(std::ranges::equal(s.x(1), s.x(0)), "b.shape", s.x(0), s.x(1));
            s.check(std::ranges::equal(s.x(2), s.x(0)), "c.shape", s.x(0), s.x(2));
        }
        s.y(0, s.x(0));
        s.y(1, s.x(0));
    }

    static void gradient(const auto& g) {
        const Var a = g.x(0);
        const Var b = g.x(1);
        const Var gy = g.gy(0);
        Var gz = g.gy(1);
        if constexpr (is<Fault::composed_missing>)
            if (gz.is_constant(0)) gz = gy;
        Var ga = gy * b + gz * (2.0 * a);
        if constexpr (is<Fault::gradient>) ga = ga * 1.25;
        Var gc = gy;
        if constexpr (is<Fault::composed_retained>) {
            const Var z(g.context(), g.raw().y[1]);  // g.y(1) would throw
            gc = gy + (z - z);
        }
        if constexpr (is<Fault::composed_targets>)
            if (!g.wants(0)) gc = 2.0 * gy;
        if (g.wants(0)) g.gx(0, ga);
        if constexpr (is<Fault::second_order>) g.gx(1, gy * call<"org.example.frozen">({a}));
        else if (g.wants(1)) g.gx(1, gy * a);
        if (g.wants(2)) g.gx(2, gc);
    }

    // With Fault::shape, reads at most one element past the end of an input that is too short.
    template <class T>
    CATENA_KERNEL static T at(const Tensor<const T>& x, std::int64_t i) {
        return x[is<Fault::shape> ? std::min(i, x.size()) : i];
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        const auto c = call.template x<T>(2);
        const auto y = call.template y<T>(0);
        const auto z = call.template y<T>(1);
        const bool add = call.adds(0) && !is<Fault::add>;
        const std::int64_t n = a.size();
        if constexpr (is<Fault::late>)
            if (b.size() != n || c.size() != n)
                call.fail(CATENA_E_SHAPE, "shapes", "equal ones", "others");
        T factor = T(1);
        if constexpr (is<Fault::isa>)
            if constexpr (std::decay_t<decltype(call)>::isa != Isa::baseline) factor = T(1.25);
        if constexpr (is<Fault::dtype> && sizeof(T) == 4) factor = T(1.25);
        if constexpr (is<Fault::choice>)
            if (call.template attr<"mode">() == "two") factor = T(2);
        if constexpr (is<Fault::truth>)
            if (call.template attr<"neg">()) factor = T(-1);
        if constexpr (is<Fault::layout>)
            if (reinterpret_cast<std::uintptr_t>(a.data) % 64 != 0) factor = T(1.25);
        if constexpr (is<Fault::size_one>)
            if (n == 1) factor = T(0) / T(n - 1);
        if constexpr (is<Fault::zero_d>)
            if (a.ndim() == 0) factor = T(0) / T(n - 1);
        if constexpr (is<Fault::stochastic>) {
            std::uint64_t seed = 0;
            std::uint64_t offset = 0;
            if (host().philox(call.context(), 1, &seed, &offset) != CATENA_OK) return;
        }
        const std::int64_t end = is<Fault::unwritten> ? n - 1 : n;
        call.parallel(end, 1, [&](std::int64_t from, std::int64_t to, std::int32_t slot) {
            T f = factor;
            if constexpr (is<Fault::threads>)
                if (slot > 0) f = T(1.25);
            static_cast<void>(slot);
            for (std::int64_t i = from; i < to; ++i) {
                store(y.data[i], add, f * (a[i] * at(b, i) + at(c, i)));
                store(z.data[i], add, a[i] * a[i]);
            }
        });
        if constexpr (is<Fault::write_beside>) y.data[n] = T(0);
        if constexpr (is<Fault::empty>)
            if (n == 0) y.data[0] = T(0);
        if constexpr (is<Fault::read_beside>)
            if (n > 0)
                y.data[0] += static_cast<T>(*reinterpret_cast<const std::uint8_t*>(b.data + n));
        if constexpr (is<Fault::input>)
            if (n > 0) const_cast<T*>(c.data)[0] += T(1);
        if constexpr (is<Fault::determinism>) {
            static int calls = 0;
            if (n > 0) y.data[0] += T(++calls) * T(1e-12);
        }
        if constexpr (is<Fault::uninitialised>) {
            T* const scratch = call.template scratch<T>();
            y.data[0] += scratch[0] == scratch[0] ? T(1) : T(0);
        }
        if constexpr (is<Fault::nan>)
            if (n > 0) y.data[n] = a[0] == a[0] ? y.data[n] : T(0);
    }
    template <class T>
    CATENA_KERNEL static void plan(const auto&,
                                   catena_plan& plan) requires(is<Fault::uninitialised>) {
        plan.scratch_bytes = sizeof(T);
    }

    template <class T>
    CATENA_KERNEL static void backward(const auto& call) requires(!std::is_integral_v<T>) {
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        const auto gy = call.template gy<T>(0);
        const auto gz = call.template gy<T>(1);
        const auto ga = call.template gx<T>(0);
        const auto gb = call.template gx<T>(1);
        const auto gc = call.template gx<T>(2);
        const auto adds = [&](std::size_t i) { return call.adds(i) && !is<Fault::backward_add>; };
        for (std::int64_t i = 0; i < a.size(); ++i) {
            const T g = gy ? gy[i] : T(0);
            const T h = gz ? gz[i] : is<Fault::missing> ? T(1) : T(0);
            T factor = T(1);
            if constexpr (is<Fault::backward>) factor = T(1.25);
            if constexpr (is<Fault::backward_dtype> && sizeof(T) == 4) factor = T(1.25);
            if (ga) store(ga.data[i], adds(0), factor * (g * at(b, i) + T(2) * h * a[i]));
            if (gb && (ga || !is<Fault::targets>)) store(gb.data[i], adds(1), g * a[i]);
            T unseen = T(0);
            if constexpr (is<Fault::retained>) unseen = T(0) * data_of<T>(*call.raw().x[2])[i];
            if (gc) store(gc.data[i], adds(2), g + unseen);
        }
        if constexpr (is<Fault::backward_input>)
            if (gy && gy.size() > 0) const_cast<T*>(gy.data)[0] = T(0);
        if constexpr (is<Fault::backward_beside>)
            if (gb) gb.data[gb.size()] = T(0);
    }
};

template <std::size_t... i>
Plugin<Frozen, Broken<static_cast<Fault>(i)>...> plugin_of(std::index_sequence<i...>);
using All = decltype(plugin_of(std::make_index_sequence<n_faults>()));

}  // namespace

extern "C" {
__attribute__((section(CATENA_MANIFEST_SECTION),
               used)) constexpr catena_manifest catena_manifest_v1 =
    manifest("org.example.broken", "1.0.0", "", "", "cpu");
const catena_plugin* CATENA_CALL catena_plugin_entry_v1(const catena_host* host, catena_ctx*) {
    the_host = host;
    return &All::table;
}
}
