// The text for the language models, the same on every side.
#include "work.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace catena_bench {

std::vector<std::int32_t> bench_text(std::int32_t words) {
    std::vector<std::int32_t> text;
    if (const char* name = std::getenv("CATENA_BENCH_TEXT")) {
        std::ifstream file(name);
        if (!file) throw std::runtime_error(std::string("cannot read ") + name);
        std::unordered_map<std::string, std::int32_t> numbers;
        for (std::string word; file >> word;) {
            const auto next = static_cast<std::int32_t>(numbers.size());
            text.push_back(numbers.emplace(word, next).first->second % words);
        }
        return text;
    }
    std::mt19937 random(1);
    const double most = words;
    while (text.size() < 70000) {  // Zipf: word n occurs 1/n as often as the first
        const double u = static_cast<double>(random()) / 4294967296.0;
        text.push_back(static_cast<std::int32_t>(std::pow(most, u)) - 1);
    }
    return text;
}

}  // namespace catena_bench
