// Schedules of learning rates, one formula each.
#include <catena/fail.hpp>
#include <catena/schedules.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace catena::schedules {
namespace {

void require_rate(double rate) {
    if (!(rate > 0) || !std::isfinite(rate))
        fail<InvalidError>("[schedules] rate: expected a number above 0, got {}", rate);
}
void require_time(double time) {
    if (!(time >= 0) || !std::isfinite(time))
        fail<InvalidError>("[schedules] time: expected a number of 0 or more, got {}", time);
}

// Returns the fraction of a span that has passed, from 0 to 1.
double share(double time, double span) { return span > 0 ? std::clamp(time / span, 0.0, 1.0) : 1; }

}  // namespace

Schedule constant(double rate) {
    require_rate(rate);
    return [=](double) { return rate; };
}

Schedule decay(double rate, double factor, double after) {
    require_rate(rate);
    require_rate(factor);
    require_time(after);
    return [=](double time) {
        return time < after ? rate : rate * std::pow(factor, std::floor(time - after) + 1);
    };
}

Schedule steps(std::vector<std::pair<double, double>> rates) {
    if (rates.empty() || rates[0].first != 0)
        throw InvalidError(
            "[schedules] times: expected the first time to be 0, got another or none");
    for (std::size_t i = 0; i < rates.size(); ++i) {
        require_time(rates[i].first);
        require_rate(rates[i].second);
        if (i > 0 && rates[i].first <= rates[i - 1].first)
            fail<InvalidError>("[schedules] times: expected increasing times, got {} after {}",
                               rates[i].first, rates[i - 1].first);
    }
    return [rates = std::move(rates)](double time) {
        double rate = rates[0].second;
        for (const auto& [begin, value] : rates) {
            if (time >= begin) rate = value;
        }
        return rate;
    };
}

Schedule linear(double from, double to, double span) {
    require_rate(from);
    require_rate(to);
    require_time(span);
    return [=](double time) { return from + (to - from) * share(time, span); };
}

Schedule cosine(double from, double to, double span) {
    require_rate(from);
    require_rate(to);
    require_time(span);
    return [=](double time) {
        return to + (from - to) * (1 + std::cos(std::numbers::pi * share(time, span))) / 2;
    };
}

Schedule warmup(double span, Schedule then) {
    require_time(span);
    if (!then) throw InvalidError("[schedules] then: expected a schedule, got none");
    return [=](double time) {
        constexpr double least = 1e-3;  // rates must be above 0
        return then(time) * std::max(share(time, span), least);
    };
}

}  // namespace catena::schedules
