// OptimizerOptions: texts, and what is allowed.
#include <catena/optimizer_options.hpp>
#include <catena/optimizers.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace po = boost::program_options;

namespace catena {
namespace {

std::string known() { return fmt::format("{}", fmt::join(optimizers::names(), ", ")); }

}  // namespace

OptimizerOptions::OptimizerOptions(std::string name, double rate,
                                   std::map<std::string, double> rates)
    : name_(std::move(name)), otherwise_(rate), rates_(std::move(rates)) {}

void OptimizerOptions::add_to(Program& program) {
    std::string without;
    for (const auto& [name, rate] : rates_) without += fmt::format("{} for {}, ", rate, name);
    without += fmt::format("{}{}", rates_.empty() ? "" : "else ", otherwise_);
    // clang-format off
    program.options().add_options()
        ("optimizer", Program::value(name_), known().c_str())
        ("lr", po::value(&rate_), ("step size; without it " + without).c_str())
        ("lr-decay", Program::value(decay_), "times this for each epoch ...")
        ("lr-decay-after", Program::value(decay_after_), "... after so many");
    // clang-format on
}

void OptimizerOptions::check(const Program& program) {
    // By its name alone: plugins are looked for later, where --plugins says.
    const auto names = optimizers::names();
    Program::require(std::ranges::count(names, name_) > 0, "optimizer",
                     ("one of " + known()).c_str(), name_);
    if (!program.given("lr")) rate_ = rates_.contains(name_) ? rates_.at(name_) : otherwise_;
    Program::require_positive("lr", rate_);
    Program::require_positive("lr-decay", decay_);
    Program::require(decay_after_ >= 0, "lr-decay-after", "0 or more", decay_after_);
}

std::unique_ptr<Optimizer> OptimizerOptions::make() const { return optimizers::make(name_, rate_); }

schedules::Schedule OptimizerOptions::rate() const {
    return schedules::decay(rate_, decay_, decay_after_);
}

void OptimizerOptions::visit(Visitor& visitor) {
    visitor.require("optimizer", name_);
    visitor.require("lr", fmt::format("{} {} {}", rate_, decay_, decay_after_));
}

}  // namespace catena
