// Progress: a progress bar on terminals, lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace catena {

// On a terminal: a bar of its width, redrawn at most ten times a second, in colour unless $NO_COLOR
// is set or $TERM is "dumb". Elsewhere: a line at most every ten seconds. Text is ASCII.
class Progress {
public:
    // label precedes the bar; unit is what is counted, for the rate: "images".
    Progress(std::string label, std::int64_t total, std::string unit, std::FILE* out = stderr);
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { clear(); }

    // done: the number of finished items. Cheap enough for every step of a loop.
    void update(std::int64_t done) { update(done, std::function<double()>(), ""); }
    void update(std::int64_t done, double value, std::string_view value_name = "loss") {
        update(
            done, [value] { return value; }, value_name);
    }
    // value() is called only when it is displayed, because reading it from a GPU waits.
    void update(std::int64_t done, const std::function<double()>& value,
                std::string_view value_name = "loss");
    // Removes the bar, so that other text can be printed.
    void clear();
    // Items per second since the start.
    double rate() const;

    // The bar that update() draws for a line of this width, without colour.
    static std::string draw(std::string_view label, std::int64_t done, std::int64_t total,
                            std::string_view text, int width);

private:
    using Clock = std::chrono::steady_clock;

    std::string label_;
    std::int64_t total_;
    std::string unit_;
    std::FILE* out_;
    bool terminal_;
    bool colour_;
    bool drawn_ = false;
    std::int64_t first_ = -1;  // done at the first update, for resumed loops
    std::int64_t done_ = 0;
    Clock::time_point start_ = Clock::now();
    Clock::time_point last_ = start_;
};

}  // namespace catena
