// The connection of a rank to its group on the host.
#include "control.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include <catena/plugin/communicator.hpp>

namespace catena_nccl {

using catena::plugin::Error;

namespace {

std::string machine_name() {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    return name;
}

[[noreturn]] void refuse(int rank, const std::string& expected, const std::string& got) {
    throw Error(CATENA_E_DEVICE, "rank " + std::to_string(rank) + ": [open] ranks: expected " +
                                     expected + ", got " + got);
}

}  // namespace

Control::Control(Place place, double timeout, std::function<std::string()> make_id)
    : rank_(place.rank), size_(place.size), waker_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (rank_ != 0) {
        join(place, after(timeout));
        return;
    }
    id_ = make_id();
    gather(place, timeout);
    hub_ = std::make_unique<Hub>(
        size_,
        [this](int rank, const Message& m) {
            if (rank == 0) receive(m);
            else sockets_[static_cast<std::size_t>(rank)].write(m);
        },
        std::move(make_id));
}

// Waits until the other ranks have connected, and tells them their places.
void Control::gather(Place& place, double timeout) {
    const auto until = after(timeout);
    std::vector<std::string> machines(static_cast<std::size_t>(size_));
    sockets_.resize(machines.size());
    machines[0] = machine_name();
    const auto refuse_all = [&](const std::string& expected, const std::string& got) {
        Message m = {.kind = Kind::failed};
        m.text = "rank 0: [open] ranks: expected " + expected + ", got " + got;
        for (const Socket& s : sockets_)
            if (s) s.write(m);
        refuse(0, expected, got);
    };
    if (size_ > 1 && !place.listener) place.listener = listen_at(place.address);
    for (int missing = size_ - 1; missing > 0;) {
        Socket socket = accept_from(place.listener, until);
        if (!socket && Clock::now() >= until) {
            std::string names;
            for (std::size_t r = 1; r < sockets_.size(); ++r)
                if (!sockets_[r]) names += (names.empty() ? "" : ", ") + std::to_string(r);
            refuse_all("rank " + names + " within " + catena::plugin::text_of(timeout) + " seconds",
                       "no connection to " + place.address);
        }
        Message hello;
        if (!socket) continue;
        socket.limit_reads(1);  // others may connect to the port by chance
        if (!socket.read(hello) || hello.kind != Kind::hello) continue;
        socket.limit_reads(0);
        if (hello.b != size_ || hello.a < 1 || hello.a >= size_ ||
            sockets_[static_cast<std::size_t>(hello.a)]) {
            const std::string got =
                "rank " + std::to_string(hello.a) + " of " + std::to_string(hello.b);
            Message m = {.kind = Kind::failed};
            const std::string expected = "one rank 0 to " + std::to_string(size_ - 1) + " each";
            m.text = "rank 0: [open] ranks: expected " + expected + ", got another " + got;
            socket.write(m);
            refuse_all(expected, "another " + got);
        }
        machines[static_cast<std::size_t>(hello.a)] = hello.text;
        sockets_[static_cast<std::size_t>(hello.a)] = std::move(socket);
        --missing;
    }
    for (std::size_t r = 0; r < machines.size(); ++r) {
        const auto before = machines.begin() + static_cast<std::ptrdiff_t>(r);
        Message m = {.kind = Kind::welcome};
        m.a = std::count(machines.begin(), before, machines[r]);
        m.b = std::count(machines.begin(), machines.end(), machines[r]);
        m.text = id_;
        if (r == 0) local_size_ = static_cast<int>(m.b);
        else sockets_[r].write(m);
    }
}

void Control::join(const Place& place, Clock::time_point until) {
    std::string why;
    Message hello = {.kind = Kind::hello, .a = rank_, .b = size_};
    hello.text = machine_name();
    for (;;) {
        Socket socket = connect_to(place.address, why);
        Message reply;
        if (socket && socket.write(hello)) {
            // rank 0 names the ranks that are missing, so its own limit goes first
            if (!readable(socket, until + std::chrono::seconds(1)))
                refuse(rank_, "all ranks within the timeout",
                       "fewer at " + place.address + ", or another program that listens there");
            if (socket.read(reply) && reply.kind == Kind::failed)
                throw Error(CATENA_E_DEVICE, reply.text);
            if (reply.kind == Kind::welcome) {
                local_rank_ = static_cast<int>(reply.a);
                local_size_ = static_cast<int>(reply.b);
                id_ = reply.text;
                sockets_.push_back(std::move(socket));
                return;
            }
            why = "the connection was closed";  // an earlier group's, which no longer listens
        }
        if (Clock::now() >= until)
            refuse(rank_, "rank 0 at " + place.address + " within the timeout", why);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

void Control::run(std::function<void()> step, std::function<bool()> busy) {
    step_ = std::move(step);
    busy_ = std::move(busy);
    thread_ = std::thread([this] { loop(); });
}

void Control::leave() {
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(stop_, true)) return;
    }
    wake();
    if (thread_.joinable()) thread_.join();
    const Message m = {.kind = Kind::left};
    for (const Socket& s : sockets_)
        if (s) s.write(m);
}

void Control::wake() const {
    const std::uint64_t one = 1;
    static_cast<void>(!write(waker_.fd(), &one, sizeof one));  // full: it is awake
}

void Control::loop() {
    std::vector<bool> ended(sockets_.size());
    for (;;) {
        std::vector<pollfd> entries = {{waker_.fd(), POLLIN, 0}};
        for (std::size_t i = 0; i < sockets_.size(); ++i)
            entries.push_back({ended[i] ? -1 : sockets_[i].fd(), POLLIN, 0});
        poll(entries.data(), entries.size(), busy_() ? 5 : 500);
        std::uint64_t count = 0;
        if (entries[0].revents != 0) static_cast<void>(!read(waker_.fd(), &count, sizeof count));
        for (std::size_t i = 0; i < sockets_.size(); ++i) {
            if (entries[i + 1].revents == 0) continue;
            Message m;
            const bool got = sockets_[i].read(m);
            ended[i] = !got;
            const std::lock_guard lock(mutex_);
            if (hub_ != nullptr && got) hub_->handle(static_cast<int>(i), m);
            else if (hub_ != nullptr) hub_->gone(static_cast<int>(i));
            else if (got) receive(m);
            else lost();
        }
        {
            const std::lock_guard lock(mutex_);
            if (stop_) return;
        }
        step_();
    }
}

// With mutex_ held.
void Control::receive(const Message& m) {
    switch (m.kind) {
        case Kind::agreed: agreed_[m.route] = m.a; break;
        case Kind::failed:
            if (failure_.empty()) failure_ = m.text;
            break;
        case Kind::channel: channels_[m.route] = m.text; break;
        case Kind::split: split_ = m; break;
        case Kind::left: hub_left_ = true; break;
        default: break;
    }
    changed_.notify_all();
}

// With mutex_ held: the connection to rank 0 has ended.
void Control::lost() {
    if (!hub_left_ && failure_.empty())
        failure_ = "rank " + std::to_string(rank_) +
                   ": [group]: expected rank 0, got the end of its process";
    hub_left_ = true;
    changed_.notify_all();
}

// With mutex_ held.
void Control::tell(Message m) {
    if (hub_ != nullptr) hub_->handle(0, m);
    else if (hub_left_ || !sockets_[0].write(m)) {
        if (failure_.empty() && m.kind == Kind::started)
            failure_ = m.head + ": expected rank 0, got the end of its membership";
        if (failure_.empty() && m.kind == Kind::late)
            failure_ = m.head + ": expected its end within " + m.text + ", got none";
    }
}

std::int64_t Control::start(Message m) {
    const std::lock_guard lock(mutex_);
    m.kind = Kind::started;
    const Route route = m.route;
    tell(std::move(m));
    return started_[route]++;
}

bool Control::agreed(Route route, std::int64_t number) const {
    const std::lock_guard lock(mutex_);
    const auto found = agreed_.find(route);
    return hub_left_ || (found != agreed_.end() && found->second > number);
}

void Control::late(Route route, std::int64_t number, const std::string& head, double seconds) {
    Message m = {.kind = Kind::late, .route = route, .a = number};
    m.head = head;
    m.text = catena::plugin::text_of(seconds) + " seconds";
    const std::lock_guard lock(mutex_);
    tell(std::move(m));
}

void Control::fail(const std::string& text) {
    {
        const std::lock_guard lock(mutex_);
        if (!failure_.empty()) return;
        failure_ = text;
        Message m = {.kind = Kind::failed};
        m.text = text;
        tell(std::move(m));
        changed_.notify_all();
    }
    wake();
}

std::string Control::failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
}

void Control::throw_if_failed() const {
    if (std::string text = failure(); !text.empty()) throw Error(CATENA_E_DEVICE, std::move(text));
}

void Control::ask_for_channel(Route route) {
    const std::lock_guard lock(mutex_);
    tell({.kind = Kind::channel, .route = route});
    wake();
}

std::map<Route, std::string> Control::channels() const {
    const std::lock_guard lock(mutex_);
    return channels_;
}

Control::Place Control::split(std::int32_t color, std::int32_t key, const std::string& head,
                              double timeout) {
    Place place = {};
    Message m = {.a = color, .b = key};
    m.head = head;
    m.text = "split";
    if (color >= 0 && size_ > 1) {
        // In case that this rank becomes rank 0: at the address by which others are connected.
        const Socket& other = sockets_[rank_ == 0 ? 1 : 0];
        place.listener = listen_at(other.address(0));
        m.more = other.address(place.listener.port());
    }
    const std::int64_t number = start(std::move(m));
    const auto until = after(timeout);
    std::unique_lock lock(mutex_);
    const auto arrived = [&] { return split_.has_value() || !failure_.empty(); };
    if (!changed_.wait_until(lock, until, arrived)) {
        lock.unlock();
        late(collective, number, head, timeout);
        lock.lock();
        changed_.wait_for(lock, std::chrono::seconds(1), arrived);
    }
    if (!split_) {
        if (failure_.empty()) failure_ = head + ": expected an answer of rank 0, got none";
        throw Error(CATENA_E_DEVICE, failure_);
    }
    place.rank = static_cast<int>(split_->a);
    place.size = static_cast<int>(split_->b);
    place.address = split_->more;
    split_.reset();
    return place;
}

}  // namespace catena_nccl
