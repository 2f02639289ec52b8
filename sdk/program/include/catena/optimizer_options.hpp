// OptimizerOptions: --optimizer and its rate, in programs that train.
#pragma once

#include <catena/optimizer.hpp>
#include <catena/program.hpp>
#include <catena/schedules.hpp>
#include <catena/visitor.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace catena {

//     OptimizerOptions optimizer("adam", {{"adam", 0.002}});
//     optimizer.add_to(program);
//     if (!program.parse(argc, argv)) return 0;
//     optimizer.check(program);
//     const auto learner = optimizer.make();
//     const schedules::Schedule rate = optimizer.rate();
//     ... if (rate) learner->set_rate(rate(epoch));
//
// visit() requires the values of the options: a snapshot loads only with the options it was saved with.
class OptimizerOptions final : public Visitable {
public:
    // The defaults of the options: the optimizer's name, and by name the rates of optimizers that
    // should differ from the defaults of their classes.
    explicit OptimizerOptions(std::string name, std::map<std::string, double> rates = {});

    // Adds --optimizer, --lr, --lr-decay and --lr-decay-after, before parse().
    void add_to(Program& program);
    // After parse(). Throws boost::program_options::error for values that are not allowed.
    void check(const Program& program);

    const std::string& name() const noexcept { return name_; }
    // Not set up yet.
    std::unique_ptr<Optimizer> make() const;
    // By epochs; empty where the optimizer has no rate.
    schedules::Schedule rate() const;

    void visit(Visitor& visitor) override;

private:
    std::optional<double> default_rate(std::string_view name) const;

    std::string name_;
    std::map<std::string, double> rates_;
    double given_rate_ = 0;
    std::optional<double> rate_;
    double decay_ = 1;
    double decay_after_ = 1;
};

}  // namespace catena
