// Runs the tests on all GPUs, or on those that CATENA_GPU names. Exits with 77, "skipped", if there
// is none. With one GPU, it skips and lists the cases that need two.
#define DOCTEST_CONFIG_IMPLEMENT
#include "gpus.hpp"
#include "ipc_peer.hpp"

#include <cstdio>
#include <string_view>

namespace {

void list_what_expects_two() {
    std::puts("skipped: cases that expect 2 GPUs, got 1");
    const char* const words[] = {"host-cuda", "--test-suite=two GPUs", "--list-test-cases"};
    doctest::Context(3, words).run();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == "--ipc-peer") return ipc_peer();
    const int n = catena::cuda::device_count();
    if (n == 0) {
        std::printf("skipped: %s\n", catena::cuda::reason().c_str());
        return 77;
    }
    doctest::Context context(argc, argv);
    if (n == 1) {
        list_what_expects_two();
        context.addFilter("test-suite-exclude", "two GPUs");
    }
    return context.run();
}
