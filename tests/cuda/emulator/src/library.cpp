// Libraries: code that was compiled at run time.
#include <map>
#include <memory>
#include <string>

#include "api.hpp"
#include "code.hpp"
#include "device.hpp"
#include "emulator/control.h"

using namespace catena_emulator;

struct CUlib_st {
    std::shared_ptr<Code> code;
    std::map<std::string, CUkern_st> kernels;
};

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* data, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    auto code = Code::read(data);
    if (code == nullptr) return note(cudaErrorInvalidKernelImage);
    const catena_machine::Kernel* none = nullptr;
    const cudaError_t error = code->find("", &none);  // only parses
    if (error != cudaErrorSymbolNotFound) return note(error);
    *library = new CUlib_st{std::move(code), {}};
    catena_emulator_live(1);
    return cudaSuccess;
}

// Its kernels may still be queued; they keep the code.
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    if (const cudaError_t error = enter_to_free(); error != cudaSuccess) return error;
    if (library == nullptr) return note(cudaErrorInvalidResourceHandle);
    for (auto& entry : library->kernels) remove_kernel(&entry.second);
    delete library;
    catena_emulator_live(-1);
    return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const catena_machine::Kernel* found = nullptr;
    if (const cudaError_t error = library->code->find(name, &found); error != cudaSuccess)
        return note(error);
    *kernel = &library->kernels.try_emplace(name, CUkern_st{library->code, name}).first->second;
    add_kernel(*kernel);
    return cudaSuccess;
}
