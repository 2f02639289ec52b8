// Checkpoints: the state of all ranks at one step, in a folder.
#pragma once

#include <catena/distributed/communicator.hpp>
#include <catena/serializer.hpp>

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
// Each rank writes a part: FOLDER/step-100.new/rank-2-of-4.safetensors. When all have, rank 0
// writes the file `complete` with the sizes of the parts, and renames the folder to step-100. A
// checkpoint without that file, or with parts of other sizes, is not used, so a rank that dies
// while it saves leaves the last complete checkpoint intact. A checkpoint can be resumed with
// another number of ranks: each reads what it needs of all files; new ranks keep local values.
//
// One run uses a folder at a time: rank 0 holds a lock on FOLDER/lock as long as the object or a
// copy exists. Objects of one process share it. File systems without locks are not protected.
class Checkpoints {
public:
    // Called by all ranks. Creates the folder. Throws DataError if it cannot be written or is not
    // the same for all ranks, or if another run uses it; InvalidError unless keep >= 1.
    Checkpoints(Communicator communicator, std::filesystem::path folder,
                CheckpointOptions options = {});

    // Called by all ranks with the same step, and state with the same names. Returns when the
    // checkpoint is complete; then removes those before the last `keep`, and incomplete ones.
    void save(std::int64_t step, const Visitable& state) const;
    // Called by all ranks: loads the newest complete checkpoint. Returns its step, or nullopt if
    // there is none. Throws DataError, as load_npz() does, if it does not fit or is damaged.
    std::optional<std::int64_t> resume(Visitable& state) const;
    // The steps of complete checkpoints in the folder, in ascending order.
    std::vector<std::int64_t> steps() const;

private:
    std::filesystem::path folder_of(std::int64_t step) const;
    std::vector<std::filesystem::path> files_of(std::int64_t step, int size) const;

    Communicator comm_;
    std::shared_ptr<const void> lock_;  // of rank 0
    std::filesystem::path folder_;
    CheckpointOptions options_;
};

// Called by all ranks: rank 0 writes a snapshot with its values, which catena::load_snapshot()
// reads. It receives the parts of arrays that other ranks have, so only it needs the folder.
void save_snapshot(const Communicator& comm, const std::filesystem::path& file,
                   const Visitable& state);

}  // namespace catena::distributed
