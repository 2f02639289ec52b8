// gpu-gate: executes the given program if there is a GPU. Otherwise prints the reason and exits
// with 77, or with 1 if there is a GPU that cannot be used. Also exits with 77 if PATH has no such
// program (python3).
//
// usage: gpu-gate PROGRAM [ARGUMENT...]
#include <catena/core/device.hpp>
#include <catena/core/error.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

// Looks for the driver's devices: a GPU that CUDA does not find is broken, unless it is hidden.
static bool has_gpu() {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (visible != nullptr && (*visible == 0 || *visible == '-')) return false;
    for (int i = 0; i < 16; ++i)
        if (std::filesystem::exists("/dev/nvidia" + std::to_string(i))) return true;
    return false;
}

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: gpu-gate PROGRAM [ARGUMENT...]\n", stderr);
        return 2;
    }
    try {
        catena::Device::get("cuda:0");
    } catch (const catena::DeviceError& error) {
        const bool broken = has_gpu();
        std::printf("%s: %s\n", broken ? "failed" : "skipped", error.what());
        return broken ? 1 : 77;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "gpu-gate: %s\n", error.what());
        return 2;
    }
    execvp(argv[1], argv + 1);
    if (errno == ENOENT && std::strchr(argv[1], '/') == nullptr) {
        std::printf("skipped: no %s here\n", argv[1]);
        return 77;
    }
    std::fprintf(stderr, "gpu-gate: %s: %s\n", argv[1], std::strerror(errno));
    return 2;
}
