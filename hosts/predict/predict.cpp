// Reads texts and numbers from a snapshot; throughput and latency percentiles.
#include "predict.hpp"

#include <catena/fail.hpp>

#include <boost/lexical_cast/try_lexical_convert.hpp>

#include <algorithm>
#include <sstream>

using namespace catena;

namespace {

[[noreturn]] void missing(const About& about, const std::string& name) {
    fail<DataError>("[predict] {}: expected a snapshot with {}, got one without",
                    about.file().string(), name);
}

}  // namespace

std::string About::text(const std::string& name) const {
    const auto texts = load_texts(file_, name);
    const auto found = texts.find(name);
    if (found == texts.end()) missing(*this, name);
    return found->second;
}

double About::number(const std::string& name) const {
    double number = 0;
    if (!boost::conversion::try_lexical_convert(text(name), number)) missing(*this, name);
    return number;
}

std::int64_t About::integer(const std::string& name) const {
    const Array value = load_arrays(file_, cuda::host(), name)[name];
    if (!value || value.dtype() != Dtype::int64 || value.size() != 1) missing(*this, name);
    const auto number = value.item<std::int64_t>();
    constexpr std::int64_t most = std::int64_t{1} << 30;  // larger than any size of a net
    if (number < 1 || number > most)
        fail<DataError>("[predict] {}: {}: expected 1 to {}, got {}", file_.string(), name, most,
                        number);
    return number;
}

std::vector<std::string> About::lines(const std::string& name) const {
    std::istringstream all(text(name));
    std::vector<std::string> result;
    for (std::string line; std::getline(all, line);) result.push_back(line);
    return result;
}

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
