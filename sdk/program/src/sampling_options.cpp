// SamplingOptions: adds and checks the options of sampling.
#include <catena/sampling_options.hpp>

#include <cmath>

namespace catena {
namespace po = boost::program_options;

void SamplingOptions::add_to(ProgramOptions& options) {
    options.add_options()("temperature", options.value(temperature),
                          "sampling temperature: below 1 prefers likely tokens, 0 takes "
                          "the most likely one");
    options.add_options()("top-k", po::value(&top_k)->value_name("N"),
                          "draw only from the N most likely tokens");
    options.add_options()("top-p", po::value(&top_p)->value_name("P"),
                          "draw only from the most likely tokens whose probabilities add "
                          "up to P");
}

void SamplingOptions::check(const ProgramOptions& options) const {
    options.require(temperature >= 0 && std::isfinite(temperature), names[0], "a number >= 0",
                    temperature);
    if (options.given(names[1])) options.require_at_least(names[1], top_k, 1);
    options.require(top_p > 0 && top_p <= 1, names[2], "above 0, up to 1", top_p);
}

}  // namespace catena
