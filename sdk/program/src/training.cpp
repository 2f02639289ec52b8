// Snapshots: what training saves and resumes. TrainingReports: curves, plots and graphs.
#include <catena/computational_graph.hpp>
#include <catena/program/training.hpp>
#include <catena/random.hpp>

#include "ranks.hpp"

namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace catena {

void Snapshots::add_to(ProgramOptions::Group& group) {
    // clang-format off
    group.add_options()
        ("save", ProgramOptions::path(save_),
         "write a snapshot after each epoch and on interruption, as .npz, or as .safetensors if FILE ends "
         "so; after SIGTERM the program exits within 1.5 s, after SIGHUP within a minute, after a second "
         "Ctrl-C or SIGTERM immediately; if the new snapshot is not complete by then, FILE keeps the "
         "previous one")
        ("save-every", po::value(&save_every_)->value_name("N"), "also save a snapshot every N steps")
        ("resume", ProgramOptions::path(resume_), "resume from a snapshot with the same options");
    // clang-format on
}

void Snapshots::check(const ProgramOptions& options) const {
    if (!options.given("save-every")) return;
    options.require_at_least("save-every", save_every_, 1);
    if (!options.given("checkpoint")) options.require_with("save-every", "save");
}

void Snapshots::resume(Visitable& training) {
    resumed_ = true;
    if (auto& saved = processes_.checkpoints_; saved && saved->resume(training)) return;
    resumed_ = !resume_.empty();
    if (!resumed_) return;
    if (processes_.is_first()) return load_snapshot(resume_, training);
    // The scores of all processes are in the snapshot: only one may count them.
    const auto others = [](const std::string& name) {
        return name.starts_with("score") ? std::string() : name;
    };
    load_snapshot(resume_, training, {.path = {}, .rename = others, .strict = false});
    for (const Device device : Device::opened()) {  // the snapshot has those of rank 0
        RandomState state = random_state(device);
        state.seed = stream_of_rank(state.seed, processes_.communicator().rank());
        set_random_state(device, state);
    }
}

void Snapshots::save(std::int64_t t, const Visitable& training) const {
    if (!save_.empty()) distributed::save_snapshot(processes_.communicator(), save_, training);
    if (auto& saved = processes_.checkpoints_) saved->save(t, training);
}

void Snapshots::save_after_step(std::int64_t t, const Visitable& training) const {
    if (save_every_ > 0 && t % save_every_ == 0) save(t, training);
}

// ---- reports

void TrainingReports::add_to(ProgramOptions& options, ProgramOptions::Group& group) {
    // clang-format off
    group.add_options()
        ("curves", options.per_process(options.path(curves_)->implicit_value("curves.csv")),
         "write the results of each epoch to a .csv or .jsonl file")
        ("plot", options.per_process(options.path(plot_)->implicit_value("curves.svg")), "plot the results of each epoch")
        ("graph", options.per_process(options.path(graph_)->implicit_value("graph.svg")),
         "draw the graph of the first step: .dot, or with Graphviz .svg, .png or .pdf");
    // clang-format on
}

void TrainingReports::check(const ProgramOptions& options) const {
    const fs::path table = curves_.extension(), plot = plot_.extension();
    options.require(curves_.empty() || table == ".csv" || table == ".jsonl", "curves",
                    "a name that ends in .csv or .jsonl", curves_);
    options.require(plot_.empty() || plot == ".svg", "plot", "a name that ends in .svg", plot_);
    // A resumed run draws the whole plot again from the table.
    if (options.given("resume")) options.require_with("plot", "curves");
}

Curves TrainingReports::curves(std::vector<std::string> columns, std::int64_t last) const {
    if (!processes_.is_first()) return Curves(std::move(columns), {});
    Curves result(std::move(columns), curves_, plot_);
    if (snapshots_.resumed()) result.resume(static_cast<double>(last));
    return result;
}

std::function<void(const Variable&)> TrainingReports::drawing(const Link& link) const {
    if (graph_.empty() || !processes_.is_first()) return {};
    return [this, &link](const Variable& loss) {
        build_computational_graph({loss}, &link).save(graph_);
    };
}

}  // namespace catena
