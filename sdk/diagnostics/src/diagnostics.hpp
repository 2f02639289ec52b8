// What the library adds to the core. Each source file defines a part of this class.
#pragma once

#include <catena/core/extend/context.hpp>
#include <catena/core/extend/diagnostics.hpp>

namespace catena {

class CoreDiagnostics final : public Diagnostics {
    // stack_trace.cpp
    std::vector<void*> stack() override;
    std::string to_string(std::span<void* const> trace) override;
    // nan.cpp
    void check(const Array& array, std::string_view function, std::string_view what,
               std::span<void* const> trace) override;
    void check_forward(const FunctionInfo& function, std::span<ArrayBody* const> x,
                       std::span<const Array> y) override;
    void backward(const GraphNode& node, std::span<void* const> trace,
                  const std::function<Array(std::size_t)>& gradient,
                  const std::function<void()>& step) override;
    // kernels.cpp
    std::string suggestion(std::string_view function) override;
    std::vector<KernelsWithoutFunction> kernels_without_function() override;
    void report_pins() override;
    void no_device(std::string_view name, std::string_view backend) override;
    void no_kernel(const FunctionInfo& function, std::span<ArrayBody* const> x, Device device,
                   std::uint64_t key, bool declined) override;
    // call_observer.cpp
    void launches(Device device, const catena_function& function,
                  std::int32_t phase) noexcept override;
    std::string last_launches(Device device) override;
};

}  // namespace catena
