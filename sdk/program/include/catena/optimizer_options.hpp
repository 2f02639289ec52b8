// OptimizerOptions: the options of training programs for an optimizer and its learning rate.
#pragma once

#include <catena/optimizer.hpp>
#include <catena/program/options.hpp>
#include <catena/schedules.hpp>

namespace catena {

//     OptimizerOptions optimizer("adam", {{"adam", 0.002}});
//     optimizer.add_to(program.options);
//     if (!program.parse(argc, argv)) return 0;
//     optimizer.check(program.options);
//     const auto learner = optimizer.make();
//     const schedules::Schedule rate = optimizer.rate(epochs);
//     ... if (rate) learner->set_rate(rate(epoch));
//
// visit() requires the same options when a snapshot is loaded; otherwise loading throws DataError.
class OptimizerOptions final : public Visitable {
public:
    // name: the default optimizer. rates: default rates of optimizers that differ from the class's.
    explicit OptimizerOptions(std::string name, std::map<std::string, double> rates = {});

    // Adds --optimizer and the options of learning rates, before parse().
    void add_to(ProgramOptions& options);
    // Another default optimizer, after parse() and before check().
    void set_default(const ProgramOptions& options, std::string name);
    // Call it after parse(). Throws boost::program_options::error for invalid values.
    void check(const ProgramOptions& options);

    const std::string& name() const noexcept { return name_; }
    // Makes the optimizer; the caller calls its setup().
    std::unique_ptr<Optimizer> make() const;
    // The learning rate after some of `epochs` epochs; empty if the optimizer has none.
    schedules::Schedule rate(double epochs) const;

    void visit(Visitor& visitor) override;

private:
    std::optional<double> default_rate(std::string_view name) const;

    std::string name_;
    std::map<std::string, double> rates_;
    double given_rate_ = 0;
    std::optional<double> rate_;
    double decay_ = 1;
    double decay_after_ = 1;
    double warmup_ = 0;
    std::optional<double> cosine_;  // the last rate, as a share of the first
};

}  // namespace catena
