// Runs kernels for float32 on copies of half-precision tensors.
#include "catena/plugin/widened.hpp"

#include <vector>

namespace catena::plugin::detail {
namespace {

// A call with float32 tensors in place of halves. Their elements lie contiguously from `scratch`
// on, followed by the scratch memory of the kernel itself.
class WidenedCall {
public:
    WidenedCall(const catena_call& call, void* scratch)
        : call_(call), next_(static_cast<char*>(scratch)) {
        const bool backward = call.phase == CATENA_PHASE_BACKWARD;
        const std::size_t n = (std::size_t{call.n_x} + call.n_y) * (backward ? 2 : 1);
        if (n > few) {  // many inputs of a variadic port
            more_tensors_.resize(n);
            more_list_.resize(n);
            tensor_ = more_tensors_.data();
            list_ = more_list_.data();
        }
        call_.x = replaced(call.x, call.n_x);
        call_.y = replaced(call.y, call.n_y);
        if (backward) {
            call_.gy = replaced(call.gy, call.n_y);
            call_.gx = replaced(call.gx, call.n_x);
        }
        if (scratch == nullptr) return;
        call_.scratch_bytes = call.scratch_bytes - bytes_;
        call_.scratch = call_.scratch_bytes == 0 ? nullptr : next_;
    }
    WidenedCall(const WidenedCall&) = delete;
    WidenedCall& operator=(const WidenedCall&) = delete;

    const catena_call& call() const { return call_; }
    std::uint64_t bytes() const { return bytes_; }

private:
    static constexpr std::size_t few = 24;

    catena_tensor** replaced(const catena_tensor* const* given, std::uint32_t n) {
        catena_tensor** const list = list_;
        list_ += n;
        for (std::uint32_t i = 0; i < n; ++i) {
            list[i] = const_cast<catena_tensor*>(given[i]);
            if (given[i] == nullptr || !is_half(given[i]->dl.dtype)) continue;
            // Products do not have to be more exact than their operands.
            if (given[i]->dl.dtype.code == CATENA_CODE_BFLOAT) call_.flags |= CATENA_CALL_BFLOAT16;
            catena_tensor& wide = *tensor_++;
            wide = *given[i];
            wide.dl.dtype = dtype_of<float>();
            wide.dl.byte_offset = 0;
            wide.dl.data = next_;
            wide.nbytes = static_cast<std::uint64_t>(size_of(wide)) * sizeof(float);
            wide.align_log2 = 6;
            list[i] = &wide;
            const std::uint64_t room = (wide.nbytes + 63) & ~std::uint64_t{63};
            bytes_ += room;
            if (next_ != nullptr) next_ += room;
        }
        return list;
    }

    catena_call call_;
    char* next_;
    std::uint64_t bytes_ = 0;
    catena_tensor tensors_[few];
    catena_tensor* few_list_[few];
    std::vector<catena_tensor> more_tensors_;
    std::vector<catena_tensor*> more_list_;
    catena_tensor* tensor_ = tensors_;
    catena_tensor** list_ = few_list_;
};

// Converts the tensors of a list that are halves in the call to float32, or back.
template <Isa isa, bool widens, class Wanted>
void convert(catena_ctx* ctx, const catena_tensor* const* half, const catena_tensor* const* wide,
             std::uint32_t n, const Wanted& wanted) {
    for (std::uint32_t i = 0; i < n; ++i) {
        if (half[i] == wide[i] || !wanted(i)) continue;
        with_type(Halves(), index_in(Halves(), half[i]->dl.dtype), [&]<class Half>(Half) {
            Half* const narrow = data_of<Half>(*half[i]);
            float* const wider = data_of<float>(*wide[i]);
            auto body = [&](std::int64_t begin, std::int64_t end) {
                if constexpr (widens)
                    convert_halves<isa>(narrow + begin, wider + begin, end - begin);
                else convert_halves<isa>(wider + begin, narrow + begin, end - begin);
            };
            parallel<Isa::baseline>(ctx, size_of(*half[i]), 1, body);
        });
    }
}

template <Isa isa>
catena_status run_on_copies_for(catena_ctx* ctx, const catena_call& call, Run inner) noexcept {
    catena_status status = CATENA_OK;
    const catena_status outer = guarded(ctx, [&] {
        const WidenedCall copies(call, call.scratch);
        const catena_call& wide = copies.call();
        const auto all = [](std::uint32_t) { return true; };
        const auto added = [&](std::uint32_t i) { return call.req[i] == CATENA_REQ_ADD; };
        const bool backward = call.phase == CATENA_PHASE_BACKWARD;
        convert<isa, true>(ctx, call.x, wide.x, call.n_x, all);
        if (backward) {
            convert<isa, true>(ctx, call.y, wide.y, call.n_y, all);
            convert<isa, true>(ctx, call.gy, wide.gy, call.n_y, all);
            convert<isa, true>(ctx, call.gx, wide.gx, call.n_x, added);
        } else {
            convert<isa, true>(ctx, call.y, wide.y, call.n_y, added);
        }
        status = inner(ctx, &wide);
        if (status != CATENA_OK) return;
        if (backward) return convert<isa, false>(ctx, call.gx, wide.gx, call.n_x, all);
        convert<isa, false>(ctx, call.y, wide.y, call.n_y, all);
        const catena_function& f = *call.function;
        convert<isa, false>(ctx, call.x, wide.x, call.n_x, [&](std::uint32_t i) {
            return (f.inputs[std::min(i, f.n_inputs - 1)]->flags & CATENA_PORT_MUTATED) != 0;
        });
    });
    return outer != CATENA_OK ? outer : status;
}

}  // namespace

catena_status run_on_copies(catena_ctx* ctx, const catena_call& call, Run inner, Isa isa) noexcept {
#if defined(CATENA_X86)
    if (isa == Isa::x86_64_v4) return run_on_copies_for<Isa::x86_64_v4>(ctx, call, inner);
    if (isa == Isa::x86_64_v3) return run_on_copies_for<Isa::x86_64_v3>(ctx, call, inner);
#endif
    static_cast<void>(isa);
    return run_on_copies_for<Isa::baseline>(ctx, call, inner);
}
catena_status plan_on_copies(catena_ctx* ctx, const catena_call& call, catena_plan& plan,
                             Plan inner) noexcept {
    catena_status status = CATENA_OK;
    const catena_status outer = guarded(ctx, [&] {
        const WidenedCall copies(call, nullptr);
        if (inner != nullptr) status = inner(ctx, &copies.call(), &plan);
        plan.scratch_bytes += copies.bytes();
    });
    return outer != CATENA_OK ? outer : status;
}

}  // namespace catena::plugin::detail
