// Steps of sequences that may have different lengths, and reductions of their losses.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/precision.hpp>

namespace catena::plugins {

using namespace catena::plugin;

inline constexpr const char* mean_or_no[] = {"mean", "no", nullptr};
inline constexpr Attribute reduce =
    attr("reduce", "mean", "mean of the sequences' losses, or no: all of them").one_of(mean_or_no);
// Losses, which are computed in float32 for half precision, in the dtype of input i.
inline Var reduced(const auto& g, const Var& loss, std::size_t i) {
    return in_dtype(g.template attr<"reduce">() == "no" ? loss : mean(loss), g.x(i).dtype());
}

inline Var log_sum(const Var& x, std::int64_t axis) {
    return call<"catena.logsumexp">({x}, {set("axis", Ints(IntList{axis}))});
}

// Compositions make calls for each step.
inline void check_steps(const auto& g, const char* what, std::int64_t steps) {
    constexpr std::int64_t most = 1 << 16;
    g.check(steps <= most, what, "at most " + text_of(most) + " steps", steps);
}

inline constexpr Attribute rows_attribute =
    attr("rows", Ints{}, "packed: number of sequences at each step, which must not increase");

// The steps of input i: (steps, N, size), or packed (sum of rows, size).
class Steps {
public:
    Steps(const auto& g, std::size_t i) {
        const Ints given = g.template attr<"rows">();
        g.check_ndim(i, given.empty() ? 3 : 2);
        const Var x = g.x(i);
        check_steps(g, g.raw().function->inputs[i]->name,
                    given.empty() ? x.dim(0) : static_cast<std::int64_t>(given.size()));
        rows_ = given.empty() ? List(static_cast<std::size_t>(x.dim(0)), x.dim(1)) : list_of(given);
        g.check(!rows_.empty(), "rows", "one step or more", "none", CATENA_E_INVALID);
        for (std::size_t t = 0; t < rows_.size(); ++t) {
            g.check(rows_[t] >= 0 && (t == 0 || rows_[t] <= rows_[t - 1]), "rows",
                    "numbers of sequences that do not increase", rows_, CATENA_E_INVALID);
            first_.push_back(plus(first_.back(), rows_[t]));
        }
        g.check(total() <= most_rows, g.raw().function->inputs[i]->name,
                "at most " + text_of(most_rows) + " rows", total());
        g.check(given.empty() || total() == x.dim(0), "rows",
                "a sum of " + text_of(x.dim(0)) + ", the number of rows", rows_, CATENA_E_INVALID);
    }

    std::size_t size() const { return rows_.size(); }
    std::int64_t rows(std::size_t step) const { return rows_[step]; }
    std::int64_t total() const { return first_.back(); }
    // Where the rows of a step begin.
    std::int64_t first(std::size_t step) const { return first_[step]; }
    // The rows of a step of a packed array.
    Var operator()(const Var& packed, std::size_t step) const {
        return slice(packed, 0, first_[step], first_[step + 1]);
    }

private:
    // Compositions list the places of all rows.
    static constexpr std::int64_t most_rows = 1 << 24;
    List rows_, first_ = {0};
};

}  // namespace catena::plugins
