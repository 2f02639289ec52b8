// Tests of CATENA_SEED, the initial seed of every device.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <cstdlib>

using namespace catena;

namespace {

const int set = setenv("CATENA_SEED", "42", 1);  // before any device is opened

}  // namespace

TEST_CASE("CATENA_SEED seeds every device, until seed() does") {
    CHECK(set == 0);
    CHECK(initial_seed() == 42);
    const Device devices[] = {Device::get("cpu:0"), Device::get("cpu:1"), Device::get("cpu:2")};
    std::vector<RandomState> states;
    for (const Device device : devices) states.push_back(random_state(device));
    CHECK(states[0].seed == 42);
    CHECK(states[1].seed != states[2].seed);
    const auto weights = links::Linear(3, 4).W.data().to_vector<float>();

    // A value that is no number is refused when a device is opened; a correct value then opens it.
    for (const char* wrong : {"abc", "-1", "1.5", "18446744073709551616", "7 ", " 7", "0x1"}) {
        CAPTURE(wrong);
        setenv("CATENA_SEED", wrong, 1);
        contains(
            error_of<InvalidError>([] { (void)initial_seed(); }),
            std::string("[seed] CATENA_SEED: expected a number from 0 to 2^64 - 1, got '") + wrong);
        contains(error_of<InvalidError>([] { (void)Device::get("cpu:3"); }), "[seed] CATENA_SEED");
        CHECK(random_state(devices[0]).seed == 42);
    }
    setenv("CATENA_SEED", "18446744073709551615", 1);
    CHECK(random_state(Device::get("cpu:3")).seed != 0);
    CHECK(initial_seed() == ~std::uint64_t{0});
    for (const char* nothing : {"", static_cast<const char*>(nullptr)}) {
        if (nothing) setenv("CATENA_SEED", nothing, 1);
        else unsetenv("CATENA_SEED");
        CHECK(initial_seed() == 0);
    }

    seed(42);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(random_state(devices[i]).seed == states[i].seed);
        CHECK(random_state(devices[i]).offset == 0);
    }
    CHECK(links::Linear(3, 4).W.data().to_vector<float>() == weights);
    CHECK(links::Linear(3, 4).W.data().to_vector<float>() != weights);
    setenv("CATENA_SEED", "abc", 1);  // seed() takes precedence
    CHECK(random_state(Device::get("cpu:4")).offset == 0);
    CHECK(random_state(devices[0]).seed == 42);
}
