// run_ranks(): threads of this process as ranks.
#include <catena/core/config.hpp>
#include <catena/distributed/communicator.hpp>
#include <catena/fail.hpp>

#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace catena::distributed {

void run_ranks(int n, const std::function<void(const Communicator&)>& body,
               const std::vector<Device>& devices, double timeout) {
    if (n < 1 || (!devices.empty() && std::ssize(devices) < n))
        fail<InvalidError>("[run_ranks] ranks: expected at least 1 and {} devices, got {}", n,
                           devices.size());
    static std::atomic<int> groups = 0;
    const std::string address = fmt::format("run_ranks {}", groups++);
    std::mutex mutex;
    std::exception_ptr first;
    bool first_is_own = false;
    const Config inherited = config();
    const Device current = Device::current();
    const auto run = [&](int rank) {
        std::optional<Communicator> comm;
        try {
            config() = inherited;
            const using_device scope(devices.empty() ? current
                                                     : devices[static_cast<std::size_t>(rank)]);
            comm = Communicator::open(
                "threads", {.rank = rank, .size = n, .address = address, .timeout = timeout});
            body(*comm);
        } catch (const std::exception& error) {
            const std::scoped_lock lock(mutex);
            // A DeviceError may be a consequence of another rank's exception.
            const bool own = dynamic_cast<const DeviceError*>(&error) == nullptr;
            if (!first || (own && !first_is_own)) {
                first = std::current_exception();
                first_is_own = own;
            }
            if (comm) comm->abort(error.what());
        }
    };
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < n; ++rank) threads.emplace_back(run, rank);
    }
    if (first) std::rethrow_exception(first);
}

}  // namespace catena::distributed
