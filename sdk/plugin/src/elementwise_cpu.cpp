// Elementwise functions: shapes for any number of inputs, and the CPU driver, compiled once per dtype.
#include "catena/plugin/elementwise_cpu.hpp"

#include <algorithm>

#include "catena/plugin/broadcast.hpp"
#include "catena/plugin/reduce.hpp"
#include "catena/plugin/registry.hpp"
#include "each_type.hpp"

namespace catena::plugin::detail {
namespace {

void check_whole(const catena_function& f, const catena_value* attrs, catena_dtype dtype) {
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        if (f.attrs[i]->kind != CATENA_ATTR_FLOAT) continue;
        const double value = attrs[i].v.f;
        const double limit = dtype.bits == 32 ? 0x1p31 : 0x1p63;
        if (!(value >= -limit && value < limit) ||
            value != static_cast<double>(static_cast<std::int64_t>(value)))
            plugin::fail(CATENA_E_DTYPE, f.name, f.attrs[i]->name, "an " + text_of(dtype), value);
    }
}

// Extends y in place to the shape that it and x broadcast to.
void broadcast(const catena_function& f, std::uint32_t input, const catena_meta& x,
               catena_meta& y) {
    const std::int32_t ndim = std::max(x.ndim, y.ndim);
    for (std::int32_t d = 0; d < ndim; ++d) {  // from the last axis
        const std::int64_t p = d < x.ndim ? x.shape[x.ndim - 1 - d] : 1;
        const std::int64_t q = d < y.ndim ? y.shape[y.ndim - 1 - d] : 1;
        if (p != q && p != 1 && q != 1)
            plugin::fail(CATENA_E_SHAPE, f.name,
                         (std::string(f.inputs[input]->name) + ".shape").c_str(),
                         "broadcastable to " + text_of(shape_of(y)), shape_of(x));
    }
    if (x.ndim > y.ndim) {
        std::copy_backward(y.shape, y.shape + y.ndim, y.shape + x.ndim);
        std::fill(y.shape, y.shape + (x.ndim - y.ndim), 1);
        y.ndim = x.ndim;
    }
    for (std::int32_t d = 0; d < x.ndim; ++d) {
        std::int64_t& q = y.shape[y.ndim - 1 - d];
        if (q == 1) q = x.shape[x.ndim - 1 - d];
    }
}

bool is_bool(const catena_tensor& t) { return same(t.dl.dtype, dtype_of<bool>()); }

enum class Into { direct, sum, truth, nowhere };

// Runs a loop in the general case: threads, broadcast inputs, outputs that are added to.
template <class T>
struct Job {
    static constexpr std::size_t most = CATENA_MAX_PORTS + 2;
    static constexpr std::int64_t largest = 2048;  // elements of a block

    // is_bool: data points to bool, which is converted to T.
    void input(const T* data, Shape from, bool is_bool = false) {
        in[n_in] = data;
        truths[n_in] = is_bool;
        repeated[n_in] = data != nullptr && !std::ranges::equal(from, shape);
        staged[n_in] = data != nullptr && (repeated[n_in] || is_bool);
        if (repeated[n_in]) walk[n_in] = Broadcast(from, shape);
        if (staged[n_in]) buffers += 2;
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
    bool staged[most];    // loaded into a buffer, because it is repeated or bool
    bool repeated[most];  // broadcast
    bool truths[most];
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
    bool has_short_period(std::size_t k, std::int64_t block) const {
        return repeated[k] && walk[k].period() <= block;
    }
    // Sets `to` to n elements of input k, at most 2 * largest.
    void load(std::size_t k, std::int64_t begin, std::int64_t n, T* to) const {
        if (!truths[k]) return walk[k].load(in[k], begin, n, to);
        // As integers: compilers do not vectorize conversions of bool.
        const auto* from = reinterpret_cast<const std::uint8_t*>(in[k]);
        std::uint8_t own[2 * largest];
        if (repeated[k]) {
            walk[k].load(from, begin, n, own);
            from = own;
        } else {
            from += begin;
        }
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
    }
    void blocks(std::int64_t begin, std::int64_t end) const {
        alignas(64) T arena[65536 / sizeof(T)];
        const auto block = std::min<std::int64_t>(
            largest, static_cast<std::int64_t>(std::size(arena)) / buffers / 16 * 16);
        const T* from[most];
        T* to[most];
        T* own[2 * most];
        T* next = arena;
        // Inputs with a short period are expanded once; a block starts at its offset in the period.
        for (std::size_t k = 0; k < n_in; ++k) {
            if (!staged[k]) continue;
            own[k] = next;
            next += 2 * block;
            if (has_short_period(k, block)) load(k, 0, block + walk[k].period(), own[k]);
        }
        for (std::size_t k = 0; k < n_out; ++k) {
            if (into[k] == Into::direct) continue;
            own[most + k] = next;
            next += block;
        }
        for (std::int64_t b = begin; b < end; b += block) {
            const std::int64_t n = std::min(block, end - b);
            for (std::size_t k = 0; k < n_in; ++k) {
                if (!staged[k]) {
                    from[k] = in[k] == nullptr ? nullptr : in[k] + b;
                    continue;
                }
                from[k] = own[k];
                if (has_short_period(k, block)) from[k] += b % walk[k].period();
                else load(k, b, n, own[k]);
            }
            for (std::size_t k = 0; k < n_out; ++k) {
                to[k] = own[most + k];
                if (into[k] == Into::direct) to[k] = out[k] == nullptr ? nullptr : out[k] + b;
            }
            loop(n, to, from, attrs);
            for (std::size_t k = 0; k < n_out; ++k) {
                if (into[k] == Into::truth) {
                    bool* const truth = reinterpret_cast<bool*>(out[k]) + b;
                    CATENA_LOOP
                    for (std::int64_t i = 0; i < n; ++i) truth[i] = to[k][i] != T(0);
                } else if (into[k] == Into::sum) {
                    for (std::int64_t i = 0; i < n; ++i) out[k][b + i] += to[k][i];
                }
            }
        }
    }
};

template <class T>
[[gnu::noinline]] catena_status forward_general(catena_ctx* ctx, const catena_call& call,
                                                const ElementwiseLoops<T>& loops,
                                                const T* attrs) noexcept {
    return guarded(ctx, [&] {
        const catena_tensor& y = *call.y[0];
        Job<T> job;
        job.loop = loops.all;
        job.attrs = attrs;
        job.shape = shape_of(y);
        for (std::size_t i = 0; i < call.n_x; ++i)
            job.input(data_of<const T>(*call.x[i]), shape_of(*call.x[i]),
                      loops.mixed && is_bool(*call.x[i]));
        // As integers, bools are overwritten even if the call asks to add.
        job.output(data_of<T>(y), loops.mixed && is_bool(y)       ? Into::truth
                                  : call.req[0] == CATENA_REQ_ADD ? Into::sum
                                                                  : Into::direct);
        job.run(ctx, size_of(y), loops.work);
    });
}

constexpr std::uint64_t padded(std::int64_t n, std::size_t size) {  // bytes of n elements
    return (static_cast<std::uint64_t>(n) * size + 63) & ~std::uint64_t{63};
}

// Arguments of a loop of gradients: `in` has gy, every x, and y.
template <class T>
struct Gradients {
    static constexpr std::size_t most = CATENA_MAX_PORTS;
    Loop<T> loop;
    bool all;  // the loop writes the gradients of all inputs
    bool plain = true;
    const T* in[most + 2];
    T* out[most];
};

template <class T>
[[gnu::noinline]] catena_status backward_general(catena_ctx* ctx, const catena_call& call,
                                                 const ElementwiseLoops<T>& loops,
                                                 const Gradients<T>& g, const T* attrs) noexcept {
    return guarded(ctx, [&] {
        const catena_tensor& gy = *call.gy[0];
        const std::int64_t n = size_of(gy);
        Job<T> job;
        job.loop = g.loop;
        job.attrs = attrs;
        job.shape = shape_of(gy);
        job.input(g.in[0], job.shape);
        for (std::size_t i = 0; i < call.n_x; ++i)
            job.input(g.in[1 + i], g.in[1 + i] == nullptr ? job.shape : shape_of(*call.x[i]),
                      loops.mixed && g.in[1 + i] != nullptr && is_bool(*call.x[i]));
        job.input(g.in[1 + call.n_x], job.shape);
        T* whole = static_cast<T*>(call.scratch);
        T* summed[CATENA_MAX_PORTS];
        bool sums[CATENA_MAX_PORTS] = {};
        for (std::size_t i = 0; i < call.n_x; ++i) {
            if (g.out[i] == nullptr) {
                job.output(nullptr, g.all ? Into::nowhere : Into::direct);
            } else if (!same_shape(*call.gx[i], gy)) {
                sums[i] = true;
                job.output(summed[i] = whole, Into::direct);
                whole += padded(n, sizeof(T)) / sizeof(T);
            } else {
                job.output(g.out[i], call.req[i] == CATENA_REQ_ADD ? Into::sum : Into::direct);
            }
        }
        job.run(ctx, n, loops.work);
        for (std::size_t i = 0; i < call.n_x; ++i) {
            if (!sums[i]) continue;
            sum_to_shape(ctx, loops.isa, static_cast<const T*>(summed[i]), job.shape, g.out[i],
                         shape_of(*call.gx[i]), call.req[i] == CATENA_REQ_ADD);
        }
    });
}

}  // namespace

catena_status infer_elementwise(catena_ctx* ctx, const catena_function& f, bool whole, int like,
                                const catena_value* attrs, const catena_meta* const* x,
                                catena_meta& y) noexcept {
    const catena_meta& first = *x[0];
    y.ndim = first.ndim;
    y.dtype = like < 0 ? dtype_of<bool>() : x[like]->dtype;
    y.device_type = first.device_type;
    std::copy_n(first.shape, first.ndim, y.shape);
    bool equal = true;
    for (std::uint32_t i = 1; i < f.n_inputs; ++i) equal = equal && same_shape(*x[i], first);
    whole = whole && first.dtype.code == CATENA_CODE_INT;
    if (equal && !whole) [[likely]]
        return CATENA_OK;
    return guarded(ctx, [&] {
        if (whole) check_whole(f, attrs, first.dtype);
        for (std::uint32_t i = 1; i < f.n_inputs; ++i) broadcast(f, i, *x[i], y);
    });
}

template <class T>
catena_status run_forward(catena_ctx* ctx, const catena_call& call,
                          const ElementwiseLoops<T>& loops, const T* attrs) noexcept {
    const catena_tensor& y = *call.y[0];
    const std::int64_t n = size_of(y);
    bool plain = call.req[0] == CATENA_REQ_WRITE && n * loops.work <= serial_work && !loops.mixed;
    const T* in[CATENA_MAX_PORTS];
    for (std::size_t i = 0; i < call.n_x; ++i) {
        in[i] = data_of<const T>(*call.x[i]);
        plain = plain && (call.n_x == 1 || same_shape(*call.x[i], y));
    }
    if (!plain) [[unlikely]]
        return forward_general(ctx, call, loops, attrs);
    T* const out = data_of<T>(y);
    loops.all(n, &out, in, attrs);
    return CATENA_OK;
}

template <class T>
catena_status run_backward(catena_ctx* ctx, const catena_call& call,
                           const ElementwiseLoops<T>& loops, const T* attrs) noexcept {
    if (call.gy[0] == nullptr) [[unlikely]] {
        set_zero_gradients(call);
        return CATENA_OK;
    }
    const catena_tensor& gy = *call.gy[0];
    const std::size_t n_x = call.n_x;
    const std::int64_t n = size_of(gy);
    Gradients<T> g;
    g.plain = n * loops.work <= serial_work && !loops.mixed;
    g.in[0] = data_of<const T>(gy);
    std::size_t wanted = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < n_x; ++i) {
        g.in[1 + i] = nullptr;
        if ((loops.retained.x >> i & 1) != 0) {
            g.in[1 + i] = data_of<const T>(*call.x[i]);
            g.plain = g.plain && (n_x == 1 || same_shape(*call.x[i], gy));
        }
        g.out[i] = nullptr;
        if (const catena_tensor* gx = call.gx[i]; gx != nullptr) {
            ++wanted;
            last = i;
            g.out[i] = data_of<T>(*gx);
            g.plain =
                g.plain && call.req[i] == CATENA_REQ_WRITE && (n_x == 1 || same_shape(*gx, gy));
        }
    }
    if (wanted == 0) return CATENA_OK;
    g.in[1 + n_x] = loops.retained.y != 0 ? data_of<const T>(*call.y[0]) : nullptr;
    const bool one = wanted == 1 && loops.each != nullptr;
    g.loop = one ? loops.each[last] : loops.all;
    g.all = !one;
    if (!g.plain || (g.all && wanted != n_x)) [[unlikely]]
        return backward_general(ctx, call, loops, g, attrs);
    g.loop(n, g.out, g.in, attrs);
    return CATENA_OK;
}

template <class T>
catena_status CATENA_CALL plan_backward(catena_ctx*, const catena_call* call,
                                        catena_plan* plan) noexcept {
    const catena_tensor* gy = call->gy[0];
    for (std::uint32_t i = 0; gy != nullptr && i < call->n_x; ++i)
        if (call->gx[i] != nullptr && !same_shape(*call->gx[i], *gy))
            plan->scratch_bytes += padded(size_of(*gy), sizeof(T));
    return CATENA_OK;
}

#define CATENA_FORWARD(T)                                               \
    template catena_status run_forward(catena_ctx*, const catena_call&, \
                                       const ElementwiseLoops<T>&, const T*) noexcept;
CATENA_EACH_TYPE(CATENA_FORWARD)
#define CATENA_BACKWARD(T)                                                               \
    template catena_status run_backward(catena_ctx*, const catena_call&,                 \
                                        const ElementwiseLoops<T>&, const T*) noexcept;  \
    template catena_status CATENA_CALL plan_backward<T>(catena_ctx*, const catena_call*, \
                                                        catena_plan*) noexcept;
CATENA_BACKWARD(float)
CATENA_BACKWARD(double)

}  // namespace catena::plugin::detail
