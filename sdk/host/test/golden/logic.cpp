// Rows for logic.py.
#include "golden.hpp"

namespace F = catena::functions;

using golden::Variables;
#define CATENA_ROW(NAME)                                                                 \
    {                                                                                    \
#NAME, [](const auto& x, const auto&) { return Variables{F::NAME(x[0], x[1])}; } \
    }

const golden::Rows logic = {
    CATENA_ROW(equal),
    CATENA_ROW(not_equal),
    CATENA_ROW(greater),
    CATENA_ROW(greater_equal),
    CATENA_ROW(less),
    CATENA_ROW(less_equal),
    CATENA_ROW(logical_and),
    CATENA_ROW(logical_or),
    CATENA_ROW(logical_xor),
    CATENA_ROW(maximum),
    CATENA_ROW(minimum),
    {"logical_not", [](const auto& x, const auto&) { return Variables{F::logical_not(x[0])}; }},
    {"where", [](const auto& x, const auto&) { return Variables{F::where(x[0], x[1], x[2])}; }},
    {"one_hot",
     [](const auto& x, const auto& attrs) {
         return Variables{F::one_hot(x[0], attrs.at("depth"), attrs.at("axis"))};
     }},
};
