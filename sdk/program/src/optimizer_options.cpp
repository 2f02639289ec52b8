// OptimizerOptions: help texts and checks.
#include <catena/optimizer_options.hpp>
#include <catena/optimizers.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

void OptimizerOptions::add_to(Program& program) {
    std::vector<std::string> without;
    for (const std::string_view name : optimizers::names())
        if (const auto rate = default_rate(name))
            without.push_back(fmt::format("{} for {}", *rate, name));
    // clang-format off
    program.options().add_options()
        ("optimizer", Program::value(name_), known().c_str())
        ("lr", po::value(&given_rate_),
         fmt::format("learning rate; default: {}", fmt::join(without, ", ")).c_str())
        ("lr-decay", Program::value(decay_), "factor of the learning rate for each epoch ...")
        ("lr-decay-after", Program::value(decay_after_), "... after this many epochs");
    // clang-format on
}

void OptimizerOptions::check(const Program& program) {
    // Only the name is checked: plugins are loaded later, from --plugins.
    const auto names = optimizers::names();
    Program::require(std::ranges::count(names, name_) > 0, "optimizer",
                     ("one of " + known()).c_str(), name_);
    rate_ = default_rate(name_);
    for (const char* option : {"lr", "lr-decay", "lr-decay-after"})
        Program::require(
            rate_ || !program.given(option), option,
            ("no value with --optimizer " + name_ + ", which has no step size").c_str(),
            std::string("one"));
    if (program.given("lr")) rate_ = given_rate_;
    if (rate_) Program::require_positive("lr", *rate_);
    Program::require_positive("lr-decay", decay_);
    Program::require(decay_after_ >= 0, "lr-decay-after", "0 or more", decay_after_);
}

std::unique_ptr<Optimizer> OptimizerOptions::make() const { return optimizers::make(name_, rate_); }

schedules::Schedule OptimizerOptions::rate() const {
    return rate_ ? schedules::decay(*rate_, decay_, decay_after_) : schedules::Schedule();
}

void OptimizerOptions::visit(Visitor& visitor) {
    visitor.require("optimizer", name_);
    visitor.require("lr", fmt::format("{} {} {}", rate_.value_or(0), decay_, decay_after_));
}

}  // namespace catena
