// gpu-gate: becomes the program that it is given where there is a GPU, else says why not and ends with 77,
// or with 1 where there is one that cannot be used; with 77 as well where PATH has no such program (python3).
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

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: gpu-gate PROGRAM [ARGUMENT...]\n", stderr);
        return 2;
    }
    try {
        catena::Device::get("cuda:0");
    } catch (const catena::DeviceError& error) {
        // There is one, for all that the driver shows: something is broken.
        const char* hidden = std::getenv("CUDA_VISIBLE_DEVICES");
        const bool there = std::filesystem::exists("/dev/nvidia0") && hidden == nullptr;
        std::printf("%s: %s\n", there ? "failed" : "skipped", error.what());
        return there ? 1 : 77;
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
