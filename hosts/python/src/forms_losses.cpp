// Losses that are compositions.
#include "forms.hpp"

#include <catena/fail.hpp>

namespace catena::python {
namespace {

namespace F = functions;

#define CATENA_ERROR_OF_TWO(NAME, DOC) \
    forms(#NAME "(x0, x1)", DOC,       \
          [](const Variable& x0, const Variable& x1) { return F::NAME(x0, x1); });

void add_distances(Forms& forms) {
    CATENA_ERROR_OF_TWO(absolute_error, "|x0 - x1| of each element.")
    CATENA_ERROR_OF_TWO(squared_error, "(x0 - x1)^2 of each element.")
    CATENA_ERROR_OF_TWO(mean_absolute_error, "The mean of |x0 - x1|.")
    forms("huber_loss(x, t, delta, reduce='sum_along_second_axis')",
          "d^2 / 2 for d = x - t where |d| <= delta, else delta (|d| - delta / 2).",
          [](const Variable& x, const Variable& t, double delta, std::string_view reduce) {
              return F::huber_loss(x, t, delta, reduce);
          });
    forms("smooth_l1_loss(x, t, beta=1.0, reduce='mean')",
          "d^2 / (2 beta) for d = x - t where |d| < beta, else |d| - beta / 2.",
          [](const Variable& x, const Variable& t, double beta, std::string_view reduce) {
              return F::smooth_l1_loss(x, t, beta, reduce);
          });
    forms("l1_loss(x, t, reduce='mean')", "|x - t|, reduced by \"mean\", \"sum\" or \"no\".",
          [](const Variable& x, const Variable& t, std::string_view reduce) {
              return F::l1_loss(x, t, reduce);
          });
}
#undef CATENA_ERROR_OF_TWO

void add_likelihoods(Forms& forms) {
    forms("sigmoid_cross_entropy(x, t, normalize=True, reduce='mean')",
          "The binary cross entropy of scores x and targets t; the label -1 is ignored.",
          [](const Variable& x, const Variable& t, bool normalize, std::string_view reduce) {
              return F::sigmoid_cross_entropy(x, t, normalize, reduce);
          });
    forms("hinge(x, t, norm='L1', reduce='mean')",
          "max(0, 1 - x) at the label and max(0, 1 + x) at other classes; squared for \"L2\".",
          [](const Variable& x, const Variable& t, std::string_view norm, std::string_view reduce) {
              if (norm != "L1" && norm != "L2")
                  fail<UnsupportedError>("[hinge] norm: expected 'L1' or 'L2', got '{}'", norm);
              return F::hinge(x, t, norm, reduce);
          });
    forms("kl_div(x, t, reduce='mean', log_target=False)",
          "The Kullback-Leibler divergence of log-probabilities x from probabilities t.",
          [](const Variable& x, const Variable& t, std::string_view reduce, bool log_target) {
              return F::kl_div(x, t, reduce, log_target);
          });
    forms("gaussian_kl_divergence(mean, ln_var, reduce='sum')",
          "The Kullback-Leibler divergence of normal distributions from N(0, 1).",
          [](const Variable& mean, const Variable& ln_var, std::string_view reduce) {
              return F::gaussian_kl_divergence(mean, ln_var, reduce);
          });
    forms("bernoulli_nll(x, y, reduce='sum')",
          "The negative log-likelihood of x under Bernoulli distributions with scores y.",
          [](const Variable& x, const Variable& y, std::string_view reduce) {
              return F::bernoulli_nll(x, y, reduce);
          });
    forms("gaussian_nll(x, mean, ln_var, reduce='sum')",
          "The negative log-likelihood of x under normal distributions.",
          [](const Variable& x, const Variable& mean, const Variable& ln_var,
             std::string_view reduce) { return F::gaussian_nll(x, mean, ln_var, reduce); });
}

}  // namespace

void add_loss_forms(Forms& forms) {
    add_distances(forms);
    add_likelihoods(forms);
}

}  // namespace catena::python
