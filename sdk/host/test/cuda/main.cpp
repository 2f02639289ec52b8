// Runs the tests on the GPUs that there are, or that CATENA_GPU names: 77, "skipped", with fewer than 2.
#define DOCTEST_CONFIG_IMPLEMENT
#include <catena/cuda.hpp>
#include <doctest/doctest.h>

#include <cstdio>

int main(int argc, char** argv) {
    if (const int n = catena::cuda::device_count(); n < 2) {
        std::fprintf(stderr, "skipped: %d GPUs of 2: %s\n", n, catena::cuda::reason().c_str());
        return 77;
    }
    return doctest::Context(argc, argv).run();
}
