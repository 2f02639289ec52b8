// Tests that a product under a memory limit works or returns an error, and never crashes.
#include <catena_test/child.hpp>

#include <sys/mman.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "products.hpp"

using namespace onednn_test;
using catena_test::end_of;

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr int computed = 0;
constexpr int refused = 1;
constexpr int wrong = 2;

// Returns the bytes of executable memory that belong to no file: generated code.
std::uint64_t generated_code() {
    std::uint64_t bytes = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0, end = 0, inode = 0;
        char mode[5] = {};
        if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &begin, &end, mode, &inode) == 4 &&
            mode[2] == 'x' && inode == 0 && line.find('[') == line.npos)  // not the kernel's [vdso]
            bytes += end - begin;
    }
    return bytes;
}

// Computes a product with `more` bytes of memory beyond what the process uses after loading.
int multiply_with(std::uint64_t more) {
    Product p({100, 100, 784}, false, true, 1, 0);
    p.gemm.c = p.c.data<float>();
    const catena_blas& table = blas();
    catena_test::limit_address_space(catena_test::address_space() + more);
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

// Loads the plugin under a limit in bytes. It offers its kernels and has generated the code of products, or it
// offers none and has generated none.
int load_with(std::uint64_t limit) {
    catena_test::limit_address_space(limit);
    const catena_plugin& table = plugin();
    const bool generated = generated_code() > 0;
    if (table.n_kernels == 0 && table.n_extensions == 0 && !generated) return refused;
    return table.n_kernels > 0 && table.n_extensions == 1 && generated ? computed : wrong;
}

}  // namespace

// Each test runs in new processes, in which oneDNN has generated no code yet.
TEST_CASE("the first product generates the code of all") {
    CHECK(end_of(generate_once) == computed);
}

// The computing threads use memory as well: 8 MiB for a stack, 64 MiB for a heap.
TEST_CASE("with any limit a product works or is refused with a reason") {
    bool seen[2] = {};
    for (std::uint64_t more = 232; more <= 432; more += 4) {
        CAPTURE(more);
        const int outcome = end_of([&] { return multiply_with(more * mib); });
        REQUIRE((outcome == computed || outcome == refused));
        seen[outcome] = true;
    }
    CHECK(seen[computed]);
    CHECK(seen[refused]);
}

// Later, another thread could use up the memory between the check and the generation.
TEST_CASE("under a limit, loading generates the code of products, or oneDNN is not used") {
    CHECK(end_of([] { return load_with(300 * mib); }) == refused);
    CHECK(end_of([] { return load_with(4095 * mib); }) == refused);
    CHECK(end_of([] { return load_with(4096 * mib); }) == computed);
    CHECK(end_of([] {
              void* taken = mmap(nullptr, 3900 * mib, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              if (taken == MAP_FAILED) return wrong;
              return load_with(4096 * mib);
          }) == refused);
    CHECK(end_of([] {
              return plugin().n_kernels > 0 && generated_code() == 0 ? computed : wrong;
          }) == computed);  // without a limit the first product generates it
}
