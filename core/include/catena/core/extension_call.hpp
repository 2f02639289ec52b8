// Calls into tables that plugins offer, with arrays: for the host SDK, and for programs that use an
// extension by themselves.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/small_vector.hpp>

#include <catena/abi/host.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace catena {

class Queue;

// The best table that plugins offer under an id ("catena.kernels.draft/1") for no device in particular,
// or null. Searches the usual places first. Valid for ever.
const void* extension(const char* id);

// The name of a call in reports of faults that show up after it has returned: a kernel's name, as its
// user gave it. Cheap to copy. Each distinct text is stored until the process ends, so use few, short names.
class CallName {
public:
    explicit CallName(std::string_view text);
    const std::string& text() const noexcept { return *text_; }

private:
    const std::string* text_;
};

// One call: the context that the table's functions take, on the thread's current stream of the device.
// The end of the object marks its arrays as written, so it must come after the work was given.
class ExtensionCall {
public:
    // Without a device: for functions that touch no memory.
    explicit ExtensionCall(Device device = {});
    ExtensionCall(const ExtensionCall&) = delete;
    ExtensionCall& operator=(const ExtensionCall&) = delete;
    ~ExtensionCall();

    catena_ctx* context() noexcept;
    void* dev() const noexcept;
    catena_stream* stream() const noexcept;

    // The stream waits for what it needs; whoever uses the array later waits for the stream. Throws
    // DeviceError if the array is elsewhere, InvalidError if it is an empty handle.
    const catena_tensor* reads(const Array& array);
    catena_tensor* writes(const Array& array);

    // To be called right before a function that gives work to the stream. Reports of faults name the
    // work so, and an observer of calls sees it as a kernel of that name, from here to the end of this
    // object's life. kind: a string literal, which the observer gets as the kind of the kernel.
    void runs(CallName name) noexcept;  // kind: "extension"
    void runs(CallName name, const char* kind) noexcept;
    // True if that function found no memory (CATENA_E_NOMEM), and what the device has cached was given
    // back, so that it may be called once more.
    bool makes_room(catena_status status) noexcept;
    // Throws what the function said went wrong; "[what] " comes before it if no '[' does.
    void check(catena_status status, std::string_view what);

private:
    ArrayBody& need(const Array& array) const;

    Queue* queue_ = nullptr;
    SmallVector<Ref<ArrayBody>, 4> written_;
    const std::string* name_ = nullptr;
    const char* kind_ = nullptr;
    std::int64_t began_ = 0;  // if an observer watches
    alignas(std::max_align_t) std::byte context_[96];
};

}  // namespace catena
