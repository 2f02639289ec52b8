// Rows for products.py.
#include "golden.hpp"

namespace F = catena::functions;

const golden::Rows products = {
    {"einsum",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::einsum(attrs.at("subscripts").template get<std::string>(), x)};
     }},
    {"tensordot",
     [](const auto& x, const auto& attrs) {
         if (attrs.contains("axes"))
             return golden::Variables{
                 F::tensordot(x[0], x[1], attrs.at("axes").template get<int>())};
         using Axes = std::vector<std::int64_t>;
         return golden::Variables{F::tensordot(x[0], x[1], attrs.at("axes_a").template get<Axes>(),
                                               attrs.at("axes_b").template get<Axes>())};
     }},
    {"batch_matmul",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::batch_matmul(x[0], x[1],
                                                  attrs.at("transa").template get<bool>(),
                                                  attrs.at("transb").template get<bool>())};
     }},
};
