// Calls of extension tables with arrays: for the host SDK and programs that use an extension.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/tables.hpp>
#include <catena/diagnostics/named_call.hpp>

#include <optional>

namespace catena {

class Queue;

// One call: the context for the table's functions, on the thread's current stream of the device.
// The destructor marks the arrays as written, so it must run after the work was launched.
class ExtensionCall {
public:
    // Without a device, for functions that access no memory.
    explicit ExtensionCall(Device device = {});
    ExtensionCall(const ExtensionCall&) = delete;
    ExtensionCall& operator=(const ExtensionCall&) = delete;
    ~ExtensionCall();

    catena_ctx* context() noexcept;
    void* dev() const noexcept;
    catena_stream* stream() const noexcept;

    // Makes the stream wait for pending work on the array; later users of the array wait for the
    // stream. Throws DeviceError for an array on another device, InvalidError for an empty handle.
    const catena_tensor* reads(const Array& array);
    catena_tensor* writes(const Array& array);

    // Call it just before a function that launches work on the stream. Error reports use this name,
    // and an observer sees a kernel with this name, from here to the end of this object's lifetime.
    // kind: a string literal that the observer receives as the kernel's kind.
    void runs(CallName name, const char* kind = "extension") noexcept;
    // True if the function may be called once more: it lacked memory, and cached one was released.
    bool makes_room(catena_status status) noexcept;
    // Throws the error of the function, with the prefix "[what] " unless it has one or what is "".
    void check(catena_status status, std::string_view what);

private:
    ArrayBody& need(const Array& array) const;

    Queue* queue_ = nullptr;
    SmallVector<Ref<ArrayBody>, 4> written_;
    std::optional<NamedCall> named_;
    alignas(std::max_align_t) std::byte context_[96];
};

}  // namespace catena
