// Sampling: the next token from the scores of a language model.
#pragma once

#include <catena/random.hpp>

namespace catena {

// How a token is drawn: from softmax(scores / temperature), of the top_k most likely tokens, and of
// the fewest of these with a sum of top_p (Holtzman and others, ICLR 2020). Smaller ids win ties.
struct Sampling {
    double temperature = 1;  // 0: always the most likely token
    std::int64_t top_k = 0;  // 0: all
    double top_p = 1;

    // Throws InvalidError unless 0 <= temperature, 0 <= top_k and 0 < top_p <= 1, all finite.
    void check() const;
};

// Draws a token. The scores are float32 in host memory; softmax is computed in float64. Takes one
// number from the generator, or none. NaN is never drawn. Throws InvalidError if all are -inf.
std::int32_t sample_token(std::span<const float> scores, const Sampling& how, Generator& generator);

}  // namespace catena
