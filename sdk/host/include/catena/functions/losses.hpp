// Losses that are compositions of registered functions. Others are in <catena/functions.hpp>.
#pragma once

#include <catena/functions.hpp>

namespace catena::functions {

// softmax_cross_entropy without class weights: the mean loss of the labels that are not ignored.
inline Variable softmax_cross_entropy(const Variable& x, const Variable& t,
                                      std::int64_t ignore_label) {
    return softmax_cross_entropy(x, t, Variable(), ignore_label);
}
inline Array softmax_cross_entropy(const Array& x, const Array& t, std::int64_t ignore_label) {
    return softmax_cross_entropy(x, t, Array(), ignore_label);
}

}  // namespace catena::functions
