// Snapshots and TrainingReports: what programs that train save, draw and write, with the options.
#pragma once

#include <catena/curves.hpp>
#include <catena/program/processes.hpp>

namespace catena {

// Training that can be interrupted and resumed: snapshots in the file of --save, checkpoints in the
// folder of --checkpoint. All processes call these functions. Values whose names begin with
// "random" or "score" differ between processes; the others are equal or parts.
class Snapshots {
public:
    explicit Snapshots(const Processes& processes) : processes_(processes) {}

    bool resumes() const noexcept { return !resume_.empty(); }
    const std::filesystem::path& resumed_file() const noexcept { return resume_; }
    void resume(Visitable& training);                   // the newest checkpoint, else --resume
    bool resumed() const noexcept { return resumed_; }  // it has loaded something
    void save(std::int64_t t, const Visitable& training) const;
    void save_after_step(std::int64_t t, const Visitable& training) const;  // --save-every

private:
    friend class Program;
    void add_to(ProgramOptions::Group& group);
    void check(const ProgramOptions& options) const;

    const Processes& processes_;
    std::filesystem::path save_, resume_;
    std::int64_t save_every_ = 0;
    bool resumed_ = false;
};

class TrainingReports {
public:
    TrainingReports(const Processes& processes, const Snapshots& snapshots)
        : processes_(processes), snapshots_(snapshots) {}

    // The results of each epoch, for --curves and --plot. A resumed run continues its curves: last
    // is the last epoch that the snapshot has completed.
    Curves curves(std::vector<std::string> columns, std::int64_t last) const;
    // Returns a function that saves the graph of a loss for --graph, with the parameters' names in
    // the link, which must stay alive. Empty without --graph.
    std::function<void(const Variable& loss)> drawing(const Link& link) const;

private:
    friend class Program;
    void add_to(ProgramOptions& options, ProgramOptions::Group& group);
    void check(const ProgramOptions& options) const;

    const Processes& processes_;
    const Snapshots& snapshots_;
    std::filesystem::path curves_, plot_, graph_;
};

}  // namespace catena
