// OptimizerOptions: --optimizer and its rate, in programs that train.
#pragma once

#include <catena/optimizer.hpp>
#include <catena/program.hpp>
#include <catena/schedules.hpp>
#include <catena/visitor.hpp>

#include <map>
#include <memory>
#include <string>

namespace catena {

//     OptimizerOptions optimizer("adam", 0.01, {{"adam", 0.001}});
//     optimizer.add_to(program);
//     if (!program.parse(argc, argv)) return 0;
//     optimizer.check(program);
//     const auto learner = optimizer.make();
//     ... learner->set_rate(optimizer.rate()(epoch));
//
// Visited, it is a requirement: a snapshot goes on under the same options alone.
class OptimizerOptions final : public Visitable {
public:
    // What it is without options: an optimizer, and a step size, of some optimizers another one.
    OptimizerOptions(std::string name, double rate, std::map<std::string, double> rates = {});

    // Adds --optimizer, --lr, --lr-decay and --lr-decay-after, before parse().
    void add_to(Program& program);
    // After parse(). Throws boost::program_options::error for what cannot be.
    void check(const Program& program);

    const std::string& name() const noexcept { return name_; }
    // Not set up yet.
    std::unique_ptr<Optimizer> make() const;
    schedules::Schedule rate() const;  // by epochs

    void visit(Visitor& visitor) override;

private:
    std::string name_;
    double otherwise_;
    std::map<std::string, double> rates_;
    double rate_ = 0;
    double decay_ = 1;
    double decay_after_ = 1;
};

}  // namespace catena
