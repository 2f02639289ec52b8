// Checkpoints: the state of all ranks at one step, in a folder.
#pragma once

#include <catena/distributed/communicator.hpp>
#include <catena/serializer.hpp>

#include <filesystem>
#include <optional>

namespace catena::distributed {

struct CheckpointOptions {
    int keep = 3;  // complete checkpoints to keep; older ones are removed
    // Names of values that differ between ranks, such as random streams. The others are equal on
    // all ranks, or are parts of the optimizer's state (MultiNodeOptions::shard).
    IsLocal is_local = {};
};

// A folder that all ranks can access, with a folder for each step:
//
//     Checkpoints checkpoints(comm, "checkpoints");
//     checkpoints.resume(training);                       // the newest complete one, if any
//     while (...) {
//         ...
//         if (t % 100 == 0) checkpoints.save(t, training);
//     }
//
// Each rank writes a part: FOLDER/step-100/rank-2-of-4.safetensors. When all have, rank 0 writes
// FOLDER/step-100/complete. A checkpoint without that file is not used, so a rank that dies while
// it saves leaves the last complete checkpoint intact. A checkpoint can be resumed with another
// number of ranks: each rank reads all files; ranks that did not exist keep their local values.
class Checkpoints {
public:
    // Creates the folder. Throws DataError if it cannot be written, InvalidError unless keep >= 1.
    Checkpoints(Communicator communicator, std::filesystem::path folder,
                CheckpointOptions options = {});

    // Called by all ranks with the same step, and state with the same names. Returns when the
    // checkpoint is complete; then removes those before the last `keep`, and incomplete ones.
    void save(std::int64_t step, const Visitable& state) const;
    // Called by all ranks: loads the newest complete checkpoint. Returns its step, or nullopt if
    // there is none. Throws DataError, as load_npz() does, if it does not fit.
    std::optional<std::int64_t> resume(Visitable& state) const;
    // Called by all ranks: rank 0 joins the files of a complete checkpoint to a snapshot, which
    // load_snapshot() reads, with the local values of rank 0, and removes the checkpoint.
    void join(std::int64_t step, const std::filesystem::path& file) const;
    // The steps of complete checkpoints in the folder, in ascending order.
    std::vector<std::int64_t> steps() const;

private:
    std::filesystem::path folder_of(std::int64_t step) const;
    std::vector<std::filesystem::path> files_of(std::int64_t step, int size) const;

    Communicator comm_;
    std::filesystem::path folder_;
    CheckpointOptions options_;
};

}  // namespace catena::distributed
