// Steps of a sequence: which rows of a batch belong to each.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// Of x (steps, N, ...), N rows each; of x (rows in all, ...), as many as `rows` says for each.
class Steps {
public:
    struct Step {
        std::int64_t index;
        std::int64_t rows;
        std::int64_t first;   // its first row, of all
        std::int64_t before;  // the first row of the step before, which has as many rows or more
        std::int64_t after;   // rows of the step after, which has as many or fewer
        bool is_first() const { return index == 0; }
    };

    // Of x without elements there are no steps, however many rows.
    Steps(Shape x, Ints rows) : listed_(rows), each_(rows.empty() ? x[1] : 0) {
        if (size_of(x) == 0) return;
        count_ = rows.empty() ? x[0] : static_cast<std::int64_t>(rows.size());
        total_ = rows.empty() ? x[0] * x[1] : x[0];
    }

    std::int64_t count() const { return count_; }
    std::int64_t total() const { return total_; }
    // Rows of the first step, which is the largest.
    std::int64_t most() const { return count_ > 0 ? rows(0) : 0; }
    bool even() const { return most() * count_ == total_; }  // all steps are as large
    std::int64_t rows(std::int64_t step) const {
        return listed_.empty() ? each_ : listed_[static_cast<std::size_t>(step)];
    }

    template <class Body>
    CATENA_KERNEL void for_each(const Body& body) const {
        std::int64_t first = 0;
        for (std::int64_t t = 0; t < count_; first += rows(t++)) body(step(t, first));
    }
    // From the last to the first.
    template <class Body>
    CATENA_KERNEL void for_each_back(const Body& body) const {
        std::int64_t first = total_;
        for (std::int64_t t = count_; t-- > 0;) body(step(t, first -= rows(t)));
    }

private:
    Step step(std::int64_t t, std::int64_t first) const {
        return {.index = t,
                .rows = rows(t),
                .first = first,
                .before = t > 0 ? first - rows(t - 1) : 0,
                .after = t + 1 < count_ ? rows(t + 1) : 0};
    }

    Ints listed_;
    std::int64_t each_;
    std::int64_t count_ = 0;
    std::int64_t total_ = 0;
};

}  // namespace catena::plugins
