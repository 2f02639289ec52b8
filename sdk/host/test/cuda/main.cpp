// Runs the tests on the GPUs that there are, or that CATENA_GPU names: 77, "skipped", with fewer than 2.
#define DOCTEST_CONFIG_IMPLEMENT
#include "ipc_peer.hpp"

#include <doctest/doctest.h>
#include <catena/cuda.hpp>

#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == "--ipc-peer") return ipc_peer();
    if (const int n = catena::cuda::device_count(); n < 2) {
        std::fprintf(stderr, "skipped: %d GPUs of 2: %s\n", n, catena::cuda::reason().c_str());
        return 77;
    }
    return doctest::Context(argc, argv).run();
}
