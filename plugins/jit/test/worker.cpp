// worker DEVICE ADDEND...: compiles and calls a kernel for each addend, and prints the cache
// statistics. $PREAMBLE is the preamble of the kernels; $KEEP keeps their sources; $SHIPPED is a
// folder of compiled kernels; $NO_DISK makes fsync() fail.
#include <catena/catena.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

using namespace catena;

// Replaces the C library's fsync().
extern "C" __attribute__((visibility("default"))) int fsync(int file) {
    if (std::getenv("NO_DISK") == nullptr) return fdatasync(file);
    errno = EIO;
    return -1;
}

int main(int argc, char** argv) try {
    if (argc < 2) throw InvalidError("usage: worker DEVICE ADDEND...");
    const using_device scope(argv[1]);
    const char* preamble = std::getenv("PREAMBLE");
    if (const char* folder = std::getenv("SHIPPED")) use_compiled_kernels(folder);
    const Array x = Array::full({100}, 1);
    for (int k = 2; k < argc; ++k) {
        const std::string code = std::string("y = x + ") + argv[k];
        const Array y = elementwise(
            "T x", "T y", code.c_str(), "cached",
            {.preamble = preamble ? preamble : "", .keep = std::getenv("KEEP") != nullptr})(x);
        if (y.to_vector<float>()[99] != 1 + std::stof(argv[k])) {
            std::printf("wrong\n");
            return 1;
        }
    }
    const KernelStats stats = kernel_stats();
    std::printf("compiled=%d loaded=%d hits=%d evicted=%d\n", static_cast<int>(stats.compiled),
                static_cast<int>(stats.loaded), static_cast<int>(stats.hits),
                static_cast<int>(stats.evicted));
} catch (const Error& error) {
    std::printf("error: %s\n", error.what());
    return 2;
}
