// How long predictions take.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

class Timing {
public:
    // From now on; what was before is left out.
    void begin() {
        last_ = Clock::now();
        begun_ = true;
    }
    // Of what has been done since the last mark, or the beginning: so many things.
    void mark(std::int64_t things);
    // Without begin() the first mark is left out where there are others: it pays for what is done once.
    std::string rate(const std::string& things) const;    // "123.4 images/s"
    std::string latency(const std::string& thing) const;  // "middle 1.2 ms, ..."

private:
    using Clock = std::chrono::steady_clock;
    struct Mark {
        double seconds;
        std::int64_t things;
    };
    std::vector<Mark> counted() const;

    Clock::time_point last_ = Clock::now();
    bool begun_ = false;
    std::vector<Mark> marks_;
};
