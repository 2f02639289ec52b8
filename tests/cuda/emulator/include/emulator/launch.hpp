// Launches kernels on the emulator. Instantiated for each kernel, so it is short.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "emulator/types.hpp"

namespace catena_emulator {

// The bytes of one argument, in which the emulator checks pointers.
struct Argument {
    const void* data;
    std::size_t bytes;
};
inline constexpr std::size_t argument_alignment = 64;  // of the emulator's copies of arguments

// Calls a kernel, cast to its own type, for one thread.
using Call = void (*)(void (*kernel)(), void* const* arguments);

// Copies the n arguments.
[[gnu::visibility("default")]] cudaError_t launch(const cudaLaunchConfig_t& config, Call call,
                                                  void (*kernel)(), const Argument* arguments,
                                                  std::size_t n);

template <class... P, std::size_t... i>
void call(void (*kernel)(), void* const* arguments, std::index_sequence<i...>) {
    static_cast<void>(arguments);  // unused if the kernel has no parameters
    reinterpret_cast<void (*)(P...)>(kernel)(*static_cast<P*>(arguments[i])...);
}
template <class... P>
cudaError_t launch_values(const cudaLaunchConfig_t& config, void (*kernel)(P...), P... values) {
    static_assert((std::is_trivially_copyable_v<P> && ...) &&
                  ((alignof(P) <= argument_alignment) && ...));
    (__builtin_clear_padding(&values), ...);  // else the launch would check it for addresses
    const Argument arguments[] = {{&values, sizeof values}..., {}};
    return launch(
        config,
        [](void (*any)(), void* const* held) {
            call<P...>(any, held, std::index_sequence_for<P...>());
        },
        reinterpret_cast<void (*)()>(kernel), arguments, sizeof...(P));
}

template <class... P, std::size_t... i>
cudaError_t launch_pointers(const cudaLaunchConfig_t& config, void (*kernel)(P...), void** args,
                            std::index_sequence<i...>) {
    static_cast<void>(args);
    return launch_values<P...>(config, kernel, *static_cast<P*>(args[i])...);
}
template <class... P>
cudaError_t launch_pointers(const cudaLaunchConfig_t& config, void (*kernel)(P...), void** args) {
    return launch_pointers(config, kernel, args, std::index_sequence_for<P...>());
}

// A kernel of a library that was loaded at run time.
struct KernelEntry {
    const char* name;
    cudaError_t (*launch)(const cudaLaunchConfig_t& config, void** args);
};

}  // namespace catena_emulator

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                               A&&... args) {
    static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter");
    return catena_emulator::launch_values<P...>(*config, kernel, std::forward<A>(args)...);
}

template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** args,
                             std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
    return catena_emulator::launch_pointers({grid, block, shared_bytes, stream, nullptr, 0}, kernel,
                                            args);
}
