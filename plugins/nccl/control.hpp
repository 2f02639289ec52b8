// The connection of a rank to its group on the host: a thread that exchanges messages with rank 0.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "hub.hpp"
#include "socket.hpp"

namespace catena_nccl {

class Control {
public:
    struct Place {
        int rank, size;
        std::string address = {};  // where rank 0 listens; ignored if there is one rank
        Socket listener = {};      // of rank 0, if it listens already
    };
    // Waits for all ranks. Throws Error. make_id: as in Hub.
    Control(Place place, double timeout, std::function<std::string()> make_id);
    ~Control() { leave(); }
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

    int local_rank() const { return local_rank_; }
    int local_size() const { return local_size_; }
    const std::string& id() const { return id_; }  // NCCL's id of the group

    // Starts the thread. It calls step() after messages and otherwise every few milliseconds if
    // busy() said so, else a few times a second.
    void run(std::function<void()> step, std::function<bool()> busy);
    void wake() const;
    // Stops the thread, and tells the others that this rank has left.
    void leave();

    // Tells rank 0 of an operation, which gets the returned number in its order, from 0.
    std::int64_t start(Message message);
    // Whether all ranks have started the operation with this number.
    bool agreed(Route route, std::int64_t number) const;
    // Asks rank 0 why an operation takes so long: the group fails with its answer.
    void late(Route route, std::int64_t number, const std::string& head, double seconds);
    // Makes the group fail, here and for the others.
    void fail(const std::string& text);
    // The text of the first failure, or empty.
    std::string failure() const;
    void throw_if_failed() const;
    // Asks for a channel; its id arrives later, also if the other rank asked.
    void ask_for_channel(Route route);
    std::map<Route, std::string> channels() const;
    // Returns the place in the group with the same color, whose size is 0 for color < 0.
    Place split(std::int32_t color, std::int32_t key, const std::string& head, double timeout);

private:
    void gather(Place& place, double timeout);
    void join(const Place& place, Clock::time_point until);
    void loop();
    void tell(Message message);
    void receive(const Message& message);
    void lost();

    const int rank_, size_;
    int local_rank_ = 0, local_size_ = 1;
    std::string id_;
    std::vector<Socket> sockets_;  // rank 0: of rank r at r; others: to rank 0 at 0
    Socket waker_;
    std::function<void()> step_;
    std::function<bool()> busy_;

    mutable std::mutex mutex_;  // guards what follows
    mutable std::condition_variable changed_;
    std::unique_ptr<Hub> hub_;  // of rank 0
    std::string failure_;
    std::map<Route, std::int64_t> started_, agreed_;
    std::map<Route, std::string> channels_;
    std::optional<Message> split_;
    bool hub_left_ = false;
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace catena_nccl
