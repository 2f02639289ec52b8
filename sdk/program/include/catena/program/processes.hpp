// Processes: the group of processes that runs a program, with the options of --communicator.
#pragma once

#include <catena/distributed.hpp>
#include <catena/program/options.hpp>

namespace catena {

class Processes {
public:
    Processes() = default;
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;

    // The group of --communicator after Program::start(), else of this process alone. An exception
    // that leaves run_program()'s body aborts it, so that the other processes end.
    const distributed::Communicator& communicator() const;
    // Whether this process prints, logs and draws: rank 0 does.
    bool is_first() const { return communicator().rank() == 0; }
    bool has_several() const { return communicator().size() > 1; }
    // The options of MultiNodeOptimizer, for `micro_batches` parts of a minibatch of all processes.
    distributed::MultiNodeOptions multi_node_options() const;
    std::int64_t micro_batches() const;

private:
    friend class Program;
    friend class Snapshots;
    void add_to(ProgramOptions& options);
    void check(const ProgramOptions& options) const;
    void open(Device device);
    void require_equal(const ProgramOptions& options) const;
    void open_checkpoints();
    void set_threads(std::span<const Device> devices, int threads) const;

    std::string communicator_, wire_;
    std::filesystem::path checkpoint_;
    std::optional<distributed::Checkpoints> checkpoints_;
    double timeout_ = 0;
    double bucket_ = 25;  // MiB
    int keep_ = 3;
    bool shard_ = false;
    bool double_buffering_ = false;
    std::int64_t micro_batches_ = 0;  // 0: one for each process
};

}  // namespace catena
