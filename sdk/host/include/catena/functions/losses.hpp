// Losses that are compositions of registered functions. Those of labels, and bce_with_logits and
// huber, are in <catena/functions.hpp>.
//
// reduce: "mean" over all elements, "sum", or "no" for the loss of each element. All functions are
// differentiable to any order, and throw ShapeError if shapes differ, DtypeError if dtypes do, and
// InvalidError for another reduce.
#pragma once

#include <catena/functions.hpp>
#include <catena/operators.hpp>

namespace catena::functions {

// softmax_cross_entropy without class weights: the mean loss of the labels that are not ignored.
inline Variable softmax_cross_entropy(const Variable& x, const Variable& t,
                                      std::int64_t ignore_label) {
    return softmax_cross_entropy(x, t, Variable(), ignore_label);
}
inline Array softmax_cross_entropy(const Array& x, const Array& t, std::int64_t ignore_label) {
    return softmax_cross_entropy(x, t, Array(), ignore_label);
}

// The binary cross entropy of scores x and targets t: bce_with_logits(). t has x's dtype, or it is
// an integer or bool array of 0 and 1, where -1 is ignored: its loss and gradient are 0. The mean
// is over the elements that are not ignored, 0 if there are none; with normalize = false, the sum
// is divided by the length of the first axis.
Variable sigmoid_cross_entropy(const Variable& x, const Variable& t, bool normalize = true,
                               std::string_view reduce = "mean");
Array sigmoid_cross_entropy(const Array& x, const Array& t, bool normalize = true,
                            std::string_view reduce = "mean");

// The Huber loss of each element, huber(x, t, delta), summed along axis 1, or reduced as above.
Variable huber_loss(const Variable& x, const Variable& t, double delta,
                    std::string_view reduce = "sum_along_second_axis");
Array huber_loss(const Array& x, const Array& t, double delta,
                 std::string_view reduce = "sum_along_second_axis");
// huber(x, t, beta) / beta: d^2 / (2 beta) for d = x - t if |d| < beta, else |d| - beta / 2. For
// beta = 0 it is l1_loss().
Variable smooth_l1_loss(const Variable& x, const Variable& t, double beta = 1,
                        std::string_view reduce = "mean");
Array smooth_l1_loss(const Array& x, const Array& t, double beta = 1,
                     std::string_view reduce = "mean");
Variable l1_loss(const Variable& x, const Variable& t, std::string_view reduce = "mean");
Array l1_loss(const Array& x, const Array& t, std::string_view reduce = "mean");

// |x0 - x1| and (x0 - x1)^2 of each element, and the mean of the first. The mean of the second is
// mean_squared_error().
Variable absolute_error(const Variable& x0, const Variable& x1);
Array absolute_error(const Array& x0, const Array& x1);
Variable squared_error(const Variable& x0, const Variable& x1);
Array squared_error(const Array& x0, const Array& x1);
Variable mean_absolute_error(const Variable& x0, const Variable& x1);
Array mean_absolute_error(const Array& x0, const Array& x1);

// The hinge loss of scores x (N, classes) and labels t (N,). Its elements are max(0, 1 - x) at the
// label and max(0, 1 + x) at other classes, or their squares for norm "L2". "mean" is their sum
// divided by N. Throws ValueError for a label out of range; on a GPU, its elements are NaN.
Variable hinge(const Variable& x, const Variable& t, std::string_view norm = "L1",
               std::string_view reduce = "mean");
Array hinge(const Array& x, const Array& t, std::string_view norm = "L1",
            std::string_view reduce = "mean");

// The Kullback-Leibler divergence of log-probabilities x from probabilities t: the elements
// t (log t - x), 0 where t is 0. With log_target, t are log-probabilities. As in PyTorch, "mean" is
// the mean of the elements; "batchmean", the sum divided by the length of the first axis, is the
// mean of the divergences of a batch.
Variable kl_div(const Variable& x, const Variable& t, std::string_view reduce = "mean",
                bool log_target = false);
Array kl_div(const Array& x, const Array& t, std::string_view reduce = "mean",
             bool log_target = false);

// Losses of variational autoencoders, summed by default. The Kullback-Leibler divergence of normal
// distributions with these means and logarithms of variances from N(0, 1); the negative
// log-likelihood of x under Bernoulli distributions with scores y, which is bce_with_logits(y, x);
// and that of x under normal distributions.
Variable gaussian_kl_divergence(const Variable& mean, const Variable& ln_var,
                                std::string_view reduce = "sum");
Array gaussian_kl_divergence(const Array& mean, const Array& ln_var,
                             std::string_view reduce = "sum");
Variable bernoulli_nll(const Variable& x, const Variable& y, std::string_view reduce = "sum");
Array bernoulli_nll(const Array& x, const Array& y, std::string_view reduce = "sum");
Variable gaussian_nll(const Variable& x, const Variable& mean, const Variable& ln_var,
                      std::string_view reduce = "sum");
Array gaussian_nll(const Array& x, const Array& mean, const Array& ln_var,
                   std::string_view reduce = "sum");

}  // namespace catena::functions
