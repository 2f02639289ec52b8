// Summary: weighted sums, and pending values that are not read from their devices yet.
#include <catena/fail.hpp>
#include <catena/summary.hpp>

#include <cmath>
#include <limits>

namespace catena {

Summary::Summary(std::initializer_list<std::string_view> names)
    : Summary(std::vector<std::string>(names.begin(), names.end())) {}
Summary::Summary(std::vector<std::string> names) : names_(std::move(names)), sums_(names_.size()) {}

void Summary::add(const ArrayList& list, double weight) {
    const ArraySpan values = list.view();
    if (values.size() != names_.size())
        fail<ShapeError>("[Summary] values: expected {}, one for each name, got {}", names_.size(),
                         values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i].size() != 1)
            fail<ShapeError>("[Summary] {}: expected one element, got {}", names_[i],
                             to_string(values[i].shape()));
    }
    if (!(weight > 0) || !std::isfinite(weight))
        fail<InvalidError>("[Summary] weight: expected a number above 0, got {}", weight);
    weight_ += weight;
    pending_.push_back({{values.begin(), values.end()}, weight});
    constexpr std::size_t most_pending = 256;
    if (pending_.size() >= most_pending) settle();
}

void Summary::settle() const {
    for (const Pending& each : pending_) {
        for (std::size_t i = 0; i < sums_.size(); ++i)
            sums_[i] += each.values[i].item<double>() * each.weight;
    }
    pending_.clear();
}

double Summary::mean(std::string_view name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end())
        fail<InvalidError>("[Summary] expected one of {}, got '{}'", fmt::join(names_, ", "), name);
    settle();
    if (weight_ == 0) return std::numeric_limits<double>::quiet_NaN();
    return sums_[static_cast<std::size_t>(found - names_.begin())] / weight_;
}

void Summary::clear() {
    pending_.clear();
    std::ranges::fill(sums_, 0.0);
    weight_ = 0;
}

void Summary::visit(Visitor& visitor) {
    settle();
    for (std::size_t i = 0; i < names_.size(); ++i) visitor(names_[i], sums_[i]);
    visitor("weight", weight_);
}

}  // namespace catena
