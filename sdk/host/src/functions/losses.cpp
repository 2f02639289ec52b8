// Losses as compositions of registered functions, on variables and on arrays.
#include "operands.hpp"

#include <catena/functions/creation.hpp>
#include <catena/functions/logic.hpp>
#include <catena/functions/losses.hpp>

#include <algorithm>
#include <limits>
#include <numbers>

namespace catena::functions {
namespace of_losses {
namespace {

void expect_reduction(const char* what, std::string_view got,
                      std::initializer_list<std::string_view> more = {}) {
    std::vector<std::string_view> known = {"mean", "sum", "no"};
    known.insert(known.end(), more.begin(), more.end());
    if (std::ranges::find(known, got) == known.end())
        fail<InvalidError>("[{}] reduce: expected one of {}, got '{}'", what,
                           fmt::join(known, ", "), got);
}
void expect_shape(const char* what, const char* name, const Array& x, const Array& other) {
    expect(what, "x", x);
    expect(what, name, other);
    if (x.shape() != other.shape())
        fail<ShapeError>("[{}] {}.shape: expected {}, got {}", what, name, to_string(x.shape()),
                         to_string(other.shape()));
}

// reduce has been checked.
template <class X>
X reduced(const X& y, std::string_view reduce) {
    if (reduce == "no") return y;
    if (reduce == "sum") return sum(y);
    if (reduce == "mean") return mean(y);
    const Shape shape = elements(y).shape();  // batchmean
    const std::int64_t n = shape.ndim() == 0 ? 1 : shape[0];
    return mean(y) * (static_cast<double>(shape.size()) / static_cast<double>(n));
}

template <class X>
X sigmoid_cross_entropy_of(const X& x, const X& t, bool normalize, std::string_view reduce) {
    const char* const name = "sigmoid_cross_entropy";
    expect_reduction(name, reduce);
    expect_shape(name, "t", elements(x), elements(t));
    const bool labels = !is_floating(t.dtype());
    X y;
    Array keep;
    if (labels) {
        keep = not_equal(elements(t), -1);
        const Array target = where(keep, elements(t).astype(x.dtype()), 0);
        // Scores that are ignored do not matter, even if they are NaN.
        y = where(keep, bce_with_logits(where(keep, x, 0), constant(x, target)), 0);
    } else {
        y = bce_with_logits(x, t);
    }
    if (reduce != "mean" || (normalize && !labels)) return reduced(y, reduce);
    // In float32 for half precision, whose range is too small for the sum. Without labels, it is 0.
    const bool half = item_size(y.dtype()) == 2;
    const X total = sum(half ? cast(y, Dtype::float32) : y);
    const Shape shape = elements(x).shape();
    const std::int64_t n = shape.ndim() == 0 ? 1 : std::max<std::int64_t>(shape[0], 1);
    const X mean_loss = normalize ? total / maximum(sum(keep), 1) : total / static_cast<double>(n);
    return half ? cast(mean_loss, y.dtype()) : mean_loss;
}

template <class X>
X huber_loss_of(const X& x, const X& t, double delta, std::string_view reduce) {
    expect_reduction("huber_loss", reduce, {"sum_along_second_axis"});
    expect_shape("huber_loss", "t", elements(x), elements(t));
    if (reduce == "sum_along_second_axis" && elements(x).ndim() < 2)
        fail<ShapeError>("[huber_loss] x.ndim: expected at least 2, got {}", elements(x).ndim());
    const X y = huber(x, t, delta);
    return reduce == "sum_along_second_axis" ? sum(y, 1) : reduced(y, reduce);
}

template <class X>
X error_of(const char* what, const char* name, const X& x0, const X& x1) {
    expect_shape(what, name, elements(x0), elements(x1));
    return x0 - x1;
}

template <class X>
X l1_loss_of(const char* what, const X& x, const X& t, std::string_view reduce) {
    expect_reduction(what, reduce);
    return reduced(abs(error_of(what, "t", x, t)), reduce);
}
template <class X>
X smooth_l1_loss_of(const X& x, const X& t, double beta, std::string_view reduce) {
    const char* const name = "smooth_l1_loss";
    if (!(beta >= 0)) fail<InvalidError>("[{}] beta: expected 0 or more, got {}", name, beta);
    if (beta == 0) return l1_loss_of(name, x, t, reduce);
    expect_reduction(name, reduce);
    expect_shape(name, "t", elements(x), elements(t));
    return reduced(huber(x, t, beta) / beta, reduce);
}
template <class X>
X squared_error_of(const X& x0, const X& x1) {
    const X d = error_of("squared_error", "x1", x0, x1);
    return d * d;
}

// Throws ValueError for a label out of range.
void expect_labels(const char* what, const Array& t, std::int64_t classes) {
    const auto labels = t.to_vector<std::int64_t>();
    for (std::size_t i = 0; i < labels.size(); ++i)
        if (labels[i] < 0 || labels[i] >= classes)
            fail<ValueError>("[{}] t[{}]: expected a label from 0 to {}, got {}", what, i,
                             classes - 1, labels[i]);
}

template <class X>
X hinge_of(const X& x, const X& t, std::string_view norm, std::string_view reduce) {
    expect_reduction("hinge", reduce);
    if (norm != "L1" && norm != "L2")
        fail<InvalidError>("[hinge] norm: expected one of L1, L2, got '{}'", norm);
    const Shape shape = elements(x).shape();
    if (shape.ndim() != 2)
        fail<ShapeError>("[hinge] x.shape: expected (N, classes), got {}", to_string(shape));
    if (elements(t).shape() != Shape{shape[0]})
        fail<ShapeError>("[hinge] t.shape: expected {}, got {}", to_string(Shape{shape[0]}),
                         to_string(elements(t).shape()));
    const Array labels = elements(t);
    const Array sign = 1 - one_hot(labels, shape[1], 1, x.dtype()) * 2;
    const bool checked = labels.device().host_accessible();
    if (checked) expect_labels("hinge", labels, shape[1]);
    X y = relu(x * sign + 1);  // the gradient is 0 at the margin
    if (norm == "L2") y = y * y;
    if (!checked) {  // the host does not wait for the labels
        const Array right = (labels >= 0) & (labels < shape[1]);
        y = where(right.reshape({shape[0], 1}), y, std::numeric_limits<double>::quiet_NaN());
    }
    return reduced(y, reduce == "mean" ? "batchmean" : reduce);
}

template <class X>
X kl_div_of(const X& x, const X& t, std::string_view reduce, bool log_target) {
    expect_reduction("kl_div", reduce, {"batchmean"});
    expect_shape("kl_div", "t", elements(x), elements(t));
    if (log_target) return reduced(exp(t) * (t - x), reduce);
    const X log_t = log(where(not_equal(elements(t), 0), t, 1));
    return reduced(t * (log_t - x), reduce);
}

template <class X>
X gaussian_kl_divergence_of(const X& mean, const X& ln_var, std::string_view reduce) {
    expect_reduction("gaussian_kl_divergence", reduce);
    expect_shape("gaussian_kl_divergence", "ln_var", elements(mean), elements(ln_var));
    return reduced((mean * mean + exp(ln_var) - ln_var - 1) * 0.5, reduce);
}
template <class X>
X bernoulli_nll_of(const X& x, const X& y, std::string_view reduce) {
    expect_reduction("bernoulli_nll", reduce);
    expect_shape("bernoulli_nll", "y", elements(x), elements(y));
    return reduced(bce_with_logits(y, x), reduce);
}
template <class X>
X gaussian_nll_of(const X& x, const X& mean, const X& ln_var, std::string_view reduce) {
    expect_reduction("gaussian_nll", reduce);
    expect_shape("gaussian_nll", "mean", elements(x), elements(mean));
    expect_shape("gaussian_nll", "ln_var", elements(x), elements(ln_var));
    const X d = x - mean;
    return reduced((d * d * exp(-ln_var) + ln_var + std::log(2 * std::numbers::pi)) * 0.5, reduce);
}

}  // namespace
}  // namespace of_losses

#define CATENA_LOSSES(X)                                                                         \
    X sigmoid_cross_entropy(const X& x, const X& t, bool normalize, std::string_view reduce) {   \
        return of_losses::sigmoid_cross_entropy_of(x, t, normalize, reduce);                     \
    }                                                                                            \
    X huber_loss(const X& x, const X& t, double delta, std::string_view reduce) {                \
        return of_losses::huber_loss_of(x, t, delta, reduce);                                    \
    }                                                                                            \
    X smooth_l1_loss(const X& x, const X& t, double beta, std::string_view reduce) {             \
        return of_losses::smooth_l1_loss_of(x, t, beta, reduce);                                 \
    }                                                                                            \
    X l1_loss(const X& x, const X& t, std::string_view reduce) {                                 \
        return of_losses::l1_loss_of("l1_loss", x, t, reduce);                                   \
    }                                                                                            \
    X absolute_error(const X& x0, const X& x1) {                                                 \
        return abs(of_losses::error_of("absolute_error", "x1", x0, x1));                         \
    }                                                                                            \
    X squared_error(const X& x0, const X& x1) { return of_losses::squared_error_of(x0, x1); }    \
    X mean_absolute_error(const X& x0, const X& x1) {                                            \
        return of_losses::reduced(abs(of_losses::error_of("mean_absolute_error", "x1", x0, x1)), \
                                  "mean");                                                       \
    }                                                                                            \
    X hinge(const X& x, const X& t, std::string_view norm, std::string_view reduce) {            \
        return of_losses::hinge_of(x, t, norm, reduce);                                          \
    }                                                                                            \
    X kl_div(const X& x, const X& t, std::string_view reduce, bool log_target) {                 \
        return of_losses::kl_div_of(x, t, reduce, log_target);                                   \
    }                                                                                            \
    X gaussian_kl_divergence(const X& mean, const X& ln_var, std::string_view reduce) {          \
        return of_losses::gaussian_kl_divergence_of(mean, ln_var, reduce);                       \
    }                                                                                            \
    X bernoulli_nll(const X& x, const X& y, std::string_view reduce) {                           \
        return of_losses::bernoulli_nll_of(x, y, reduce);                                        \
    }                                                                                            \
    X gaussian_nll(const X& x, const X& mean, const X& ln_var, std::string_view reduce) {        \
        return of_losses::gaussian_nll_of(x, mean, ln_var, reduce);                              \
    }
CATENA_LOSSES(Variable)
CATENA_LOSSES(Array)
#undef CATENA_LOSSES

}  // namespace catena::functions
