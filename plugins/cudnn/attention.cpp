// Kernels of scaled_dot_product_attention in float16 and bfloat16: cuDNN's fused attention.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <catena/plugin/cuda/launch.cuh>

#include "graph.hpp"

namespace catena_cudnn {
namespace {

constexpr char attention[] = "catena.scaled_dot_product_attention";
enum Input : std::size_t { query, key, value, bias, mask, lengths };

// Returns the sizes of a call, or nothing if cuDNN does not support it.
std::optional<Attention> supported(const catena_call& call) {
    for (const Input missing : {bias, mask, lengths})
        if (call.x[missing] != nullptr) return std::nullopt;
    const bool heads_last = std::string_view(attribute(call, "layout").v.s) == "BTHD";
    const std::size_t head = heads_last ? 2 : 1, row = heads_last ? 1 : 2;
    const Shape q = shape_of(*call.x[query]), k = shape_of(*call.x[key]);
    const Attention a = {.backward = !is_forward(call),
                         .causal = attribute(call, "causal").v.i != 0,
                         .heads_last = heads_last,
                         .accumulate = false,
                         .b = q[0],
                         .h = q[head],
                         .hk = k[head],
                         .t = q[row],
                         .s = k[row],
                         .d = q[3],
                         .e = shape_of(*call.x[value])[3]};
    const std::int64_t offset = attribute(call, "offset").v.i;
    const bool first_key = offset == 0 || (offset == -1 && a.t == a.s);
    const auto is_size = [](std::int64_t n) { return n % 8 == 0 && n <= 128; };
    const std::int64_t extents[] = {a.b, a.h, a.t, a.s, a.d, a.e};
    if (attribute(call, "window").v.i != 0 || attribute(call, "dropout").v.f != 0 ||
        (a.causal && !first_key) || !is_size(a.d) || !is_size(a.e) ||
        std::ranges::min(extents) < 1 || (a.t == 1 && a.s == 1))
        return std::nullopt;
    const std::int64_t most = std::max(a.t, a.s) * std::max(a.d, a.e);
    if (most > INT_MAX || a.b * a.h > INT_MAX / most) return std::nullopt;
    return a;
}

std::int32_t supports(catena_ctx* ctx, const catena_call* call) noexcept {
    // Older versions compute wrong values for some numbers of keys.
    constexpr std::int64_t oldest = 91600;
    try {
        return wanted(ctx) && library(ctx)->version >= oldest && outcome(*call) != nullptr &&
                       supported(*call)
                   ? 1
                   : 0;
    } catch (const std::exception&) {
        return 0;
    }
}

Problem problem_of(const catena_call& call, bool varying) {
    Problem p = {.operation = {},
                 .dtype = type_of(*call.x[query]),
                 .add = false,
                 .deterministic = is_deterministic(call, varying),
                 .half = false,
                 .alignment = alignment_of(
                     {call.x[query], call.x[key], call.x[value], call.y[0], call.y[1]})};
    Attention a = *supported(call);
    if (a.backward) {
        a.accumulate = !p.deterministic && settings().nondeterministic;
        p.alignment =
            std::min(p.alignment, alignment_of({call.gy[0], call.gx[0], call.gx[1], call.gx[2]}));
    }
    p.operation = a;
    return p;
}

// Memory of tensors that cuDNN writes and the caller does not want, at the start of the scratch memory.
struct Unwanted {
    Unwanted(const catena_call& call, const Attention& a) {
        if (!a.backward) return;
        const std::int64_t rows = a.b * a.h * a.t, keys = a.b * a.hk * a.s;
        add(tensor_mean, rows * 4);
        if (a.accumulate) add(tensor_gq_sum, rows * a.d * 4);
        if (call.gx[query] == nullptr) add(tensor_gq, rows * a.d * 2);
        if (call.gx[key] == nullptr) add(tensor_gk, keys * a.d * 2);
        if (call.gx[value] == nullptr) add(tensor_gv, keys * a.e * 2);
    }
    void add(Role role, std::int64_t n) {
        places[role] = bytes;
        bytes += (static_cast<std::uint64_t>(n) + 63) / 64 * 64;
    }
    std::uint64_t bytes = 0;
    std::array<std::optional<std::uint64_t>, n_roles> places;
};

template <bool varying>
catena_status plan(catena_ctx* ctx, const catena_call* call, catena_plan* plan) noexcept {
    return guarded(ctx, [&] {
        const cuda::OnDevice device(call->function->name, call->device_id);
        const Problem p = problem_of(*call, varying);
        if (!can(ctx, *call, p))
            fail(CATENA_E_UNSUPPORTED, call->function->name, "cuDNN", "an engine for this call",
                 "none");
        plan->scratch_bytes =
            Unwanted(*call, std::get<Attention>(p.operation)).bytes + scratch_for(ctx, *call, p);
    });
}

template <bool varying>
catena_status run(catena_ctx* ctx, const catena_call* call) noexcept {
    return guarded(ctx, [&] {
        const cuda::OnDevice device(call->function->name, call->device_id);
        const Problem p = problem_of(*call, varying);
        const auto& a = std::get<Attention>(p.operation);
        const double given = attribute(*call, "scale").v.f;
        float scale =
            static_cast<float>(given != 0 ? given : 1 / std::sqrt(static_cast<double>(a.d)));
        float one = 1, hidden = -std::numeric_limits<float>::infinity();
        Pointers all = {};
        all[tensor_q] = data(call->x[query]);
        all[tensor_k] = data(call->x[key]);
        all[tensor_v] = data(call->x[value]);
        all[tensor_attended] = data(call->y[0]);
        all[tensor_lse] = data(call->y[1]);
        all[number_scale] = &scale;
        if (a.causal) all[number_hidden] = &hidden;
        catena_call rest = *call;
        if (a.backward) {
            all[tensor_gy] = data(call->gy[0]);
            all[tensor_gq] = data(call->gx[query]);
            all[tensor_gk] = data(call->gx[key]);
            all[tensor_gv] = data(call->gx[value]);
            all[number_one] = &one;
            const Unwanted unwanted(*call, a);
            for (std::size_t role = 0; role < n_roles; ++role)
                if (const auto place = unwanted.places[role])
                    all[role] = static_cast<char*>(call->scratch) + *place;
            rest.scratch = static_cast<char*>(call->scratch) + unwanted.bytes;
            rest.scratch_bytes -= unwanted.bytes;
        } else {  // draws: none
            const cudaError_t error =
                cudaMemsetAsync(data(call->y[2]), 0, 3 * sizeof(std::int64_t),
                                cuda::queue_of(call->function->name, *call).stream);
            if (error != cudaSuccess) cuda::fail_cuda(call->function->name, "draws", error);
        }
        catena_cudnn::run(ctx, rest, p, all);
    });
}

template <bool varying, class T>
void append(std::vector<catena_kernel>& all) {
    for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD}) {
        catena_kernel k =
            kernel_of(attention, phase, Row<T, bool, std::int64_t, float>::dtypes, varying);
        k.flags &= ~static_cast<std::uint32_t>(CATENA_KERNEL_ADDS);
        k.supports = supports;
        k.plan = plan<varying>;
        k.run = run<varying>;
        all.push_back(k);
    }
}

}  // namespace

std::vector<catena_kernel> attention_kernels() {
    std::vector<catena_kernel> all;
    append<false, Float16>(all);
    append<false, BFloat16>(all);
    if (!settings().varying()) return all;
    append<true, Float16>(all);
    append<true, BFloat16>(all);
    return all;
}

}  // namespace catena_cudnn
