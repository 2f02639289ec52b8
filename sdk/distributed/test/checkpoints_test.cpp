// Tests of checkpoints: complete ones are resumed, with any number of ranks.
#include "training.hpp"

#include "temporary.hpp"

#include <catena_test/child.hpp>

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

TEST_CASE("an array of which some ranks have no element") {
    struct Rows : Visitable {
        explicit Rows(const Communicator& comm) : own(part_of(2, comm.rank(), comm.size())) {}
        void visit(Visitor& v) override { v.part("rows", values, 3 * own.begin, {2, 3}); }
        Range own;
        Array values = Array::zeros({3 * own.size()});
    };
    const TemporaryFolder folder;
    run_ranks(4, [&](const Communicator& comm) {
        Rows rows(comm);
        rows.values.fill(static_cast<double>(1 + rows.own.begin));
        Checkpoints(comm, folder.path).save(5, rows);
    });
    for (const int ranks : {1, 3, 4})
        run_ranks(ranks, [&](const Communicator& comm) {
            Rows rows(comm);
            CHECK(Checkpoints(comm, folder.path).resume(rows) == 5);
            const auto values = rows.values.to_vector<std::int64_t>();
            for (std::size_t i = 0; i < values.size(); ++i)
                CHECK(values[i] == 1 + rows.own.begin + static_cast<std::int64_t>(i) / 3);
        });
}

TEST_CASE("a folder is used by one run at a time") {
    const TemporaryFolder folder;
    const auto other_run = [&] {  // in another process
        return catena_test::end_of([&] {
            try {
                const Checkpoints checkpoints({}, folder.path);
                return 0;
            } catch (const DataError& error) {
                return std::string(error.what())
                               .ends_with(
                                   ": expected a folder that no other run uses, got one that "
                                   "another run uses: "
                                   "wait for its end, or take another folder")
                           ? 1
                           : 2;
            }
        });
    };
    CHECK(other_run() == 0);
    {
        const Checkpoints first({}, folder.path);
        {
            const Checkpoints same_process({}, folder.path / "." / "");
            CHECK(other_run() == 1);
        }
        CHECK(other_run() == 1);
        std::optional<Checkpoints> copy = first;
        CHECK(copy->steps().empty());
    }
    CHECK(other_run() == 0);
    // All ranks get the error of rank 0. The child holds the lock until it is killed.
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(600);
        const Checkpoints held({}, folder.path);
        (void)!write(ready[1], "x", 1);
        for (;;) pause();
    }
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    int refused = 0;
    std::mutex mutex;
    run_ranks(2, [&](const Communicator& comm) {
        try {
            const Checkpoints checkpoints(comm, folder.path);
        } catch (const DataError&) {
            const std::lock_guard lock(mutex);
            ++refused;
        }
    });
    CHECK(refused == 2);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    CHECK(other_run() == 0);
    close(ready[0]);
    close(ready[1]);
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
    const fs::path part = folder.path / "step-4" / "rank-1-of-2.safetensors";
    const std::string whole = read_file(part);
    write_file(part, whole.substr(0, whole.size() - 1));
    CHECK(checkpoints.steps() == std::vector<std::int64_t>{2});
    run(folder.path, 2, 4, true);  // from step 2
    CHECK(checkpoints.steps() == std::vector<std::int64_t>{2, 4});
    fs::remove(part);
    CHECK(checkpoints.steps() == std::vector<std::int64_t>{2});
    run(folder.path, 2, 4, true);
    write_file(part, std::string(whole.size(), ' '));  // the size alone is right
    CHECK(error_of<Error>([&] { run(folder.path, 2, 4, true); }).find("rank-1-of-2") !=
          std::string::npos);
    CHECK_THROWS_AS(Checkpoints({}, folder.path, {.keep = 0}), InvalidError);
}

TEST_CASE("a folder that cannot be written is refused at the start") {
    const TemporaryFolder folder;
    write_file(folder.path / "file", "");
    CHECK(error_of<DataError>([&] { Checkpoints({}, folder.path / "file"); }).find("file") !=
          std::string::npos);
    run_ranks(2, [&](const Communicator& comm) {  // a folder of each rank
        const fs::path own = folder.path / std::to_string(comm.rank());
        fs::create_directory(own);
        CHECK(error_of<DataError>([&] { Checkpoints(comm, own); }).find("that all ranks share") !=
              std::string::npos);
    });
}

TEST_CASE("a save that fails or is killed leaves the last checkpoint of the same step") {
    const TemporaryFolder folder;
    struct Failing : Visitable {
        std::int64_t value = 1;
        bool fails = false;
        void visit(Visitor& v) override {
            if (fails) throw DataError("no space");
            v("value", value);
        }
    } state;
    const Checkpoints checkpoints({}, folder.path, options);
    checkpoints.save(3, state);
    state.value = 2;
    state.fails = true;
    CHECK_THROWS_AS(checkpoints.save(3, state), DataError);
    state.fails = false;
    CHECK(checkpoints.resume(state) == 3);
    CHECK(state.value == 1);
    CHECK_FALSE(fs::exists(folder.path / "step-3.new"));
    // Complete, but killed before it got its name.
    state.value = 5;
    checkpoints.save(4, state);
    fs::remove_all(folder.path / "step-3");
    fs::rename(folder.path / "step-4", folder.path / "step-4.new");
    checkpoints.save(2, state);
    CHECK(checkpoints.steps() == std::vector<std::int64_t>{2, 4});
    state.value = 6;
    checkpoints.save(4, state);
    state.value = 0;
    CHECK(checkpoints.resume(state) == 4);
    CHECK(state.value == 6);
}

TEST_CASE("parameters of one element, and a snapshot of divided state") {
    struct Scaled : Chain {
        Parameter scale{Array::full({}, 2)}, w{Array::full({300}, 1)};
        void visit(Visitor& v) override { v("scale", scale)("w", w); }
    };
    struct Training : Visitable {
        Scaled net;
        optimizers::Adam adam;
        void visit(Visitor& v) override { v("net", net)("adam", adam); }
    };
    const TemporaryFolder folder;
    const auto step = [](Training& training) {
        training.adam.cleargrads();
        F::sum(training.net.w * training.net.w).backward();
        training.net.scale.set_grad(Array::full({}, 0.5));
        training.adam.update();
    };
    Values after, resumed, loaded;
    const auto run_two = [&](const std::function<void(const Communicator&, Training&)>& body) {
        run_ranks(2, [&](const Communicator& comm) {
            Training training;
            MultiNodeOptimizer multi(training.adam, comm, {.overlap = false, .shard = true});
            multi.setup(training.net);
            body(comm, training);
        });
    };
    const fs::path file = folder.path / "snapshot.npz";
    run_two([&](const Communicator& comm, Training& training) {
        step(training);
        Checkpoints(comm, folder.path / "checkpoints").save(1, training);
        // Only rank 0 needs the folder.
        save_snapshot(comm, comm.rank() == 0 ? file : folder.path / "none" / "a.npz", training);
        step(training);
        if (comm.rank() == 0) after = values_of(training.net);
    });
    run_two([&](const Communicator& comm, Training& training) {
        CHECK(Checkpoints(comm, folder.path / "checkpoints").resume(training) == 1);
        step(training);
        if (comm.rank() == 0) resumed = values_of(training.net);
    });
    run_two([&](const Communicator& comm, Training& training) {
        load_snapshot(file, training);
        step(training);
        if (comm.rank() == 0) loaded = values_of(training.net);
    });
    CHECK(resumed == after);
    CHECK(loaded == after);
    Training alone;
    alone.adam.setup(alone.net);
    load_snapshot(file, alone);
    step(alone);
    CHECK(values_of(alone.net) == after);
    CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 2);
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
