// Loads code that was compiled at run time: a shared library made by the emulated NVRTC. Its bytes
// are written to a memfd, which is opened.
#include "library.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "cuda_runtime.h"
#include "device.hpp"
#include "emulator/control.h"

namespace catena_emulator {
namespace {

std::set<const void*>& kernels() {
    static auto* const all = new std::set<const void*>;
    return *all;
}

// Returns the size of an ELF library, whose section headers are at its end; 0 if it is not one.
std::size_t size_of_elf(const void* code) {
    Elf64_Ehdr head;
    std::memcpy(&head, code, sizeof head);
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_type != ET_DYN) return 0;
    return head.e_shoff + static_cast<std::size_t>(head.e_shentsize) * head.e_shnum;
}

}  // namespace

const KernelEntry* find_kernel(const void* kernel) {
    const std::lock_guard lock(api());
    return kernels().count(kernel) != 0 ? static_cast<const KernelEntry*>(kernel) : nullptr;
}

}  // namespace catena_emulator

using namespace catena_emulator;

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::size_t bytes = size_of_elf(code);
    if (bytes == 0) return note(cudaErrorInvalidKernelImage);
    const int file = memfd_create("catena-emulated-kernels", MFD_CLOEXEC);
    if (file < 0) return note(cudaErrorUnknown);
    std::size_t written = 0;
    while (written < bytes) {
        const ssize_t n = write(file, static_cast<const char*>(code) + written, bytes - written);
        if (n <= 0) break;
        written += static_cast<std::size_t>(n);
    }
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    void* opened = written == bytes ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (opened == nullptr) std::fprintf(stderr, "emulator: %s\n", dlerror());
    // The file stays open; otherwise dlopen() would take a later file with this name for it.
    if (opened == nullptr || dlsym(opened, "catena_emulator_kernels") == nullptr)
        return note(cudaErrorInvalidKernelImage);
    *library = static_cast<cudaLibrary_t>(opened);
    catena_emulator_live(1);
    return cudaSuccess;
}

// Does not unmap the code, because its kernels may still be queued.
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    if (const cudaError_t error = enter_to_free(); error != cudaSuccess) return error;
    if (library == nullptr) return note(cudaErrorInvalidResourceHandle);
    catena_emulator_live(-1);
    return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const auto* entry = static_cast<const KernelEntry*>(dlsym(library, "catena_emulator_kernels"));
    for (; entry->name != nullptr; ++entry) {
        if (std::strcmp(entry->name, name) != 0) continue;
        const std::lock_guard lock(api());
        kernels().insert(entry);
        *kernel = reinterpret_cast<cudaKernel_t>(const_cast<KernelEntry*>(entry));
        return cudaSuccess;
    }
    return note(cudaErrorSymbolNotFound);
}
