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
    // NVIDIA's cudnn-frontend works around older versions if 128 does not divide the number of keys.
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

constexpr std::uint64_t alignment = 64;  // of scratch memory; cuDNN needs 16

Problem problem_of(const catena_call& call, bool varying) {
    Problem p = {.operation = {},
                 .dtype = type_of(*call.x[query]),
                 .add = false,
                 .deterministic = is_deterministic(call, varying),
                 .half = false,
                 .alignment = 16};
    Attention a = *supported(call);
    a.accumulate = a.backward && !p.deterministic && settings().nondeterministic;
    p.operation = a;
    return p;
}

// A tensor of the graph. It is in scratch memory if it is no result that the caller wants, or if the
// caller's data is not aligned.
struct Part {
    Role role;
    const catena_tensor* tensor;  // null: not the caller's
    std::uint64_t bytes;
    bool written;
    std::uint64_t place;  // in scratch memory

    bool is_temporary() const {
        return tensor == nullptr || reinterpret_cast<std::uintptr_t>(data(tensor)) % 16 != 0;
    }
};
struct Parts {
    Parts(const catena_call& call, const Attention& a) {
        const std::int64_t rows = a.b * a.h * a.t, keys = a.b * a.hk * a.s;
        add(tensor_q, call.x[query], rows * a.d * 2, false);
        add(tensor_k, call.x[key], keys * a.d * 2, false);
        add(tensor_v, call.x[value], keys * a.e * 2, false);
        add(tensor_attended, call.y[0], rows * a.e * 2, !a.backward);
        add(tensor_lse, call.y[1], rows * 4, !a.backward);
        if (!a.backward) return;
        add(tensor_gy, call.gy[0], rows * a.e * 2, false);
        add(tensor_gq, call.gx[query], rows * a.d * 2, true);
        add(tensor_gk, call.gx[key], keys * a.d * 2, true);
        add(tensor_gv, call.gx[value], keys * a.e * 2, true);
        add(tensor_mean, nullptr, rows * 4, true);
        if (a.accumulate) add(tensor_gq_sum, nullptr, rows * a.d * 4, true);
    }
    void add(Role role, const catena_tensor* tensor, std::int64_t bytes, bool written) {
        Part& part = room[n++];
        part = {role, tensor, static_cast<std::uint64_t>(bytes), written, scratch};
        if (part.is_temporary()) scratch += (part.bytes + alignment - 1) / alignment * alignment;
    }
    std::span<const Part> all() const { return {room.data(), n}; }

    std::array<Part, n_roles> room;
    std::size_t n = 0;
    std::uint64_t scratch = 0;  // bytes
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
            Parts(*call, std::get<Attention>(p.operation)).scratch + scratch_for(ctx, *call, p);
    });
}

template <bool varying>
catena_status run(catena_ctx* ctx, const catena_call* call) noexcept {
    return guarded(ctx, [&] {
        const char* const name = call->function->name;
        const cuda::OnDevice device(name, call->device_id);
        const cudaStream_t stream = cuda::queue_of(name, *call).stream;
        const auto checked = [&](cudaError_t error) {
            if (error != cudaSuccess) cuda::fail_cuda(name, "copy", error);
        };
        const auto copy = [&](void* to, const void* from, std::uint64_t n) {
            checked(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToDevice, stream));
        };
        const Problem p = problem_of(*call, varying);
        const auto& a = std::get<Attention>(p.operation);
        const Parts parts(*call, a);
        if (parts.scratch > call->scratch_bytes)  // the alignment differs from that in plan()
            fail(CATENA_E_INVALID, name, "scratch_bytes",
                 "at least " + std::to_string(parts.scratch) +
                     ", for tensors not aligned to 16 bytes",
                 std::to_string(call->scratch_bytes));
        const double given = attribute(*call, "scale").v.f;
        float scale =
            static_cast<float>(given != 0 ? given : 1 / std::sqrt(static_cast<double>(a.d)));
        float one = 1, hidden = -std::numeric_limits<float>::infinity();
        Pointers pointers = {};
        pointers[number_scale] = &scale;
        if (a.backward) pointers[number_one] = &one;
        if (a.causal) pointers[number_hidden] = &hidden;
        for (const Part& part : parts.all()) {
            void*& place = pointers[part.role];
            place = part.is_temporary() ? static_cast<char*>(call->scratch) + part.place
                                        : data(part.tensor);
            if (part.is_temporary() && !part.written) copy(place, data(part.tensor), part.bytes);
        }
        catena_call rest = *call;
        if (parts.scratch > 0) rest.scratch = static_cast<char*>(call->scratch) + parts.scratch;
        rest.scratch_bytes -= parts.scratch;
        catena_cudnn::run(ctx, rest, p, pointers);
        for (const Part& part : parts.all())
            if (part.is_temporary() && part.written && part.tensor != nullptr)
                copy(data(part.tensor), pointers[part.role], part.bytes);
        if (!a.backward)  // draws: none
            checked(cudaMemsetAsync(data(call->y[2]), 0, 3 * sizeof(std::int64_t), stream));
    });
}

template <bool varying, class T>
void append(std::vector<catena_kernel>& all) {
    for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD}) {
        all.push_back(kernel_of(attention, phase, Row<T, bool, std::int64_t, float>::dtypes,
                                varying, supports, plan<varying>, run<varying>));
        all.back().flags &= ~static_cast<std::uint32_t>(CATENA_KERNEL_ADDS);
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
