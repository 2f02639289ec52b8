// Throughput and latency percentiles.
#include "timing.hpp"

#include <fmt/format.h>

#include <algorithm>

void Timing::mark(std::int64_t things) {
    const auto now = Clock::now();
    marks_.push_back({std::chrono::duration<double>(now - last_).count(), things});
    last_ = now;
}

std::vector<Timing::Mark> Timing::counted() const {
    return {marks_.begin() + (!begun_ && marks_.size() > 1 ? 1 : 0), marks_.end()};
}

std::string Timing::rate(const std::string& things) const {
    double seconds = 0;
    std::int64_t count = 0;
    for (const Mark& mark : counted()) {
        seconds += mark.seconds;
        count += mark.things;
    }
    return fmt::format("{:.1f} {}/s", seconds > 0 ? static_cast<double>(count) / seconds : 0,
                       things);
}

std::string Timing::latency(const std::string& thing) const {
    std::vector<Mark> marks = counted();
    std::ranges::sort(marks, {}, &Mark::seconds);
    const auto at = [&](double share) {
        const auto last = static_cast<double>(marks.size() - 1);
        return marks[static_cast<std::size_t>(share * last + 0.5)].seconds * 1e3;
    };
    return fmt::format("{} {}: p50 {:.3f} ms, p95 {:.3f} ms, p99 {:.3f} ms", marks.size(), thing,
                       at(0.5), at(0.95), at(0.99));
}
