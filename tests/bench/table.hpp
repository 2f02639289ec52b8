// Measured results of both sides, and their output as a table and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace catena_bench {

// A group of benchmarks against one peer. rate: the ratio compares rates, and the goal is a
// minimum; else it compares times, and the goal is a maximum.
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
    double flops;              // per call; 0: times are shown
    std::vector<double> ours;  // seconds per call, one value per round
    std::vector<double> theirs;
    std::string way;         // how the peer computed it, if it chose between several ways
    std::string failure;     // why a side has no results
    bool disturbed = false;  // most blocks of a side waited too long for a processor

    std::optional<double> ratio() const;
    bool ok() const;  // goal reached and not disturbed, or no goal
};

double median(std::vector<double> values);
// Returns a Markdown table with aligned columns.
std::string to_table(const std::vector<Result>& results);
std::string to_json(const std::vector<Result>& results, int threads, double block);

}  // namespace catena_bench
