// The engines, as plain loops.
#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>

#include "cudnn.hpp"
#include "emulator/work.hpp"
#include "load.hpp"

namespace stand_in {
namespace {

enum : std::int64_t { plain, tensor_core = 10, down, atomics, declines, wide, lean, reduced };

std::int64_t none(const Convolution&) { return 0; }
std::int64_t refuses(const Convolution&) { return -1; }
std::int64_t all_of_y(const Convolution& c) { return c.n * c.outputs * c.oh * c.ow * 8; }
std::int64_t a_filter(const Convolution& c) { return c.channels * c.kh * c.kw * 8; }

template <class T, class C>
struct Arguments {
    const T* x;
    const T* w;
    const T* y;
    const T* b;
    T* out;
    char* workspace;
    std::int64_t bytes;  // of the workspace
    std::int64_t n, channels, height, width, outputs, oh, ow, kh, kw;
    std::int64_t stride_y, stride_x, pad_y, pad_x, dilate_y, dilate_x;
    std::int64_t inner, filters;  // channels and outputs of a group
    std::int64_t direction, engine, run;
    C alpha, beta;
};

// Rounds an input of the engines that do so: 10 bits of a float's mantissa remain.
template <class C>
C rounded(C x, std::int64_t engine) {
    if constexpr (sizeof(C) == 4)
        if (engine == tensor_core || engine == down)
            return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x1000) & 0xffffe000);
    return x;
}

// Computes an element of the result.
template <class T, class C>
void convolve(const Arguments<T, C>& a, std::int64_t at) {
    const auto x = [&](std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
        const bool inside = i >= 0 && i < a.height && j >= 0 && j < a.width;
        return !inside ? C(0)
                       : rounded<C>(load(a.x[((n * a.channels + c) * a.height + i) * a.width + j]),
                                    a.engine);
    };
    // c: of the group's channels.
    const auto w = [&](std::int64_t o, std::int64_t c, std::int64_t i, std::int64_t j) {
        return rounded<C>(load(a.w[((o * a.inner + c) * a.kh + i) * a.kw + j]), a.engine);
    };
    const auto y = [&](std::int64_t n, std::int64_t o, std::int64_t i, std::int64_t j) {
        return rounded<C>(load(a.y[((n * a.outputs + o) * a.oh + i) * a.ow + j]), a.engine);
    };
    // The pixel that element p of the filter sees at a position, and the position, or -1, at which it
    // sees a pixel.
    const auto row = [&](std::int64_t i, std::int64_t p) {
        return i * a.stride_y - a.pad_y + p * a.dilate_y;
    };
    const auto column = [&](std::int64_t j, std::int64_t q) {
        return j * a.stride_x - a.pad_x + q * a.dilate_x;
    };
    const auto position = [](std::int64_t i, std::int64_t stride, std::int64_t positions) {
        return i >= 0 && i % stride == 0 && i / stride < positions ? i / stride : -1;
    };
    C sum = 0;
    if (a.direction == 0) {
        const std::int64_t j = at % a.ow, i = at / a.ow % a.oh, o = at / a.ow / a.oh % a.outputs,
                           n = at / a.ow / a.oh / a.outputs;
        for (std::int64_t c = 0; c < a.inner; ++c)
            for (std::int64_t p = 0; p < a.kh; ++p)
                for (std::int64_t q = 0; q < a.kw; ++q)
                    sum +=
                        x(n, o / a.filters * a.inner + c, row(i, p), column(j, q)) * w(o, c, p, q);
    } else if (a.direction == 1) {
        const std::int64_t j = at % a.width, i = at / a.width % a.height,
                           c = at / a.width / a.height % a.channels,
                           n = at / a.width / a.height / a.channels;
        const std::int64_t first = c / a.inner * a.filters;
        for (std::int64_t o = first; o < first + a.filters; ++o)
            for (std::int64_t p = 0; p < a.kh; ++p)
                for (std::int64_t q = 0; q < a.kw; ++q) {
                    const std::int64_t u = position(i - row(0, p), a.stride_y, a.oh);
                    const std::int64_t v = position(j - column(0, q), a.stride_x, a.ow);
                    if (u >= 0 && v >= 0) sum += y(n, o, u, v) * w(o, c % a.inner, p, q);
                }
    } else {
        const std::int64_t q = at % a.kw, p = at / a.kw % a.kh, c = at / a.kw / a.kh % a.inner,
                           o = at / a.kw / a.kh / a.inner;
        for (std::int64_t n = 0; n < a.n; ++n)
            for (std::int64_t i = 0; i < a.oh; ++i)
                for (std::int64_t j = 0; j < a.ow; ++j)
                    sum +=
                        x(n, o / a.filters * a.inner + c, row(i, p), column(j, q)) * y(n, o, i, j);
    }
    // Changes the bits in every other run, as sums in another order do.
    if (a.engine == atomics && a.run % 2 != 0) sum *= C(1) + C(sizeof(C) == 4 ? 1e-6 : 1e-14);
    C value = a.alpha * sum;
    if (a.beta != 0) value += a.beta * static_cast<C>(load(a.out[at]));
    if (a.b != nullptr) value += static_cast<C>(load(a.b[at / a.ow / a.oh % a.outputs]));
    store(&a.out[at], value);
}

void rest(void*) { std::this_thread::sleep_for(std::chrono::milliseconds(3)); }

template <class T, class C>
cudnnStatus_t launch(const Convolution& c, const Engine& engine, cudaStream_t stream,
                     const std::map<std::int64_t, void*>& data, void* workspace) {
    const auto pointer = [&](std::int64_t id) { return static_cast<T*>(data.at(id)); };
    const std::int64_t sizes[] = {c.n * c.outputs * c.oh * c.ow,
                                  c.n * c.channels * c.height * c.width,
                                  c.outputs * c.channels / c.groups * c.kh * c.kw};
    T* const outs[] = {pointer(c.y), pointer(c.x), pointer(c.w)};
    Arguments<T, C> a = {};
    a.x = pointer(c.x);
    a.w = pointer(c.w);
    a.y = pointer(c.y);
    if (c.bias) a.b = pointer(c.b);
    a.out = outs[c.direction];
    a.bytes = engine.workspace(c);
    if (a.bytes > 0) a.workspace = static_cast<char*>(workspace);
    a.n = c.n, a.channels = c.channels, a.height = c.height, a.width = c.width;
    a.outputs = c.outputs, a.oh = c.oh, a.ow = c.ow, a.kh = c.kh, a.kw = c.kw;
    a.stride_y = c.stride_y, a.stride_x = c.stride_x, a.pad_y = c.pad_y, a.pad_x = c.pad_x;
    a.dilate_y = c.dilate_y, a.dilate_x = c.dilate_x;
    a.inner = c.channels / c.groups, a.filters = c.outputs / c.groups;
    a.direction = c.direction;
    a.engine = engine.index;
    a.run = catena_cudnn_counts().runs;
    a.alpha = static_cast<C>(c.alpha);
    a.beta = static_cast<C>(c.beta);
    const std::int64_t size = sizes[c.direction];
    const auto range = [](const void* from, std::int64_t n, bool is_written) {
        return catena_emulator::Range{from, static_cast<std::size_t>(n), is_written};
    };
    std::vector<catena_emulator::Range> ranges;
    const T* const inputs[] = {a.y, a.x, a.w};
    for (int i = 0; i < 3; ++i)
        ranges.push_back(range(inputs[i], sizes[i] * std::int64_t{sizeof(T)}, i == c.direction));
    if (c.bias) ranges.push_back(range(a.b, c.outputs * std::int64_t{sizeof(T)}, false));
    ranges.push_back(range(a.workspace, a.bytes, true));
    if (engine.slow && cudaLaunchHostFunc(stream, rest, nullptr) != cudaSuccess)
        return CUDNN_STATUS_EXECUTION_FAILED;
    const auto body = [a, size] {
        std::fill_n(a.workspace, a.bytes, 1);
        for (std::int64_t at = 0; at < size; ++at) convolve(a, at);
    };
    return catena_emulator::work(stream, std::move(ranges), body, "cudnnBackendExecute") ==
                   cudaSuccess
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // namespace

// Best first, as cuDNN's heuristics of mode A propose them.
const std::vector<Engine>& engines() {
    static const std::vector<Engine> all = {
        {tensor_core, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, none, false},
        {down, {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, none, false},
        {reduced, {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, none, false},
        {atomics, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, none, false},
        {declines, {}, refuses, false},
        {wide, {}, all_of_y, true},
        {lean, {}, a_filter, false},
        {plain, {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}, none, true},
    };
    return all;
}
const Engine& engine_of(std::int64_t index) {
    if (index == fused_engine.index) return fused_engine;
    for (const Engine& e : engines())
        if (e.index == index) return e;
    return engines().back();
}

cudnnStatus_t run(const Convolution& c, const Engine& engine, cudaStream_t stream,
                  const std::map<std::int64_t, void*>& data, void* workspace) {
    // Sizes that fail only when a plan runs: with all engines but lean, or with all.
    if ((c.kh == 11 && engine.index != lean) || c.kh == 12) return CUDNN_STATUS_EXECUTION_FAILED;
    switch (c.dtype) {
        case CUDNN_DATA_FLOAT: return launch<float, float>(c, engine, stream, data, workspace);
        case CUDNN_DATA_DOUBLE: return launch<double, double>(c, engine, stream, data, workspace);
        case CUDNN_DATA_HALF: return launch<Float16, float>(c, engine, stream, data, workspace);
        case CUDNN_DATA_BFLOAT16:
            return launch<BFloat16, float>(c, engine, stream, data, workspace);
        default: return CUDNN_STATUS_NOT_SUPPORTED;
    }
}

}  // namespace stand_in
