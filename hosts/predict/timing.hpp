// Measures how long predictions take.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

class Timing {
public:
    // Starts measuring now.
    void begin() {
        last_ = Clock::now();
        begun_ = true;
    }
    // Records the time since the last mark, or the start, for this many things.
    void mark(std::int64_t things);
    // Without begin(), the first of several marks is ignored, because it includes one-time work.
    std::string rate(const std::string& things) const;    // "123.4 images/s"
    std::string latency(const std::string& thing) const;  // "10 images: p50 1.2 ms, ..."

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
