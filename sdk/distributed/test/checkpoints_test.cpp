// Tests of checkpoints: complete ones are resumed, with any number of ranks.
#include "training.hpp"

#include "temporary.hpp"

using namespace training;
namespace fs = std::filesystem;

namespace {

struct State : Visitable {
    Net net;
    optimizers::Adam adam;
    std::int64_t position = 0;
    std::int64_t own = -1;  // differs between ranks
    void visit(Visitor& v) override {
        v("net", net)("adam", adam)("position", position)("own", own);
    }
};

const CheckpointOptions options{.keep = 2, .is_local = [](auto name) { return name == "own"; }};

// Trains from the newest checkpoint to `last`, and saves every two steps. Returns rank 0's values.
Values run(const fs::path& folder, int ranks, int last, bool shard) {
    Values result;
    const Net first = new_net();
    run_ranks(ranks, [&](const Communicator& comm) {
        State state;
        state.net = deep_copy(first);
        MultiNodeOptimizer multi(state.adam, comm, {.shard = shard});
        multi.setup(state.net);
        const Checkpoints checkpoints(comm, folder, options);
        const auto step = checkpoints.resume(state);
        CHECK(state.position == step.value_or(0));
        CHECK(state.adam.t() == state.position);
        if (step) CHECK((state.own == 100 + comm.rank() || state.own == -1));
        state.own = 100 + comm.rank();
        while (state.position < last) {
            const Batch own = Batch(state.position, batch_size).part(comm.rank(), comm.size());
            multi.set_weight(own.weight(comm.size()));
            learn(state.net, state.adam, own);
            if (++state.position % 2 == 0) checkpoints.save(state.position, state);
        }
        if (comm.rank() == 0) result = values_of(state.net);
    });
    return result;
}

}  // namespace

TEST_CASE("checkpoints resume with the same and with another number of ranks") {
    const TemporaryFolder whole, divided;
    for (const bool shard : {false, true}) {
        const TemporaryFolder a, b, c;
        const Values undisturbed = run(a.path, 4, 12, shard);
        run(b.path, 4, 7, shard);
        CHECK(run(b.path, 4, 12, shard) == undisturbed);
        run(c.path, 4, 4, shard);
        run(c.path, 2, 7, shard);
        run(c.path, 1, 10, !shard);  // even with the state divided in another way
        CHECK(difference(undisturbed, run(c.path, 3, 12, shard)) < 2e-5);
        const Checkpoints checkpoints({}, c.path, options);
        CHECK(checkpoints.steps() == std::vector<std::int64_t>{10, 12});  // the last two
    }
}

TEST_CASE("an incomplete or damaged checkpoint") {
    const TemporaryFolder folder;
    run(folder.path, 2, 4, true);
    const Checkpoints checkpoints({}, folder.path, options);
    CHECK(checkpoints.steps() == std::vector<std::int64_t>{2, 4});
    fs::remove(folder.path / "step-4" / "complete");  // rank 0 died before it was complete
    CHECK(checkpoints.steps() == std::vector<std::int64_t>{2});
    run(folder.path, 2, 4, true);
    CHECK(checkpoints.steps() == std::vector<std::int64_t>{2, 4});
    fs::remove(folder.path / "step-4" / "rank-1-of-2.safetensors");
    CHECK(error_of<Error>([&] { run(folder.path, 2, 4, true); }).find("rank-1-of-2") !=
          std::string::npos);
    CHECK_THROWS_AS(Checkpoints({}, folder.path, {.keep = 0}), InvalidError);
}

TEST_CASE("a snapshot of divided state is refused") {
    const TemporaryFolder folder;
    run_ranks(2, [&](const Communicator& comm) {
        State state;
        MultiNodeOptimizer multi(state.adam, comm, {.shard = true});
        multi.setup(state.net);
        CHECK(error_of<UnsupportedError>([&] {
                  save_npz(folder.path / (std::to_string(comm.rank()) + ".npz"), state);
              }).find("expected the whole array of shape") != std::string::npos);
    });
}
