// gpu-gate: becomes the program that it is given where there is a GPU, else says why not and ends with 77;
// so where PATH has no such program (python3).
//
// usage: gpu-gate PROGRAM [ARGUMENT...]
#include <catena/core/device.hpp>
#include <catena/core/error.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: gpu-gate PROGRAM [ARGUMENT...]\n", stderr);
        return 2;
    }
    try {
        catena::Device::get("cuda:0");
    } catch (const catena::DeviceError& error) {
        std::printf("skipped: %s\n", error.what());
        return 77;
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
