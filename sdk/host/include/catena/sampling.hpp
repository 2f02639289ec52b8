// Sampling: the next token from the scores of a language model.
#pragma once

#include <catena/random.hpp>

namespace catena {

// How a token is drawn: from softmax(scores / temperature), of the top_k most likely tokens, and of
// the fewest of these whose probabilities add up to top_p (Holtzman and others, ICLR 2020). Ties
// are decided by the smaller id.
struct Sampling {
    double temperature = 1;  // 0: always the most likely token
    std::int64_t top_k = 0;  // 0: all
    double top_p = 1;

    // Throws InvalidError unless 0 <= temperature, 0 <= top_k and 0 < top_p <= 1, all finite.
    void check() const;
};

// Draws a token. The scores are float32 in host memory; softmax is computed in float64. Takes one
// number from the generator, none if temperature is 0. Scores that are NaN are never drawn. Throws
// InvalidError if no score is above -inf.
std::int32_t sample_token(std::span<const float> scores, const Sampling& how, Generator& generator);

}  // namespace catena
