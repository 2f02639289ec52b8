// Tests of Communicator: what it adds to the plugins.
#include "ranks.hpp"

#include "temporary.hpp"

#include <chrono>

using namespace catena;
using namespace catena::distributed;

TEST_CASE("a group of one makes the checks of plugins") {
    const Array x = Array::zeros({2}), ids = Array::zeros({2}, Dtype::int32),
                flags = Array::zeros({2}, Dtype::bool8);
    const auto check = [&](const Communicator& comm) {
        CHECK_THROWS_AS(comm.bcast(x, 1).wait(), InvalidError);
        CHECK_THROWS_AS(comm.reduce(x, x, -1).wait(), InvalidError);
        CHECK_THROWS_AS(comm.gather(x, x, 1).wait(), InvalidError);
        CHECK_THROWS_AS(comm.allreduce(ids, Reduction::mean).wait(), DtypeError);
        CHECK_THROWS_AS(comm.allreduce(flags, Reduction::sum).wait(), DtypeError);
        CHECK_THROWS_AS(comm.reduce_scatter(flags, flags, Reduction::prod).wait(), DtypeError);
        comm.allreduce(flags, Reduction::max).wait();
        comm.allreduce(x, Reduction::mean).wait();
    };
    check({});
    run_ranks(1, check);
}

TEST_CASE("an exception does not wait for pending operations, and is the one reported") {
    const auto body = [](const Communicator& comm) {
        const Array x = Array::zeros({1000});
        if (comm.rank() == 0) {
            const Work pending = comm.recv(x, 1);
            throw DataError("own error");
        }
        comm.barrier().wait();
    };
    CHECK(error_of<Error>([&] { run_ranks(2, body, {}, 1e6); }) == "own error");
}
