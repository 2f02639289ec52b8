// Rows for forms.py.
#include "golden.hpp"

namespace F = catena::functions;

const golden::Rows forms = {
    {"split_axis",
     [](const auto& x, const auto& attrs) {
         return F::split_axis(x[0], attrs.at("indices").template get<std::vector<std::int64_t>>(),
                              attrs.at("axis").template get<int>());
     }},
};
