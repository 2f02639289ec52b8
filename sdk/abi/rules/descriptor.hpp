// Descriptor: a file descriptor, closed with its owner.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace catena {

class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() {
        if (fd_ < 0) return;
        const int why = errno;  // callers report it after the descriptor is gone
        close(fd_);
        errno = why;
    }
    explicit operator bool() const { return fd_ >= 0; }
    int get() const { return fd_; }
    int release() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
};

}  // namespace catena
