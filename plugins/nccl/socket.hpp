// TCP between the ranks of a group: addresses, connections, messages.
#pragma once

#include <chrono>
#include <string>

#include "message.hpp"

namespace catena_nccl {

using Clock = std::chrono::steady_clock;
Clock::time_point after(double seconds);  // from now; huge numbers are cut off

// Owns a file descriptor.
class Socket {
public:
    Socket() = default;
    explicit Socket(int fd) : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
    Socket& operator=(Socket&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Socket();

    int fd() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    // Returns false if the connection has ended.
    bool write(const Message& message) const;
    bool read(Message& message) const;
    // read() returns false if nothing arrives for so long; 0: it waits.
    void limit_reads(int seconds) const;
    // The address of this end, "127.0.0.1:4711", with another port.
    std::string address(int port) const;
    int port() const;

private:
    int fd_ = -1;
};

// Listens on "host:port", on all of the machine's addresses unless the host is a loopback.
// Port 0: any. Throws Error.
Socket listen_at(const std::string& address);
// Returns an empty Socket if there was no connection until then.
Socket accept_from(const Socket& listener, Clock::time_point until);
// Connects once. Returns an empty Socket, and why in error, if nobody listens there.
Socket connect_to(const std::string& address, std::string& error);
// Whether there is something to read; until that time at most.
bool readable(const Socket& socket, Clock::time_point until);

}  // namespace catena_nccl
