// Kernels: typed access to a call's tensors, attributes and requests, and its threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <exception>

#include "catena/plugin/elementwise.hpp"

namespace catena::plugin {

// A dense, row-major tensor, valid during the call; empty if the port is missing or not wanted.
template <class T>
struct Tensor {
    explicit operator bool() const { return shape.data() != nullptr; }
    T& operator[](std::int64_t i) const { return data[i]; }
    std::int64_t dim(std::size_t i) const { return shape[i]; }
    // The number of elements along the axes [from, to).
    std::int64_t count(std::size_t from, std::size_t to) const {
        return from < to ? size_of(shape.subspan(from, to - from)) : 1;
    }
    std::int64_t size() const { return count(0, shape.size()); }
    std::size_t ndim() const { return shape.size(); }

    T* data = nullptr;
    Shape shape;
};

inline Shape shape_of(const catena_meta& meta) {
    return {meta.shape, static_cast<std::size_t>(meta.ndim)};
}
inline Shape shape_of(const catena_tensor& t) {
    static constexpr std::int64_t none = 0;  // a 0-d tensor's shape may be a null pointer
    return {t.dl.shape != nullptr ? t.dl.shape : &none, static_cast<std::size_t>(t.dl.ndim)};
}
template <class T>
T* data_of(const catena_tensor& t) {
    return reinterpret_cast<T*>(static_cast<char*>(t.dl.data) + t.dl.byte_offset);
}
template <class T>
Tensor<T> view(const catena_tensor* t) {
    return t == nullptr ? Tensor<T>{} : Tensor<T>{data_of<T>(*t), shape_of(*t)};
}
inline std::int64_t size_of(const catena_tensor& t) { return size_of(shape_of(t)); }
// Of tensors or metas.
template <class A, class B>
bool same_shape(const A& a, const B& b) {
    return std::ranges::equal(shape_of(a), shape_of(b));
}

// Amounts of simple work, in elements: below serial_work a second thread costs more time than it
// saves; a thread takes pieces of about piece_work.
inline constexpr std::int64_t serial_work = 32768;
inline constexpr std::int64_t piece_work = 8192;

// A parallel_for() whose pieces may throw, although nothing may be thrown through the host. After
// the first exception, pieces not yet started are skipped; run() rethrows it when the others end.
class Pieces {
public:
    Pieces(catena_range_fn piece, void* user) : piece_(piece), user_(user) {}
    Pieces(const Pieces&) = delete;
    Pieces& operator=(const Pieces&) = delete;

    void run(catena_ctx* ctx, std::int64_t n, std::int64_t grain);

private:
    static void CATENA_CALL guarded_piece(void* pieces, std::int64_t begin, std::int64_t end,
                                          std::int32_t slot) noexcept;

    catena_range_fn piece_;
    void* user_;
    std::atomic<bool> failed_{false};
    std::exception_ptr thrown_;
};

// Runs body(begin, end) or body(begin, end, slot) on pieces of 0 .. n, compiled for isa. work is
// the cost of one of the n items in additions. The boundaries of the pieces depend only on n and
// work. slot < host().slots(ctx) identifies the thread: no two concurrent bodies have the same.
// Exceptions of a body are rethrown when all bodies that had started have ended.
template <Isa isa, class Body>
void parallel(catena_ctx* ctx, std::int64_t n, std::int64_t work, Body&& body) {
    using B = std::remove_reference_t<Body>;
    if (n <= 0) return;
    if (n * work <= serial_work) return Target<isa>::template range<B>(&body, 0, n, 0);
    const std::int64_t grain = work >= piece_work ? 1 : piece_work / work;
    Pieces(&Target<isa>::template range<B>, &body).run(ctx, n, grain);
}

namespace detail {

// "[f] x: expected float64 for call.x<T>(0), got float32": the kernel uses the wrong type for a
// tensor, and would access memory out of bounds.
[[noreturn, gnu::cold]] void fail_type(const catena_function& f, const char* member, std::size_t i,
                                       catena_dtype wanted, catena_dtype got);
[[noreturn, gnu::cold]] void fail_axis(const char* function, const char* what, std::int64_t axis,
                                       std::int64_t ndim);
[[noreturn, gnu::cold]] void fail_ndim(const char* function, const Port& input, const char* least,
                                       std::size_t expected, std::size_t got);
[[noreturn, gnu::cold]] void fail_shape(const char* function, const Port& input, Shape expected,
                                        Shape got);

}  // namespace detail

template <class T>
CATENA_KERNEL void store(T& target, bool add, T value) {
    target = add ? target + value : value;
}

// Consecutive blocks of scratch memory. Without memory, as in plan(), they are null, but counted.
class Blocks {
public:
    explicit Blocks(void* memory = nullptr) : memory_(static_cast<char*>(memory)) {}
    template <class T>
    T* take(std::int64_t n) {
        T* const block =
            memory_ == nullptr || n == 0 ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
        bytes_ += (n * static_cast<std::int64_t>(sizeof(T)) + 63) / 64 * 64;
        return block;
    }
    std::int64_t bytes() const { return bytes_; }

private:
    char* memory_;
    std::int64_t bytes_ = 0;
};

// The argument of F::forward<T>(call) and F::backward<T>(call).
template <class F, Isa instruction_set>
class Call {
public:
    static constexpr Isa isa = instruction_set;

    Call(catena_ctx* ctx, const catena_call& call) : ctx_(ctx), call_(call) {}

    // Tensors of a port. T is its dtype's C++ type, or std::byte for its memory; another type is an
    // error that names the port. In backward: the inputs and outputs in retain_x and retain_y.
    template <class T>
    Tensor<const T> x(std::size_t i) const {
        if (!detail::retains_x<F>(i)) only_forward('x', i, call_.x[i]);
        return typed<const T>("x", i, call_.x[i]);
    }
    template <class T>
    Tensor<T> mutated(std::size_t i) const {  // an input port that is MUTATED
        return typed<T>("mutated", i, call_.x[i]);
    }
    template <class T>
    Tensor<T> y(std::size_t i) const {
        if (!detail::retains_y<F>(i)) only_forward('y', i, call_.y[i]);
        return typed<T>("y", i, call_.y[i]);
    }
    template <class T>
    Tensor<const T> gy(std::size_t i) const {
        return typed<const T>("gy", i, call_.gy[i]);
    }
    template <class T>
    Tensor<T> gx(std::size_t i) const {
        return typed<T>("gx", i, call_.gx[i]);
    }
    template <class T>
    Tensor<T> saved(std::size_t i) const {
        return typed<T>("saved", i, call_.saved[i]);
    }
    template <class T>
    T* scratch() const {
        return static_cast<T*>(call_.scratch);
    }
    template <Name name>
    auto attr() const {
        return attribute<F, name>(call_.attrs);
    }
    // Whether the kernel adds to y[i] (forward) or gx[i] (backward) instead of overwriting it.
    bool adds(std::size_t i) const { return call_.req[i] == CATENA_REQ_ADD; }
    bool wants(std::size_t i) const { return call_.gx[i] != nullptr; }
    bool train() const { return (call_.flags & CATENA_CALL_TRAIN) != 0; }
    // The number of threads that parallel() may use. In plan(), it is the number of parts of
    // scratch memory that the bodies need.
    std::int64_t slots() const { return host().slots(ctx_); }

    template <class Body>
    void parallel(std::int64_t n, std::int64_t work, Body&& body) const {
        plugin::parallel<isa>(ctx_, n, work, body);
    }
    template <class Expected, class Got>
    [[noreturn]] void fail(catena_status status, const char* what, const Expected& expected,
                           const Got& got) const {
        plugin::fail(status, F::about.name, what, expected, got);
    }
    catena_ctx* context() const { return ctx_; }
    const catena_call& raw() const { return call_; }

private:
    // Throws if backward reads a tensor that is not retained. A variant may retain more than F.
    void only_forward(char port, std::size_t i, const catena_tensor* tensor) const {
        if (call_.phase != CATENA_PHASE_FORWARD && tensor == nullptr) [[unlikely]]
            detail::fail_unretained(F::about.name, "backward", port, i);
    }
    // One 32-bit comparison per tensor, none per element. A type without a dtype is not compared.
    template <class T>
    Tensor<T> typed(const char* member, std::size_t i, const catena_tensor* tensor) const {
        using U = std::remove_const_t<T>;
        if constexpr (!std::is_same_v<U, std::byte> && requires { dtype_of<U>(); }) {
            constexpr catena_dtype wanted = dtype_of<U>();
            if (tensor != nullptr && std::bit_cast<std::uint32_t>(tensor->dl.dtype) !=
                                         std::bit_cast<std::uint32_t>(wanted)) [[unlikely]]
                detail::fail_type(*call_.function, member, i, wanted, tensor->dl.dtype);
        }
        return view<T>(tensor);
    }

    catena_ctx* ctx_;
    const catena_call& call_;
};

// An axis that infer has checked, as an index: a negative one counts from the last.
constexpr std::size_t axis_index(std::int64_t axis, std::size_t ndim) {
    return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(ndim) : axis);
}

// The checks of F::infer(s) and F::compose(g).
template <class F, class Self>
class PortChecks {
public:
    // Throws "[function] what: expected X, got Y" unless ok.
    template <class Expected, class Got>
    void check(bool ok, const char* what, const Expected& expected, const Got& got,
               catena_status status = CATENA_E_SHAPE) const {
        if (!ok) [[unlikely]]
            plugin::fail(status, F::about.name, what, expected, got);
    }
    // These throw if an input has another shape. A missing optional input may have any shape.
    void check_ndim(std::size_t i, std::size_t expected) const {
        if (self().has(i) && ndim(i) != expected) [[unlikely]]
            detail::fail_ndim(F::about.name, F::about.inputs[i], "", expected, ndim(i));
    }
    void check_least_ndim(std::size_t i, std::size_t least) const {
        if (self().has(i) && ndim(i) < least) [[unlikely]]
            detail::fail_ndim(F::about.name, F::about.inputs[i], "at least ", least, ndim(i));
    }
    void check_shape(std::size_t i, Shape expected) const {
        if (!self().has(i)) return;
        const auto& meta = self().x_meta(i);
        if (!std::ranges::equal(shape_of(meta), expected)) [[unlikely]]
            detail::fail_shape(F::about.name, F::about.inputs[i], expected, shape_of(meta));
    }
    void check_shape(std::size_t i, std::initializer_list<std::int64_t> expected) const {
        check_shape(i, Shape(expected.begin(), expected.size()));
    }
    // Returns an axis as an index in 0 .. ndim-1; negative ones count from the end. Or throws.
    std::size_t axis(std::int64_t axis, std::size_t ndim, const char* what = "axis") const {
        const auto n = static_cast<std::int64_t>(ndim);
        if (axis < -n || axis >= n) [[unlikely]]
            detail::fail_axis(F::about.name, what, axis, n);
        return axis_index(axis, ndim);
    }

private:
    const Self& self() const { return static_cast<const Self&>(*this); }
    std::size_t ndim(std::size_t i) const {
        return static_cast<std::size_t>(self().x_meta(i).ndim);
    }
};

// The argument of F::infer(s): shapes and dtypes of the inputs, checks, and those of the outputs.
template <class F>
class Inference : public PortChecks<F, Inference<F>> {
public:
    Inference(const catena_value* attrs, const catena_meta* const* x, std::uint32_t n_x,
              catena_meta* const* y)
        : attrs_(attrs), x_(x), n_x_(n_x), y_(y) {}

    std::size_t n_x() const { return n_x_; }
    bool has(std::size_t i) const { return i < n_x_ && x_[i] != nullptr; }
    // Throws an error for a missing optional input.
    Shape x(std::size_t i) const { return shape_of(x_meta(i)); }
    std::int64_t size(std::size_t i) const { return size_of(x(i)); }
    catena_dtype dtype(std::size_t i) const { return x_meta(i).dtype; }
    // The dtype for computations with x(i): float32 for half precision.
    catena_dtype wide(std::size_t i) const {
        return is_half(dtype(i)) ? dtype_of<float>() : dtype(i);
    }
    template <Name name>
    auto attr() const {
        return attribute<F, name>(attrs_);
    }
    void y(std::size_t i, const IntList& shape, catena_dtype dtype) const {
        this->check(shape.size() <= CATENA_MAX_NDIM, "y.ndim", "at most 16", shape.size());
        y_[i]->ndim = static_cast<std::int32_t>(shape.size());
        y_[i]->dtype = dtype;
        for (std::size_t k = 0; k < n_x_; ++k) {  // without inputs, the host's value stays
            if (x_[k] == nullptr) continue;
            y_[i]->device_type = x_[k]->device_type;
            break;
        }
        std::copy(shape.begin(), shape.end(), y_[i]->shape);
    }
    // Sets the shape of an output, with the dtype of x(0).
    void y(std::size_t i, const IntList& shape) const {
        if (!has(0)) [[unlikely]]
            plugin::fail(CATENA_E_INTERNAL, F::about.name,
                         ("infer: y(" + std::to_string(i) + ", shape)").c_str(),
                         "a dtype as well, for there is no x(0)", "none");
        y(i, shape, dtype(0));
    }

    const catena_meta& x_meta(std::size_t i) const {
        if (!has(i)) [[unlikely]]
            detail::fail_missing(F::about.name, "infer", i);
        return *x_[i];
    }

private:
    const catena_value* attrs_;
    const catena_meta* const* x_;
    std::uint32_t n_x_;
    catena_meta* const* y_;
};

}  // namespace catena::plugin
