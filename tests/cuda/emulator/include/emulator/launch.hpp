// Binds a kernel to its arguments, and launches it on the emulator.
#pragma once

#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "emulator/types.hpp"

namespace catena_emulator {

// The bytes of one argument, in which the emulator checks pointers.
struct Argument {
    const void* data;
    std::size_t bytes;
};

// A kernel bound to its arguments: body() runs one thread of it.
struct Bound {
    std::function<void()> body;
    std::vector<Argument> arguments;
};

template <class... P>
Bound bind_kernel(void (*kernel)(P...), std::tuple<P...> values) {
    const auto held = std::make_shared<std::tuple<P...>>(std::move(values));
    Bound bound;
    // Clears padding, which a launch would check for addresses.
    if constexpr (sizeof...(P) > 0)
        std::apply([](auto&... v) { (__builtin_clear_padding(&v), ...); }, *held);
    std::apply([&](const auto&... v) { bound.arguments = {Argument{&v, sizeof v}...}; }, *held);
    bound.body = [kernel, held] { std::apply(kernel, *held); };
    return bound;
}

template <class... P, std::size_t... i>
Bound bind_pointers(void (*kernel)(P...), void** args, std::index_sequence<i...>) {
    static_cast<void>(args);  // unused if the kernel has no parameters
    return bind_kernel(kernel, std::tuple<P...>(*static_cast<P*>(args[i])...));
}
template <class... P>
Bound bind_pointers(void (*kernel)(P...), void** args) {
    return bind_pointers(kernel, args, std::index_sequence_for<P...>());
}

[[gnu::visibility("default")]] cudaError_t launch(const cudaLaunchConfig_t& config,
                                                  const void* kernel, Bound bound);

// A kernel of a library that was loaded at run time.
struct KernelEntry {
    const char* name;
    Bound (*bind)(void** args);
};

// Returns the running block's dynamic shared memory, which is thread_local: see __shared__.
[[gnu::visibility("default")]] void* dynamic_shared_memory();

}  // namespace catena_emulator

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                               A&&... args) {
    static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter");
    return catena_emulator::launch(
        *config, reinterpret_cast<const void*>(kernel),
        catena_emulator::bind_kernel(kernel, std::tuple<P...>(std::forward<A>(args)...)));
}

template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** args,
                             std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
    return catena_emulator::launch({grid, block, shared_bytes, stream, nullptr, 0},
                                   reinterpret_cast<const void*>(kernel),
                                   catena_emulator::bind_pointers(kernel, args));
}
