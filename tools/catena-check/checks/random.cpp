// Checks that random numbers come from the host and do not depend on the number of threads.
#include "rig.hpp"

namespace catena::check::random {
namespace {

using namespace testing;

struct Drawn {
    std::vector<Array> y;
    std::uint64_t blocks = 0;
};

Drawn draw(World& world, const catena_function& f, const Sample& sample, std::uint64_t seed,
           std::uint64_t offset, int threads) {
    doing("{} of \"{}\" with seed {} on {} threads", f.name, sample.text, seed, threads);
    Options options;
    options.train = sample.train;
    options.threads = threads;
    world.seed = seed;
    world.drawn = offset;
    Drawn result;
    result.y = world.forward(f.name, sample.x, sample.example.attrs.list(), options);
    result.blocks = world.drawn - offset;
    return result;
}

void random(const Subject& subject, Findings& findings) {
    const auto world = make_world(subject);
    const catena_function& f = world->function(subject.function);
    if (const std::string absent = absent_in(*world, subject); !absent.empty())
        return findings.skip("{}", absent);
    if ((f.flags & CATENA_FUNCTION_STOCHASTIC) == 0) return findings.skip("it draws none");
    const bool runs = !world->kernels(f.name, CATENA_PHASE_FORWARD).empty() || f.compose != nullptr;
    if (f.examples == nullptr || !runs)
        return findings.skip("no example, or no kernel that runs here");
    bool draws = false;
    bool differs = false;
    for (std::size_t i = 0; f.examples[i] != nullptr; ++i) {
        const Example example = parse_example(f, f.examples[i]);
        const Sample sample = make_sample(*world, f, example, subject.seed32(), true);
        const Drawn first = draw(*world, f, sample, 11, 0, 1);
        draws = draws || first.blocks > 0;
        differs = differs || draw(*world, f, sample, 12, 0, 1).y != first.y ||
                  draw(*world, f, sample, 11, std::uint64_t{1} << 40, 1).y != first.y;
        for (const int threads : {2, 3, 7}) {
            const Drawn again = draw(*world, f, sample, 11, 0, threads);
            if (again.blocks != first.blocks)
                findings.fail(
                    "\"{}\": expected {} blocks reserved for any number of threads, got {} on {}",
                    sample.text, first.blocks, again.blocks, threads);
            if (again.y != first.y)
                findings.fail(
                    "\"{}\": expected the same numbers on any number of threads, got others on {}",
                    sample.text, threads);
        }
    }
    if (!draws) findings.fail("it is STOCHASTIC: expected philox() to be called, got no call");
    else if (!differs)
        findings.fail(
            "it is STOCHASTIC: expected other numbers with another seed or offset, got the same");
}
const Registered r1{{"determinism", "random",
                     "random numbers come from the host and depend on seed and offset, not on the "
                     "number of threads",
                     random, Each::function}};

}  // namespace
}  // namespace catena::check::random
