// sample_token(): sorts only as many scores as top_k and top_p need.
#include <catena/fail.hpp>
#include <catena/sampling.hpp>

#include <cmath>

namespace catena {

void Sampling::check() const {
    if (!(temperature >= 0) || !std::isfinite(temperature))
        fail<InvalidError>("[sampling] temperature: expected a finite number >= 0, got {}",
                           temperature);
    if (top_k < 0) fail<InvalidError>("[sampling] top_k: expected 0 or more, got {}", top_k);
    if (!(top_p > 0 && top_p <= 1))
        fail<InvalidError>("[sampling] top_p: expected above 0, up to 1, got {}", top_p);
}

std::int32_t sample_token(std::span<const float> scores, const Sampling& how,
                          Generator& generator) {
    how.check();
    const auto score = [&](std::int32_t id) { return scores[static_cast<std::size_t>(id)]; };
    std::vector<std::int32_t> ids;
    for (std::int32_t id = 0; id < std::ssize(scores); ++id)
        if (score(id) > -INFINITY) ids.push_back(id);  // false for NaN
    if (ids.empty())
        fail<InvalidError>("[sampling] scores: expected one above -inf, got {} without",
                           scores.size());
    const auto before = [&](std::int32_t a, std::int32_t b) {
        return score(a) != score(b) ? score(a) > score(b) : a < b;
    };
    const std::int32_t best = *std::ranges::min_element(ids, before);
    if (how.temperature == 0 || score(best) == INFINITY) return best;
    if (how.top_k > 0 && how.top_k < std::ssize(ids)) {
        std::ranges::nth_element(ids, ids.begin() + how.top_k, before);
        ids.resize(static_cast<std::size_t>(how.top_k));
    }
    // Probabilities add up in the order of the ids, or in that of the scores if top_p needs it.
    if (how.top_p < 1) std::ranges::sort(ids, before);
    else std::ranges::sort(ids);
    std::vector<double> up_to;  // sums of the weights
    double sum = 0;
    for (const std::int32_t id : ids)
        up_to.push_back(sum +=
                        std::exp((static_cast<double>(score(id)) - score(best)) / how.temperature));
    if (how.top_p < 1) {
        const auto enough = std::ranges::lower_bound(up_to, how.top_p * sum) - up_to.begin();
        up_to.resize(std::min(static_cast<std::size_t>(enough) + 1, up_to.size()));
        sum = up_to.back();
    }
    const auto found = std::ranges::upper_bound(up_to, generator.uniform() * sum) - up_to.begin();
    return ids[static_cast<std::size_t>(std::min(found, std::ssize(up_to) - 1))];
}

}  // namespace catena
