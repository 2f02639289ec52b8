// BatchNormalization: running statistics around two functions of plugins.
#include <catena/bound_function.hpp>
#include <catena/core/config.hpp>
#include <catena/fail.hpp>
#include <catena/links.hpp>

#include <algorithm>

namespace catena::links {
namespace {

// Found once, by the first link: a missing plugin shows before any work.
ThreadFunction<double>& by_minibatch() {
    thread_local constinit ThreadFunction<double> function("catena.batch_normalization", {"eps"});
    return function;
}
ThreadFunction<double>& by_statistics() {
    thread_local constinit ThreadFunction<double> function("catena.fixed_batch_normalization",
                                                           {"eps"});
    return function;
}

// average = share * average + (1 - share) * scale * value, in the average's memory.
void blend(const Array& average, const Array& value, double share, double scale = 1) {
    thread_local constinit ThreadFunction<double, double> update("catena.running_update",
                                                                 {"share", "scale"});
    const bool wide = item_size(average.dtype()) >= item_size(Dtype::float32);
    const Array inputs[] = {average, value.astype(wide ? average.dtype() : Dtype::float32)};
    update(share, scale).forward(inputs);
}

template <class Got>
void require_positive(std::int64_t size, const Got& got) {
    if (size >= 1) return;
    fail<ShapeError>("[BatchNormalization] size: expected a positive number, got {}", got);
}
Shape shape_of(std::int64_t size) {
    require_positive(size, size);
    return {size};
}

}  // namespace

BatchNormalization::BatchNormalization(std::int64_t size, double share_kept, double epsilon)
    : BatchNormalization(shape_of(size), share_kept, epsilon) {}

BatchNormalization::BatchNormalization(const Shape& shape, double share_kept, double epsilon)
    : decay(share_kept), eps(epsilon), size_(shape) {
    const std::int64_t size = shape.size();
    require_positive(size, to_string(shape));
    if (!(decay >= 0 && decay <= 1))
        fail<InvalidError>("[BatchNormalization] decay: expected 0 to 1, got {}", decay);
    (void)by_minibatch()(eps);
    gamma = as_parameter(Array::ones({size}));
    beta = as_parameter(Array::zeros({size}));
    avg_mean = Array::zeros({size});
    avg_var = Array::ones({size});
}

Variable BatchNormalization::operator()(const Variable& x) const {
    return (*this)(x, !config().train);
}

Variable BatchNormalization::operator()(const Variable& x, bool test) const {
    return call(x, test ? std::nullopt : std::optional(decay));
}

Variable BatchNormalization::operator()(const Variable& x, bool test, bool finetune) {
    if (test || !finetune) return std::as_const(*this)(x, test);
    const Variable y = call(x, 1 - 1 / static_cast<double>(N + 1));
    if (x.size() > 0) ++N;
    return y;
}

Variable BatchNormalization::call(const Variable& x, std::optional<double> share) const {
    if (size_.ndim() == 1) return normalize(x, share);
    thread_local constinit ThreadFunction<Ints> reshape("catena.reshape", {"shape"});
    const Shape shape = x.shape();
    const int rest = 1 + size_.ndim();
    if (shape.ndim() < rest || !std::equal(size_.begin(), size_.end(), shape.begin() + 1))
        fail<ShapeError>("[BatchNormalization] x: expected (N, {}, ...), got {}",
                         fmt::join(size_.begin(), size_.end(), ", "), to_string(shape));
    Shape channels{shape[0], gamma.size(), 1};
    for (int i = rest; i < shape.ndim(); ++i) channels[2] *= shape[i];
    const Variable y = normalize(reshape(channels).first({&x}), share);
    return reshape(shape).first({&y});
}

Variable BatchNormalization::normalize(const Variable& x, std::optional<double> share) const {
    if (!share) {
        const Dtype dtype = x.dtype() == Dtype::float64 ? Dtype::float64 : Dtype::float32;
        const Variable mean(avg_mean.astype(dtype), x.is_volatile());
        const Variable var(avg_var.astype(dtype), x.is_volatile());
        mean.set_requires_grad(false);
        var.set_requires_grad(false);
        return by_statistics()(eps).first({&x, &gamma, &beta, &mean, &var});
    }
    const Variable* const inputs[] = {&x, &gamma, &beta};
    auto y = by_minibatch()(eps)(inputs);
    const std::int64_t m = x.size() / gamma.size();
    if (m > 0) {
        blend(avg_mean, y[1].data(), *share);
        const double unbiased =
            static_cast<double>(m) / static_cast<double>(std::max<std::int64_t>(m - 1, 1));
        blend(avg_var, y[2].data(), *share, unbiased);
    }
    return y[0];
}

}  // namespace catena::links
