// Elementwise functions on the CPU: one loop for each dtype and instruction set, and one driver that
// threads it, broadcasts its inputs, adds where asked to, and sums gradients back.
#pragma once

#include <algorithm>

#include "catena/plugin/broadcast.hpp"
#include "catena/plugin/elementwise.hpp"
#include "catena/plugin/kernel.hpp"
#include "catena/plugin/reduce.hpp"

namespace catena::plugin {

// out[k][0 .. n) from in[k][0 .. n), all contiguous.
template <class T>
using Loop = void (*)(std::int64_t n, T* const* out, const T* const* in, const T* attrs);

namespace detail {

template <class F, class T>
struct ForwardLoop {
    CATENA_KERNEL static void run(std::int64_t n, T* const* out, const T* const* in,
                                  const T* attrs) {
        loop(n, out[0], in, attrs, std::make_index_sequence<n_inputs<F>>(),
             std::make_index_sequence<n_attributes<F>>());
    }
    template <std::size_t... X, std::size_t... A>
    CATENA_KERNEL static void loop(std::int64_t n, T* y, const T* const* in, const T* attrs,
                                   std::index_sequence<X...>, std::index_sequence<A...>) {
        const T* const x[] = {in[X]...};
        const T a[] = {attrs[A]..., T()};
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) y[i] = F::template forward<T>(x[X][i]..., a[A]...);
        (void)a;
    }
};

// in: gy, every x, y. Gradients outside the mask are not computed.
template <class F, class T, std::uint64_t mask>
struct BackwardLoop {
    CATENA_KERNEL static void run(std::int64_t n, T* const* out, const T* const* in,
                                  const T* attrs) {
        loop(n, out, in, attrs, std::make_index_sequence<n_inputs<F>>(),
             std::make_index_sequence<n_attributes<F>>());
    }
    template <std::size_t... X, std::size_t... A>
    CATENA_KERNEL static void loop(std::int64_t n, T* const* out, const T* const* in,
                                   const T* attrs, std::index_sequence<X...> xs,
                                   std::index_sequence<A...> as) {
        constexpr Retained retained = retained_by_formula<F>();
        constexpr std::size_t n_x = sizeof...(X);
        T* const gx[] = {out[X]...};
        const T* const p[] = {in[0], in[1 + X]..., in[1 + n_x]};
        const T a[] = {attrs[A]..., T()};
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) {
            const T x[] = {((retained.x >> X & 1) != 0 ? p[1 + X][i] : T())...};
            const T y = retained.y != 0 ? p[1 + n_x][i] : T();
            const auto g = gradient_of<F, T>(p[0][i], x, y, a, xs, as);
            (((mask >> X & 1) != 0 ? void(gx[X][i] = g.values[X]) : void()), ...);
        }
    }
};

template <class K, class T, Isa isa>
constexpr Loop<T> loop_of() {
    return &Target<isa>::template call<K, std::int64_t, T* const*, const T* const*, const T*>;
}

// One loop for each set of wanted gradients, or, with many inputs, one that computes all.
template <class F>
inline constexpr bool loop_per_mask = n_inputs<F> <= 3;
template <class F, class T, Isa isa>
Loop<T> backward_loop(std::uint64_t mask) {
    constexpr std::size_t n = n_inputs<F>;
    if constexpr (loop_per_mask<F>) {
        static constexpr auto loops = []<std::size_t... M>(std::index_sequence<M...>) {
            return std::array<Loop<T>, sizeof...(M)>{
                loop_of<BackwardLoop<F, T, M + 1>, T, isa>()...};
        }
        (std::make_index_sequence<(std::size_t{1} << n) - 1>());
        return loops[mask - 1];
    } else {
        return loop_of<BackwardLoop<F, T, ~std::uint64_t{0}>, T, isa>();
    }
}

// The cost of an element, in elements added: F::work where a function says so.
template <class F>
constexpr std::int64_t work_of() {
    if constexpr (requires { F::work; }) return F::work;
    else return 1;
}

enum class Into { direct, sum, nowhere };

// Everything but the plain case: threads, broadcast inputs, outputs that are added to.
template <class T>
struct Job {
    static constexpr std::size_t most = CATENA_MAX_PORTS + 2;

    void input(const T* data, Shape from) {
        in[n_in] = data;
        staged[n_in] = data != nullptr && !std::ranges::equal(from, shape);
        if (staged[n_in]) {
            walk[n_in] = Broadcast(from, shape);
            buffers += 2;
        }
        ++n_in;
    }
    void output(T* data, Into how) {
        out[n_out] = data;
        into[n_out++] = how;
        buffers += how == Into::direct ? 0 : 1;
    }
    void run(catena_ctx* ctx, std::int64_t n, std::int64_t work) {
        parallel<Isa::baseline>(ctx, n, work, [this](std::int64_t begin, std::int64_t end) {
            buffers == 0 ? whole(begin, end) : blocks(begin, end);
        });
    }

    Loop<T> loop;
    const T* attrs;
    Shape shape;
    std::size_t n_in = 0;
    std::size_t n_out = 0;
    std::int64_t buffers = 0;
    const T* in[most];
    bool staged[most];
    Broadcast walk[most];
    T* out[most];
    Into into[most];

private:
    void whole(std::int64_t begin, std::int64_t end) const {
        const T* from[most];
        T* to[most];
        for (std::size_t k = 0; k < n_in; ++k) from[k] = in[k] == nullptr ? nullptr : in[k] + begin;
        for (std::size_t k = 0; k < n_out; ++k)
            to[k] = out[k] == nullptr ? nullptr : out[k] + begin;
        loop(end - begin, to, from, attrs);
    }
    void blocks(std::int64_t begin, std::int64_t end) const {
        alignas(64) T arena[65536 / sizeof(T)];
        const auto block = std::min<std::int64_t>(
            2048, static_cast<std::int64_t>(std::size(arena)) / buffers / 16 * 16);
        const T* from[most];
        T* to[most];
        T* own[2 * most];
        T* next = arena;
        // Values that repeat soon are laid out once; a block then starts at its phase.
        for (std::size_t k = 0; k < n_in; ++k) {
            if (!staged[k]) continue;
            own[k] = next;
            next += 2 * block;
            if (walk[k].period() <= block) walk[k].load(in[k], 0, block + walk[k].period(), own[k]);
        }
        for (std::size_t k = 0; k < n_out; ++k) {
            if (into[k] == Into::direct) continue;
            own[most + k] = next;
            next += block;
        }
        for (std::int64_t b = begin; b < end; b += block) {
            const std::int64_t n = std::min(block, end - b);
            for (std::size_t k = 0; k < n_in; ++k) {
                from[k] = in[k] == nullptr ? nullptr : in[k] + b;
                if (!staged[k]) continue;
                from[k] = own[k];
                if (walk[k].period() <= block) from[k] += b % walk[k].period();
                else walk[k].load(in[k], b, n, own[k]);
            }
            for (std::size_t k = 0; k < n_out; ++k) {
                to[k] = own[most + k];
                if (into[k] == Into::direct) to[k] = out[k] == nullptr ? nullptr : out[k] + b;
            }
            loop(n, to, from, attrs);
            for (std::size_t k = 0; k < n_out; ++k) {
                if (into[k] != Into::sum) continue;
                for (std::int64_t i = 0; i < n; ++i) out[k][b + i] += to[k][i];
            }
        }
    }
};

// The call as it comes when it is not plain: apart from F, so that it is compiled once for a dtype.
template <class T>
[[gnu::noinline]] catena_status forward_general(catena_ctx* ctx, const catena_call& call,
                                                Loop<T> loop, const T* attrs,
                                                std::int64_t work) noexcept {
    return guarded(ctx, [&] {
        const catena_tensor& y = *call.y[0];
        Job<T> job;
        job.loop = loop;
        job.attrs = attrs;
        job.shape = shape_of(y);
        for (std::size_t i = 0; i < call.n_x; ++i)
            job.input(data_of<const T>(*call.x[i]), shape_of(*call.x[i]));
        job.output(data_of<T>(y), call.req[0] == CATENA_REQ_ADD ? Into::sum : Into::direct);
        job.run(ctx, size_of(y), work);
    });
}

constexpr std::uint64_t padded(std::int64_t n, std::size_t size) {  // bytes of n elements
    return (static_cast<std::uint64_t>(n) * size + 63) & ~std::uint64_t{63};
}

// Gradients of broadcast inputs are computed whole into scratch, then summed.
template <class T>
catena_status CATENA_CALL plan_backward(catena_ctx*, const catena_call* call,
                                        catena_plan* plan) noexcept {
    const catena_tensor* gy = call->gy[0];
    for (std::uint32_t i = 0; gy != nullptr && i < call->n_x; ++i)
        if (call->gx[i] != nullptr && !same_shape(*call->gx[i], *gy))
            plan->scratch_bytes += padded(size_of(*gy), sizeof(T));
    return CATENA_OK;
}

// in and out as the loop takes them. What is not wanted goes nowhere if the loop computes all.
template <class T, Isa isa>
[[gnu::noinline]] catena_status backward_general(catena_ctx* ctx, const catena_call& call,
                                                 Loop<T> loop, const T* attrs, const T* const* in,
                                                 T* const* out, bool all,
                                                 std::int64_t work) noexcept {
    return guarded(ctx, [&] {
        const catena_tensor& gy = *call.gy[0];
        const std::int64_t n = size_of(gy);
        Job<T> job;
        job.loop = loop;
        job.attrs = attrs;
        job.shape = shape_of(gy);
        job.input(in[0], job.shape);
        for (std::size_t i = 0; i < call.n_x; ++i)
            job.input(in[1 + i], in[1 + i] == nullptr ? job.shape : shape_of(*call.x[i]));
        job.input(in[1 + call.n_x], job.shape);
        T* whole = static_cast<T*>(call.scratch);
        T* summed[CATENA_MAX_PORTS];
        bool sums[CATENA_MAX_PORTS] = {};
        for (std::size_t i = 0; i < call.n_x; ++i) {
            if (out[i] == nullptr) {
                job.output(nullptr, all ? Into::nowhere : Into::direct);
            } else if (!same_shape(*call.gx[i], gy)) {
                sums[i] = true;
                job.output(summed[i] = whole, Into::direct);
                whole += padded(n, sizeof(T)) / sizeof(T);
            } else {
                job.output(out[i], call.req[i] == CATENA_REQ_ADD ? Into::sum : Into::direct);
            }
        }
        job.run(ctx, n, work);
        for (std::size_t i = 0; i < call.n_x; ++i)
            if (sums[i])
                sum_to_shape(Place<isa>{ctx}, static_cast<const T*>(summed[i]), job.shape, out[i],
                             shape_of(*call.gx[i]), call.req[i] == CATENA_REQ_ADD);
    });
}

template <class T>
void zero_gradients(const catena_call& call) {
    for (std::uint32_t i = 0; i < call.n_x; ++i)
        if (call.gx[i] != nullptr && call.req[i] == CATENA_REQ_WRITE)
            std::fill_n(data_of<T>(*call.gx[i]), size_of(*call.gx[i]), T());
}

}  // namespace detail

// The forward kernel of an elementwise function: one loop in the plain case.
template <class F, class T, Isa isa>
catena_status CATENA_CALL forward_elementwise(catena_ctx* ctx, const catena_call* call) noexcept {
    constexpr std::size_t n_x = n_inputs<F>;
    constexpr std::int64_t work = detail::work_of<F>();
    constexpr Loop<T> loop = detail::loop_of<detail::ForwardLoop<F, T>, T, isa>();
    const auto attrs = formula_attributes<F, T>(call->attrs);
    const catena_tensor& y = *call->y[0];
    const std::int64_t n = size_of(y);
    bool plain = call->req[0] == CATENA_REQ_WRITE && n * work <= serial_work;
    const T* in[n_x];
    for (std::size_t i = 0; i < n_x; ++i) {
        in[i] = data_of<const T>(*call->x[i]);
        if (n_x > 1) plain = plain && same_shape(*call->x[i], y);
    }
    T* const out = data_of<T>(y);
    if (!plain) [[unlikely]]
        return detail::forward_general(ctx, *call, loop, attrs.data(), work);
    loop(n, &out, in, attrs.data());
    return CATENA_OK;
}

template <class F, class T, Isa isa>
catena_status CATENA_CALL backward_elementwise(catena_ctx* ctx, const catena_call* call) noexcept {
    constexpr std::size_t n_x = n_inputs<F>;
    constexpr std::int64_t work = detail::work_of<F>();
    constexpr Retained retained = retained_by_formula<F>();
    constexpr bool all = !detail::loop_per_mask<F>;
    if (call->gy[0] == nullptr) [[unlikely]] {
        detail::zero_gradients<T>(*call);
        return CATENA_OK;
    }
    const auto attrs = formula_attributes<F, T>(call->attrs);
    const catena_tensor& gy = *call->gy[0];
    const std::int64_t n = size_of(gy);
    bool plain = n * work <= serial_work;
    std::uint64_t mask = 0;
    const T* in[n_x + 2] = {data_of<const T>(gy)};
    T* out[n_x];
    for (std::size_t i = 0; i < n_x; ++i) {
        in[1 + i] = nullptr;
        if ((retained.x >> i & 1) != 0) {
            in[1 + i] = data_of<const T>(*call->x[i]);
            if (n_x > 1) plain = plain && same_shape(*call->x[i], gy);
        }
        out[i] = nullptr;
        if (const catena_tensor* gx = call->gx[i]; gx != nullptr) {
            mask |= std::uint64_t{1} << i;
            out[i] = data_of<T>(*gx);
            plain = plain && call->req[i] == CATENA_REQ_WRITE;
            if (n_x > 1) plain = plain && same_shape(*gx, gy);
        } else if (all) {
            plain = false;
        }
    }
    in[1 + n_x] = retained.y != 0 ? data_of<const T>(*call->y[0]) : nullptr;
    if (mask == 0) return CATENA_OK;
    const Loop<T> loop = detail::backward_loop<F, T, isa>(mask);
    if (!plain) [[unlikely]]
        return detail::backward_general<T, isa>(ctx, *call, loop, attrs.data(), in, out, all, work);
    loop(n, out, in, attrs.data());
    return CATENA_OK;
}

}  // namespace catena::plugin
