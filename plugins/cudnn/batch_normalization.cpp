// batch_normalization and the forward of fixed_batch_normalization, for floats and doubles: for halves
// cuDNN wants gamma and beta in float32.
#include "bias.hpp"
#include "operations.hpp"

namespace catena_cudnn {
namespace {

double eps_of(const catena_call& call) { return attribute(call, "eps").v.f; }

// One value has no variance that cuDNN would tell.
bool fits(const catena_call& call, const catena_tensor* x) {
    const Image image = x == nullptr ? Image{} : channels_of(*x);
    return image.fits() && image.n * image.h > 1 && eps_of(call) >= CUDNN_BN_MIN_EPSILON;
}
bool fits_forward(const catena_call& call) { return fits(call, call.x[0]); }
bool fits_backward(const catena_call& call) { return fits(call, call.gy[0]); }

struct Tensors {
    Tensors(const Session& s, const catena_tensor& x)
        : all(s, type_of(x), channels_of(x)), channel(s, type_of(x), {1, channels_of(x).c, 1, 1}) {}
    TensorHandle all;
    TensorHandle channel;
};

// The statistics are those that cuDNN keeps as running ones, after nothing: the inverse deviation that
// it saves would lose them where the variance is small. They are of an unbiased variance.
void forward(const Session& s, const catena_call& call) {
    const catena_tensor& x = *call.x[0];
    const Image image = channels_of(x);
    const Tensors tensors(s, x);
    const Factors factors(x);
    const cuda::Queue queue = cuda::queue_of(call.function->name, call);
    const std::size_t bytes = static_cast<std::size_t>(image.c) * (x.dl.dtype.bits / 8);
    queue.zero(data(call.y[1]), bytes);
    queue.zero(data(call.y[2]), bytes);
    s.check(
        "cudnnBatchNormalizationForwardTraining",
        s.cudnn.batch_forward(s.handle, CUDNN_BATCHNORM_SPATIAL, factors.one(), factors.zero(),
                              tensors.all.raw, data(&x), tensors.all.raw, data(call.y[0]),
                              tensors.channel.raw, data(call.x[1]), data(call.x[2]), 1.0,
                              data(call.y[1]), data(call.y[2]), eps_of(call), nullptr, nullptr));
    const auto count = static_cast<double>(image.n * image.h);
    scale(call, *call.y[2], (count - 1) / count);
}

// Places for what is not wanted: cuDNN computes all three gradients.
struct Places {
    explicit Places(const catena_call& call) {
        const Image image = channels_of(*call.gy[0]);
        const std::uint64_t element = call.gy[0]->dl.dtype.bits / 8;
        for (const int i : {0, 1, 2}) {
            if (call.gx[i] != nullptr) continue;
            at[i] = bytes;
            const std::int64_t n = i == 0 ? image.size() : image.c;
            bytes += (static_cast<std::uint64_t>(n) * element + 63) / 64 * 64;
        }
    }
    void* place(const catena_call& call, int i) const {
        return call.gx[i] != nullptr ? data(call.gx[i]) : static_cast<char*>(call.scratch) + at[i];
    }
    std::uint64_t at[3] = {};
    std::uint64_t bytes = 0;
};
std::uint64_t room(const catena_call& call) { return Places(call).bytes; }

void backward(const Session& s, const catena_call& call) {
    const catena_tensor& x = *call.x[0];
    const Tensors tensors(s, x);
    const Factors factors(x);
    const Places places(call);
    s.check("cudnnBatchNormalizationBackward",
            s.cudnn.batch_backward(
                s.handle, CUDNN_BATCHNORM_SPATIAL, factors.one(), factors.zero(), factors.one(),
                factors.zero(), tensors.all.raw, data(&x), tensors.all.raw, data(call.gy[0]),
                tensors.all.raw, places.place(call, 0), tensors.channel.raw, data(call.x[1]),
                places.place(call, 1), places.place(call, 2), eps_of(call), nullptr, nullptr));
}

void fixed(const Session& s, const catena_call& call) {
    const catena_tensor& x = *call.x[0];
    const Tensors tensors(s, x);
    const Factors factors(x);
    s.check("cudnnBatchNormalizationForwardInference",
            s.cudnn.batch_inference(
                s.handle, CUDNN_BATCHNORM_SPATIAL, factors.one(), factors.zero(), tensors.all.raw,
                data(&x), tensors.all.raw, data(call.y[0]), tensors.channel.raw, data(call.x[1]),
                data(call.x[2]), data(call.x[3]), data(call.x[4]), eps_of(call)));
}

// The host adds where that is asked for: a factor is for all of cuDNN's outputs.
template <class T>
void append(std::vector<catena_kernel>& all) {
    const auto add = [&](const char* name, int phase, auto supports, auto plan, auto run) {
        catena_kernel k = kernel(name, phase, Row<T, T>::dtypes, Rank::pinned, supports, plan, run);
        k.flags &= ~static_cast<std::uint32_t>(CATENA_KERNEL_ADDS);
        all.push_back(k);
    };
    add("catena.batch_normalization", CATENA_PHASE_FORWARD, supports_operation<fits_forward>,
        nullptr, run_operation<forward>);
    add("catena.batch_normalization", CATENA_PHASE_BACKWARD, supports_operation<fits_backward>,
        plan_operation<room>, run_operation<backward>);
    add("catena.fixed_batch_normalization", CATENA_PHASE_FORWARD, supports_operation<fits_forward>,
        nullptr, run_operation<fixed>);
}

}  // namespace

void append_batch_normalization(std::vector<catena_kernel>& all) {
    append<float>(all);
    append<double>(all);
}

}  // namespace catena_cudnn
