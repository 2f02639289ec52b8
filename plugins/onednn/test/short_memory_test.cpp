// Under a limit on memory a product works or is an error, and never crashes.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "products.hpp"

using namespace onednn_test;

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr int computed = 0;
constexpr int refused = 1;
constexpr int wrong = 2;

std::uint64_t address_space() {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// Bytes of memory that can be executed and belong to no file: generated code.
std::uint64_t generated_code() {
    std::uint64_t bytes = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0, end = 0, inode = 0;
        char mode[5] = {};
        if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &begin, &end, mode, &inode) == 4 &&
            mode[2] == 'x' && inode == 0)
            bytes += end - begin;
    }
    return bytes;
}

std::uint64_t limit;

int multiply_within_limit() {
    Product p({100, 100, 784}, false, true, 1, 0);
    p.gemm.c = p.c.data<float>();
    const catena_blas& table = blas();
    const rlimit bytes = {address_space() + limit, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &bytes);
    world().threads = 2;
    catena_ctx ctx{&world(), {}, {}};
    const catena_status status = table.gemm(&ctx, &p.gemm);
    if (status == CATENA_OK) return computed;
    return status == CATENA_E_NOMEM && ctx.error.find("memory") != std::string::npos ? refused
                                                                                     : wrong;
}

int generate_once() {
    Product({100, 100, 784}, false, true, 1, 0).run(blas(), 2);
    const std::uint64_t code = generated_code();
    for (const Size& size : {Size{1, 900, 900}, Size{4, 1215, 700}, Size{11, 857, 63},
                             Size{20, 65, 5000}, Size{333, 17, 129}, Size{257, 255, 256}})
        for (const bool transpose_a : {false, true})
            for (const bool transpose_b : {false, true})
                for (const double beta : {0.0, 1.0, 0.25})
                    for (const int threads : {1, 3})
                        Product(size, transpose_a, transpose_b, 0.5, beta).run(blas(), threads);
    return code > 0 && generated_code() == code ? computed : wrong;
}

// In a process of its own, where oneDNN has generated nothing yet.
int outcome_of(int (*body)()) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(body());
    }
    int status = 0;
    waitpid(child, &status, 0);
    CAPTURE(status);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("the first product generates the code of all") {
    CHECK(outcome_of(generate_once) == computed);
}

// The threads that compute take memory as well: 8 MiB for a stack, 64 MiB for a heap.
TEST_CASE("with any limit a product works or is refused with a reason") {
    bool seen[2] = {};
    for (limit = 40 * mib; limit <= 240 * mib; limit += 2 * mib) {
        CAPTURE(limit / mib);
        const int outcome = outcome_of(multiply_within_limit);
        CHECK(outcome != wrong);
        if (outcome != wrong) seen[outcome] = true;
    }
    CHECK(seen[computed]);
    CHECK(seen[refused]);
}
