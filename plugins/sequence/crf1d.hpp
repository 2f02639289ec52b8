// Conditional random fields over sequences of labels.
#pragma once

#include "steps.hpp"

namespace catena::plugins {

inline constexpr Port cost_port =
    Port("cost", "the score of label j after label i: (labels, labels)");
inline constexpr Port scores_port =
    Port("xs", "the scores of the labels: (steps, N, labels), or packed (sum of rows, labels)");

// The scores of the labels, packed: (sum of rows, labels).
struct LabelScores : Steps {
    explicit LabelScores(const auto& g)
        : Steps(g, 1), labels(g.x(1).dim(-1)), cost(widened(g.x(0))) {
        g.check_shape(0, {labels, labels});
        all = widened(reshape(g.x(1), {total(), labels}));
    }
    Var of_step(std::size_t t) const { return (*this)(all, t); }
    // The scores of each label after each other one, (n, before, label), from scores of the latter.
    Var next(const Var& alpha) const { return reshape(alpha, {alpha.dim(0), labels, 1}) + cost; }

    std::int64_t labels;
    Var cost, all;
};

struct Crf1d {
    static constexpr auto about =
        describe("catena.crf1d",
                 "loss = the negative log-likelihood of label sequences in a conditional random "
                 "field, reduced\n\n"
                 "The score of a sequence is the sum of the scores of its labels and of its pairs "
                 "of neighbours. Its likelihood is e^score, divided by the sum over all sequences.",
                 in(cost_port, scores_port,
                    Port("ys", "the labels, in the form of xs: (steps, N), or (sum of rows,)")
                        .of("I")
                        .not_differentiable()),
                 out("loss"), rows_attribute, reduce)
            .example("cost=(3,3) xs=(3,2,3) ys=(3,2)[0,2]")
            .example("cost=(3,3) xs=(6,3) ys=(6)[0,2] rows=[3,2,1] reduce=\"no\"");

    static Var compose(const auto& g) {
        const LabelScores x(g);
        const Meta xs = g.x_meta(1);
        g.check_shape(2, xs.shape().first(xs.shape().size() - 1));
        const std::int64_t n = x.rows(0);
        const Var ys = reshape(g.x(2), {x.total()});
        // The scores of all labels, with those of the pairs that they end.
        Var scores = item(x.all, ys);
        List before, place;  // of each label: the one before, and the row in a grid of all steps
        for (std::size_t t = 0; t < x.size(); ++t) {
            for (std::int64_t i = 0; i < n; ++i) {
                const bool runs = i < x.rows(t);
                place.push_back(runs ? x.first(t) + i : x.total());
                if (runs && t > 0) before.push_back(x.first(t - 1) + i);
            }
        }
        if (!before.empty()) {
            const Var pairs = take(x.cost, take(ys, integers(before)));
            scores = concat({slice(scores, 0, 0, n), slice(scores, 0, n, x.total()) +
                                                         item(pairs, slice(ys, 0, n, x.total()))},
                            0);
        }
        const Var grid = take(concat({scores, full({1}, 0, scores.dtype())}, 0), integers(place));
        const Var score = sum(reshape(grid, {static_cast<std::int64_t>(x.size()), n}), {0});

        std::vector<Var> ended;  // the longest last
        Var alpha = x.of_step(0);
        for (std::size_t t = 1; t < x.size(); ++t) {
            if (x.rows(t) < x.rows(t - 1)) {
                ended.push_back(slice(alpha, 0, x.rows(t), x.rows(t - 1)));
                alpha = slice(alpha, 0, 0, x.rows(t));
            }
            alpha = log_sum(x.next(alpha), 1) + x.of_step(t);
        }
        ended.push_back(alpha);
        std::ranges::reverse(ended);
        return reduced(g, log_sum(ended.size() == 1 ? alpha : concat(ended, 0), 1) - score, 1);
    }

private:
    static Var item(const Var& x, const Var& t) { return call<"catena.select_item">({x, t}); }
};

struct ArgmaxCrf1d {
    static constexpr auto about =
        describe("catena.argmax_crf1d",
                 "the label sequences with the highest scores, as catena.crf1d scores them",
                 in(cost_port, scores_port),
                 out(Port("score", "of each sequence: (N,)"),
                     Port("path", "the labels: (steps, N), or packed (sum of rows,)")
                         .of("I")
                         .not_differentiable()),
                 rows_attribute)
            .example("cost=(3,3) xs=(3,2,3)")
            .example("cost=(3,3) xs=(6,3) rows=[3,2,1]");

    static std::array<Var, 2> compose(const auto& g) {
        const LabelScores x(g);
        std::vector<Var> from(x.size());   // of each step: the best labels before
        std::vector<Var> ended(x.size());  // the scores of sequences that end before it
        Var alpha = x.of_step(0);
        for (std::size_t t = 1; t < x.size(); ++t) {
            if (x.rows(t) < x.rows(t - 1)) {
                ended[t] = slice(alpha, 0, x.rows(t), x.rows(t - 1));
                alpha = slice(alpha, 0, 0, x.rows(t));
            }
            const Var scores = x.next(alpha);
            from[t] = best(scores);
            alpha = most(scores) + x.of_step(t);
        }
        std::vector<Var> path = {best(alpha)}, score = {most(alpha)};
        for (std::size_t t = x.size() - 1; t > 0; --t) {
            Var labels = call<"catena.select_item">({from[t], path.back()});
            if (!ended[t].is_constant()) {
                labels = concat({labels, best(ended[t])}, 0);
                score.push_back(most(ended[t]));
            }
            path.push_back(labels);
        }
        std::ranges::reverse(path);
        const Meta xs = g.x_meta(1);
        const Var labels = cast(concat(path, 0), dtype_of<std::int32_t>());
        return {in_dtype(concat(score, 0), xs.dtype),
                reshape(labels, xs.shape().first(xs.shape().size() - 1))};
    }

private:
    static Var best(const Var& x) {
        return call<"catena.argmax">({x}, {set("axis", Ints(IntList{1}))});
    }
    static Var most(const Var& x) {
        return call<"catena.max">({x}, {set("axis", Ints(IntList{1}))});
    }
};

CATENA_FUNCTIONS(Crf1d, ArgmaxCrf1d);

}  // namespace catena::plugins
