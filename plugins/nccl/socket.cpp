// TCP between the ranks of a group.
#include "socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include <catena/plugin/error.hpp>

namespace catena_nccl {
namespace {

std::string text_of_errno() { return std::generic_category().message(errno); }

struct FreeAddresses {
    void operator()(addrinfo* all) const { freeaddrinfo(all); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// Throws Error for an address that is not "host:port".
Addresses resolve(const std::string& address, int flags) {
    const std::size_t colon = address.rfind(':');
    std::string host = colon == std::string::npos ? "" : address.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo* found = nullptr;
    const int error = host.empty() || port.empty()
                          ? EAI_NONAME
                          : getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
    if (error != 0)
        catena::plugin::fail(CATENA_E_INVALID, "open", "address", "host:port",
                             "'" + address + "' (" + gai_strerror(error) + ")");
    return Addresses(found);
}

bool is_loopback(const sockaddr& address) {
    if (address.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) == INADDR_LOOPBACK;
}

void set(int fd, int level, int option) {
    const int on = 1;
    setsockopt(fd, level, option, &on, sizeof on);
}

// Messages as bytes: all ranks run the same build, which `hello` checks.
class Writer {
public:
    void bytes(const void* data, std::size_t n) { all.append(static_cast<const char*>(data), n); }
    void number(std::int64_t n) { bytes(&n, sizeof n); }
    template <class List>
    void list(const List& items) {
        number(static_cast<std::int64_t>(items.size()));
        bytes(items.data(), items.size() * sizeof items[0]);
    }
    std::string all;
};
class Reader {
public:
    explicit Reader(const std::string& all) : all_(all) {}
    bool bytes(void* data, std::size_t n) {
        if (all_.size() - at_ < n) return false;
        std::memcpy(data, all_.data() + at_, n);
        at_ += n;
        return true;
    }
    bool number(std::int64_t& n) { return bytes(&n, sizeof n); }
    template <class List>
    bool list(List& items) {
        std::int64_t n = 0;
        if (!number(n) || n < 0 || static_cast<std::uint64_t>(n) > all_.size()) return false;
        items.resize(static_cast<std::size_t>(n));
        return n == 0 || bytes(items.data(), items.size() * sizeof items[0]);
    }

private:
    const std::string& all_;
    std::size_t at_ = 0;
};

constexpr std::uint32_t magic = 0x6e63630a;
constexpr std::uint32_t longest = 1u << 26;  // bytes of a message

bool read_all(int fd, void* data, std::size_t bytes) {
    auto* to = static_cast<char*>(data);
    while (bytes > 0) {
        const ssize_t n = recv(fd, to, bytes, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        to += n;
        bytes -= static_cast<std::size_t>(n);
    }
    return true;
}

}  // namespace

Clock::time_point after(double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(std::min(seconds, 1e8)));
}

Socket::~Socket() {
    if (fd_ >= 0) close(fd_);
}

bool Socket::write(const Message& m) const {
    Writer body;
    for (const std::int64_t n : {std::int64_t(m.kind), std::int64_t(m.route.first),
                                 std::int64_t(m.route.second), m.a, m.b})
        body.number(n);
    for (const std::string* text : {&m.head, &m.text, &m.more}) body.list(*text);
    body.list(m.sent);
    body.list(m.received);
    const std::uint32_t header[] = {magic, static_cast<std::uint32_t>(body.all.size())};
    const std::string all =
        std::string(reinterpret_cast<const char*>(header), sizeof header) + body.all;
    for (std::size_t at = 0; at < all.size();) {
        const ssize_t n = send(fd_, all.data() + at, all.size() - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += static_cast<std::size_t>(n);
    }
    return true;
}

bool Socket::read(Message& m) const {
    std::uint32_t header[2] = {};
    if (!read_all(fd_, header, sizeof header) || header[0] != magic || header[1] > longest)
        return false;
    std::string body(header[1], '\0');
    if (!read_all(fd_, body.data(), body.size())) return false;
    Reader reader(body);
    std::int64_t kind = 0, from = 0, to = 0;
    if (!reader.number(kind) || !reader.number(from) || !reader.number(to) || !reader.number(m.a) ||
        !reader.number(m.b) || !reader.list(m.head) || !reader.list(m.text) ||
        !reader.list(m.more) || !reader.list(m.sent) || !reader.list(m.received))
        return false;
    m.kind = static_cast<Kind>(kind);
    m.route = {static_cast<int>(from), static_cast<int>(to)};
    return true;
}

void Socket::limit_reads(int seconds) const {
    const timeval limit = {seconds, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

int Socket::port() const {
    sockaddr_storage own = {};
    socklen_t bytes = sizeof own;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &bytes);
    return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

std::string Socket::address(int port) const {
    sockaddr_storage own = {};
    socklen_t bytes = sizeof own;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &bytes);
    char host[NI_MAXHOST] = {};
    getnameinfo(reinterpret_cast<const sockaddr*>(&own), bytes, host, sizeof host, nullptr, 0,
                NI_NUMERICHOST);
    return "[" + std::string(host) + "]:" + std::to_string(port);
}

Socket listen_at(const std::string& address) {
    const Addresses found = resolve(address, AI_PASSIVE);
    sockaddr_storage own = {};
    std::memcpy(&own, found->ai_addr, found->ai_addrlen);
    if (own.ss_family == AF_INET && !is_loopback(*found->ai_addr))
        reinterpret_cast<sockaddr_in&>(own).sin_addr.s_addr = htonl(INADDR_ANY);
    if (own.ss_family == AF_INET6 && !is_loopback(*found->ai_addr))
        reinterpret_cast<sockaddr_in6&>(own).sin6_addr = in6addr_any;
    Socket made(socket(own.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (made) set(made.fd(), SOL_SOCKET, SO_REUSEADDR);
    if (!made || bind(made.fd(), reinterpret_cast<sockaddr*>(&own), found->ai_addrlen) != 0 ||
        listen(made.fd(), 1024) != 0)
        catena::plugin::fail(CATENA_E_DEVICE, "open", "rank 0's address", "one to listen at",
                             address + " (" + text_of_errno() + ")");
    return made;
}

bool readable(const Socket& socket, Clock::time_point until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd entry = {socket.fd(), POLLIN, 0};
    return poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30))) > 0;
}

Socket accept_from(const Socket& listener, Clock::time_point until) {
    if (!readable(listener, until)) return {};
    Socket made(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (made) set(made.fd(), IPPROTO_TCP, TCP_NODELAY);
    return made;
}

Socket connect_to(const std::string& address, std::string& error) {
    const Addresses found = resolve(address, 0);
    for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
        Socket made(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (made && connect(made.fd(), a->ai_addr, a->ai_addrlen) == 0) {
            set(made.fd(), IPPROTO_TCP, TCP_NODELAY);
            set(made.fd(), SOL_SOCKET, SO_KEEPALIVE);
            return made;
        }
        error = text_of_errno();
    }
    return {};
}

}  // namespace catena_nccl
