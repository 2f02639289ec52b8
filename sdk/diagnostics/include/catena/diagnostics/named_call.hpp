// Names for calls that run no registered kernel, such as formulas, for error reports and observers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace catena {

class Queue;

// The name of a call in error reports that arrive after it returned: the user's name for a kernel.
// Cheap to copy. Each distinct text is stored until the process ends, so use few, short names.
class CallName {
public:
    explicit CallName(std::string_view text);
    const std::string& text() const noexcept { return *text_; }

private:
    const std::string* text_;
};

// Before a launch on the queue that may fail after its call has returned.
void note_launch(const Queue& queue, CallName name) noexcept;

// Tells the observer of a call that began when this object was made. kind: a string literal.
class NamedCall {
public:
    NamedCall(Queue& queue, CallName name, const char* kind) noexcept;
    // bytes: written by the call. Not reported without memory.
    void end(std::uint64_t bytes) const noexcept;

private:
    Queue& queue_;
    CallName name_;
    const char* kind_;
    std::int64_t began_;  // 0 without an observer
};

}  // namespace catena
