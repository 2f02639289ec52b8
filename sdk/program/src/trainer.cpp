// OptimizerOptions: help texts and checks. Trainer: epochs, each with steps and a report. Snapshots:
// what training saves and resumes. TrainingReports: curves, plots and graphs.
#include <catena/computational_graph.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/optimizers.hpp>
#include <catena/progress.hpp>
#include <catena/random.hpp>
#include <catena/serializer.hpp>
#include <catena/trainer.hpp>

#include "ranks.hpp"

#include <fmt/ranges.h>

#include <cmath>

namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace catena {
namespace {

std::string known() { return fmt::format("{}", fmt::join(optimizers::names(), ", ")); }

}  // namespace

OptimizerOptions::OptimizerOptions(std::string name, std::map<std::string, double> rates)
    : name_(std::move(name)), rates_(std::move(rates)) {}

// The learning rate without --lr, if the optimizer has one.
std::optional<double> OptimizerOptions::default_rate(std::string_view name) const {
    const auto found = rates_.find(std::string(name));
    return found != rates_.end() ? found->second : optimizers::default_rate(name);
}

void OptimizerOptions::add_to(ProgramOptions& options) {
    std::vector<std::string> without;
    for (const std::string_view name : optimizers::names())
        if (const auto rate = default_rate(name))
            without.push_back(fmt::format("{} for {}", *rate, name));
    // clang-format off
    options.add_options()
        ("optimizer", options.value(name_), known().c_str())
        ("lr", po::value(&given_rate_),
         fmt::format("learning rate; default: {}", fmt::join(without, ", ")).c_str())
        ("lr-decay", options.value(decay_), "factor of the learning rate for each epoch ...")
        ("lr-decay-after", options.value(decay_after_), "... after this many epochs")
        ("lr-warmup", options.value(warmup_),
         "increase the learning rate linearly over this many epochs, which may be less than one")
        ("lr-cosine", po::value<double>()->value_name("FACTOR")->notifier([this](double share) { cosine_ = share; }),
         "decrease the learning rate by half a cosine, until it is multiplied by this after --epochs");
    // clang-format on
}

void OptimizerOptions::set_default(const ProgramOptions& options, std::string name) {
    if (!options.given("optimizer")) name_ = std::move(name);
}

void OptimizerOptions::check(const ProgramOptions& options) {
    // Only the name is checked: plugins are loaded later, from --plugins.
    const auto names = optimizers::names();
    options.require(std::ranges::count(names, name_) > 0, "optimizer",
                    ("one of " + known()).c_str(), name_);
    rate_ = default_rate(name_);
    for (const char* option : {"lr", "lr-decay", "lr-decay-after", "lr-warmup", "lr-cosine"})
        options.require(rate_ || !options.given(option), option,
                        ("no value with --optimizer " + name_ + ", which has no step size").c_str(),
                        std::string("one"));
    if (options.given("lr")) rate_ = given_rate_;
    if (rate_) options.require_positive("lr", *rate_);
    options.require_positive("lr-decay", decay_);
    options.require(decay_after_ >= 0, "lr-decay-after", "0 or more", decay_after_);
    options.require(warmup_ >= 0 && std::isfinite(warmup_), "lr-warmup", "0 or more", warmup_);
    options.require_without("lr-cosine", "lr-decay");
    if (cosine_) {
        options.require(*cosine_ > 0 && *cosine_ <= 1, "lr-cosine", "above 0, up to 1", *cosine_);
    }
}

std::unique_ptr<Optimizer> OptimizerOptions::make() const { return optimizers::make(name_, rate_); }

schedules::Schedule OptimizerOptions::rate(double epochs) const {
    if (!rate_) return {};
    auto rate = cosine_ ? schedules::cosine(*rate_, *rate_ * *cosine_, epochs)
                        : schedules::decay(*rate_, decay_, decay_after_);
    return warmup_ > 0 ? schedules::warmup(warmup_, std::move(rate)) : rate;
}

void OptimizerOptions::visit(Visitor& visitor) {
    visitor.require("optimizer", name_);
    visitor.require("lr", fmt::format("{} {} {}", rate_.value_or(0), decay_, decay_after_));
    if (warmup_ > 0) visitor.require("lr-warmup", fmt::format("{}", warmup_));
    if (cosine_) visitor.require("lr-cosine", fmt::format("{}", *cosine_));
}

// ---- Trainer

Trainer::Trainer(const OptimizerOptions& options, const Program& program, Words words)
    : optimizer(options.make()),
      score(words.scores),
      options_(options),
      seed_(program.seed()),
      communicator_(program.processes.communicator()),
      multi_node_options_(program.processes.multi_node_options()),
      share_{communicator_.rank(), communicator_.size(), program.processes.micro_batches()},
      words_(std::move(words)) {}

void Trainer::set_up(Link& link, bool one_backward) {
    if (communicator_.size() == 1 && multi_node_options_.accumulate == 1)
        return optimizer->setup(link);
    if (communicator_.size() > 1)
        normalizations_ = distributed::create_multi_node_bn(communicator_, link);
    multi_node_options_.overlap = one_backward;
    multi_node_.emplace(*optimizer, communicator_, multi_node_options_);
    try {
        multi_node_->setup(link);
    } catch (const UnsupportedError& error) {
        if (!multi_node_options_.shard) throw;
        throw UnsupportedError(
            fmt::format("--shard with --optimizer {}: {}", options_.name(), error.what()));
    }
}

Summary Trainer::over_all(Summary summary) const {
    distributed::allreduce(communicator_, summary);
    return summary;
}

bool Trainer::stops(const Program& program) const {
    return multi_node_ ? multi_node_->stop_requested() : program.interrupted();
}

void Trainer::visit(Visitor& visitor) {
    visitor("options", options_).require("options/seed", seed_);
    visitor("optimizer", *optimizer)("score", score);
}

void Trainer::draw_once(const Variable& loss) {
    if (const auto draw = std::exchange(draw_, nullptr)) draw(loss);
}

Trainer::Report Trainer::compare(const Summary& tested, std::string_view name) const {
    const double loss = score.mean("loss"), accuracy = score.mean("accuracy");
    const double tested_loss = tested.mean("loss"), tested_accuracy = tested.mean("accuracy");
    return {fmt::format("train loss {:.4f}  accuracy {:.4f}  {} loss {:.4f}  accuracy {:.4f}", loss,
                        accuracy, name, tested_loss, tested_accuracy),
            {loss, tested_loss, accuracy, tested_accuracy}};
}

// Runs the rest of the current epoch. Returns its units per second, or nullopt if interrupted.
std::optional<double> Trainer::run_epoch(const Program& program, const std::string& label) {
    const std::int64_t size = place().size;
    const auto done = [&] { return epoch_over() ? size : place().position; };
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(
        program.processes.is_first() ? nullptr : std::fopen("/dev/null", "w"), std::fclose);
    Progress bar(label, size, words_.unit, nowhere ? nowhere.get() : stderr);
    bar.update(done());
    while (!epoch_over() && !enough()) {
        if (rate_)
            optimizer->set_rate(rate_(static_cast<double>(place().epoch) +
                                      static_cast<double>(place().position) /
                                          static_cast<double>(std::max<std::int64_t>(size, 1))));
        if (multi_node_ && program.interrupted()) multi_node_->request_stop();
        const std::int64_t before = optimizer->t();
        for (std::int64_t i = 0; i < multi_node_options_.accumulate; ++i) step();
        unreported_ = true;
        // A process has no score yet if its parts of the minibatches so far were empty.
        if (score.weight() > 0)
            bar.update(
                done(), [&] { return progress(); }, progress_name());
        else bar.update(done());
        if (stops(program)) return {};
        // Not every step is an update: the first is none with --double-buffering.
        if (optimizer->t() != before) program.snapshots.save_after_step(optimizer->t(), *this);
    }
    return bar.rate();
}

namespace {

// Collects the values that a snapshot requires, and the position of training, by name.
class Standing final : public Visitor {
public:
    std::map<std::string, std::string> values;

private:
    void keep(const std::string& path, std::string value) {
        if (!differs_between_ranks(path)) values[path] = std::move(value);
    }
    void integer(const std::string& path, std::int64_t& value) override {
        keep(path, std::to_string(value));
    }
    void integer(const std::string& path, std::uint64_t& value) override {
        keep(path, std::to_string(value));
    }
    void real(const std::string& path, double& value) override {
        keep(path, fmt::format("{}", value));
    }
    void required(const std::string& path, std::int64_t value) override {
        keep(path, std::to_string(value));
    }
    void required(const std::string& path, std::string_view value) override {
        keep(path, std::string(value));
    }
    void array_part(const std::string&, Array&, std::int64_t, const Shape&) override {}
};

}  // namespace

void Trainer::require_equal_standing() {
    if (communicator_.size() == 1) return;
    Standing standing;
    visit(standing);
    const std::string different = difference_between_ranks(communicator_, standing.values);
    if (!different.empty()) throw DataError("[Trainer] " + different);
}

void require_finite(double loss) {
    if (!std::isfinite(loss))
        fail<DataError>(
            "[Program] loss: expected a finite number, got {}: the rate may be too high", loss);
}

int Trainer::run(const Program& program, std::int64_t epochs) {
    require_equal_standing();
    std::vector<std::string> columns = words_.columns;
    columns.insert(columns.begin(), "epoch");
    columns.push_back(words_.unit + "/s");
    const Array scored = Array::full({}, score.weight() > 0 ? 1 : 0);
    communicator_.allreduce(scored, distributed::Reduction::max, {.label = "scores"}).wait();
    unreported_ = scored.item() > 0;
    Curves curves = program.reports.curves(columns, place().epoch - (epoch_over() ? 1 : 0));
    draw_ = program.reports.drawing(net());
    rate_ = options_.rate(static_cast<double>(epochs));
    bool saved = !program.snapshots.resumed();
    while (epoch_over() || (place().epoch < epochs && !enough())) {
        const std::int64_t epoch = place().epoch + (epoch_over() ? 0 : 1);
        const auto rate = run_epoch(program, fmt::format("epoch {}/{}", epoch, epochs));
        if (!rate) return program.stop(fmt::format("in epoch {}", epoch), optimizer->t(), *this);
        score = over_all(score);
        require_finite(progress());
        Report result;
        try {
            result = report(program);
        } catch (const Interrupted&) {
            return program.stop(fmt::format("after epoch {}", epoch), optimizer->t(), *this);
        }
        result.numbers.insert(result.numbers.begin(), static_cast<double>(epoch));
        result.numbers.push_back(*rate);
        curves.add(result.numbers);
        if (epoch_over()) {
            score.clear();
            unreported_ = false;
        }
        program.snapshots.save(optimizer->t(), *this);
        saved = true;
        program.print(fmt::format("epoch {:3}  {}  {:.{}f} {}/s", epoch, result.text, *rate,
                                  words_.rate_digits, words_.unit));  // may throw: saved before
        reported(program);
        if (program.interrupted() && communicator_.size() == 1) return program.finish();
    }
    if (!saved)
        program.snapshots.save(optimizer->t(), *this);  // a checkpoint of the end, without --save
    complete(program);
    return program.finish();
}

// ---- Snapshots

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
