// NVIDIA's NVRTC, to which this library is linked, but with PTX in place of machine code: the emulator
// has none. NVRTC keeps the PTX of programs that it compiled for sm_NN. It makes an empty text for those
// whose code is to be linked later (-dlto).
#include <dlfcn.h>
#include <nvrtc.h>

#pragma GCC visibility push(default)
extern "C" {

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, std::size_t* bytes) {
    const nvrtcResult result = nvrtcGetPTXSize(program, bytes);
    if (result == NVRTC_SUCCESS && *bytes == 1) *bytes = 0;
    return result;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* code) {
    std::size_t bytes = 0;
    const nvrtcResult result = nvrtcGetCUBINSize(program, &bytes);
    return bytes == 0 ? result : nvrtcGetPTX(program, code);
}

// The plugin takes the file that has this function for the compiler, and keeps what it makes apart from
// the code of others.
nvrtcResult nvrtcVersion(int* major, int* minor) {
    static const auto genuine = reinterpret_cast<decltype(&nvrtcVersion)>(
        dlsym(dlopen(GENUINE_NVRTC, RTLD_NOW | RTLD_LOCAL), "nvrtcVersion"));
    return genuine(major, minor);
}

}  // extern "C"
#pragma GCC visibility pop
