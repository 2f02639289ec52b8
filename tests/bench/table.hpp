// Results: what was measured on both sides, as a table and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace catena_bench {

// Works against one peer. rate: the ratio is of rates and the goal a floor, not of times and a
// ceiling.
struct Comparison {
    std::string peer;
    bool rate;
    bool memory = false;  // bytes, not seconds
    std::string ours = "catena";
};

struct Result {
    const Comparison* comparison;
    std::string work;
    std::optional<double> goal;
    double flops;              // of one call; 0: shown as time
    std::vector<double> ours;  // seconds of one call, one for each round
    std::vector<double> theirs;
    std::string failure;     // why a side has no numbers
    bool disturbed = false;  // most blocks of a side had to wait for a processor

    std::optional<double> ratio() const;
    bool ok() const;  // reached and not disturbed, or without a goal
};

double median(std::vector<double> values);
// Markdown, aligned for the eye.
std::string to_table(const std::vector<Result>& results);
std::string to_json(const std::vector<Result>& results, int threads, double block);

}  // namespace catena_bench
