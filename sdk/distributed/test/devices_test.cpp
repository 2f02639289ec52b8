// Tests of arrays on other devices than the communicator takes, and of training on GPUs: with "nccl" if
// there are GPUs, else with "threads".
#include "training.hpp"

using namespace training;

namespace {

// Runs body on up to two ranks, each on a device of its own.
void on_devices(const std::function<void(const Communicator&)>& body) {
    if (!cuda::available()) return run_ranks(2, body, {}, 20);
    const int ranks = std::min(cuda::device_count(), 2);
    std::vector<Device> devices;
    for (int rank = 0; rank < ranks; ++rank)
        devices.push_back(Device::get("cuda:" + std::to_string(rank)));
    static int groups = 0;
    const std::string address = "devices_test " + std::to_string(groups++);
    run_ranks(
        ranks,
        [&](const Communicator& comm) {
            body(Communicator::open(
                "nccl",
                {.rank = comm.rank(), .size = comm.size(), .address = address, .timeout = 600}));
        },
        devices, 20);
}

}  // namespace

TEST_CASE("arrays on the host and on the rank's device") {
    on_devices([](const Communicator& comm) {
        const int size = comm.size(), rank = comm.rank();
        CHECK(comm.bcast_text(rank == 0 ? "of rank 0" : "") == "of rank 0");
        CHECK(comm.allgather_text(std::string(3, static_cast<char>('a' + rank))).back() ==
              std::string(3, static_cast<char>('a' + size - 1)));
        for (const Device& device : {Device::current(), cuda::host()}) {
            const Array x = Array::from({1.0F + static_cast<float>(rank), 10.0F}, {2}).to(device);
            const Array y = Array::zeros({2}, Dtype::float32, device);
            comm.allreduce(x, y).wait();
            CHECK(y.to_vector<float>() ==
                  std::vector{size == 1 ? 1.0F : 3.0F, 10.0F * static_cast<float>(size)});
            comm.allreduce(x, Reduction::max).wait();  // in place
            CHECK(x.to_vector<float>() == std::vector{static_cast<float>(size), 10.0F});
            const Array all = Array::zeros({size, 2}, Dtype::float32, device);
            comm.allgather(x, all).wait();
            CHECK(all.to_vector<float>().back() == 10);
            const std::vector<std::int64_t> counts(static_cast<std::size_t>(size), 2);
            comm.alltoall(all, all.copy(), counts, counts).wait();
        }
        const Communicator alone = comm.split(rank);
        CHECK(alone.size() == 1);
        CHECK(alone.bcast_text("own") == "own");
        const Array x = Array::from({1, 2, 3}, {3}), y = Array::zeros({3}, Dtype::int32);
        alone.alltoall(x, y, std::vector<std::int64_t>{3}, std::vector<std::int64_t>{3}).wait();
        CHECK(y.to_vector<int>() == std::vector{1, 2, 3});
    });
}

TEST_CASE("ranks on devices train as one process on the host") {
    const Values expected = train_alone("adam", 20);
    const Net first = new_net();
    for (const MultiNodeOptions& options :
         {MultiNodeOptions{.bucket_bytes = 400}, {.shard = true}, {.pairwise = true}})
        on_devices([&](const Communicator& comm) {
            Net net = deep_copy(first);
            if (cuda::available()) net.to_gpu(Device::current());
            optimizers::Adam adam;
            MultiNodeOptimizer multi(adam, comm, options);
            multi.setup(net);
            for (int step = 0; step < 20; ++step)
                learn(net, adam, Batch(step, batch_size).part(comm.rank(), comm.size()));
            CHECK(difference(expected, values_of(net)) < 2e-5);
        });
}
