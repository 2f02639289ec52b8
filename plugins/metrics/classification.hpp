// Scores of predicted classes.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/precision.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct BinaryAccuracy {
    static constexpr auto about =
        describe(
            "catena.binary_accuracy",
            "accuracy = the fraction of scores that are at least 0 for label 1, or below for 0",
            in(Port("y", "scores"), Port("t", "labels; elements with -1 do not count").of("I")),
            out(Port("accuracy", "()")))
            .not_differentiable()
            .example("y=(2,3)[-4,4] t=(2,3)[-1,1]");
    static Var compose(const auto& g) {
        g.check_shape(1, g.x_meta(0).shape());
        const auto count = [](const Var& marks) { return sum(cast(marks, dtype_of<double>())); };
        const Var t = cast(g.x(1), dtype_of<std::int64_t>());
        const Var right = cast(check_floating(g, 0) >= 0.0, t.dtype()) == t;
        return cast(count(right) / math::max(count(1.0 - (t == -1.0)), 1.0), g.x(0).dtype());
    }
};

constexpr auto classes_and_labels() {
    return in(Port("y", "scores (N, classes, ...)"), Port("t", "labels (N, ...)").of("I").host());
}
inline constexpr Attribute label_num =
    attr("label_num", Ints{}, "the number of classes; none: one more than the largest label");
inline constexpr Attribute ignored_label =
    attr("ignore_label", -1, "rows with this label do not count");
constexpr Port of_class(const char* name, const char* doc) { return Port(name, doc).of("S"); }
inline constexpr Port support_port = Port("support", "number of labels").of("J");

struct ClassificationSummary {
    static constexpr auto about =
        describe("catena.classification_summary",
                 "the precision, recall, F-beta score and number of labels of each class\n\n"
                 "The scores of a class without labels are NaN.",
                 classes_and_labels(),
                 out(of_class("precision", "(classes,)"), of_class("recall", "(classes,)"),
                     of_class("fbeta_score", "(classes,)"), support_port),
                 label_num, attr("beta", 1.0, "the weight of recall"), ignored_label)
            .not_differentiable()
            .example("y=(6,3) t=[0,1,2,0,1,-1]")
            .example("y=(8,2) t=[0,1,0,1,0,1,0,1] beta=0.5");

    static std::array<Var, 4> compose(const auto& g) {
        g.check_least_ndim(0, 2);
        List rows = list_of(g.x_meta(0).shape());
        rows.erase(rows.begin() + 1);
        g.check_shape(1, rows);
        const catena_dtype whole = dtype_of<std::int64_t>();
        const Var t = reshape(cast(g.x(1), whole), {-1});
        const Var best =
            reshape(call<"catena.argmax">({g.x(0)}, {set("axis", Ints(IntList{1}))}), {-1});
        List classes = list_of(g.template attr<"label_num">());
        if (classes.empty()) {
            const List labels = g.elements(1);
            g.check(!labels.empty(), "t", "one label or more", "none", CATENA_E_VALUE);
            classes = {std::max<std::int64_t>(std::ranges::max(labels) + 1, 0)};
        }
        g.check(classes.size() == 1, "label_num", "one number", Shape(classes), CATENA_E_INVALID);
        const Var ignored = t == static_cast<double>(g.template attr<"ignore_label">());
        const auto marks = [&](const Var& labels) {
            return call<"catena.one_hot">(
                {math::where(ignored, -1.0, cast(labels, whole))},
                {set("depth", classes[0]), set("dtype", dtype_of<double>())});
        };
        const Var labelled = marks(t), found = marks(best);
        const Var right = sum(labelled * found, {0}), support = sum(labelled, {0});
        const Var precision = right / sum(found, {0}), recall = right / support;
        const double beta = g.template attr<"beta">(), share = beta * beta;
        return {precision, recall, (1 + share) * precision * recall / (share * precision + recall),
                cast(support, whole)};
    }
};

// One of the scores, and the number of labels.
template <int score>
struct ScoreOfClasses {
    static std::array<Var, 2> compose(const auto& g) {
        const auto all = call_all<"catena.classification_summary", 4>(
            {g.x(0), g.x(1)}, {g.same("label_num"), g.same("ignore_label")});
        return {all[score], all[3]};
    }
};
constexpr auto score_of_classes(const char* name, const char* doc, const char* result) {
    return describe(name, doc, classes_and_labels(),
                    out(of_class(result, "(classes,)"), support_port), label_num, ignored_label)
        .not_differentiable()
        .example("y=(6,3) t=[0,1,2,0,1,-1]");
}
struct Precision : ScoreOfClasses<0> {
    static constexpr auto about = score_of_classes(
        "catena.precision", "the precision, and the number of labels, of each class", "precision");
};
struct Recall : ScoreOfClasses<1> {
    static constexpr auto about = score_of_classes(
        "catena.recall", "the recall, and the number of labels, of each class", "recall");
};
struct F1Score : ScoreOfClasses<2> {
    static constexpr auto about = score_of_classes(
        "catena.f1_score", "the F1 score, and the number of labels, of each class", "f1_score");
};

CATENA_FUNCTIONS(BinaryAccuracy, ClassificationSummary, Precision, Recall, F1Score);

}  // namespace catena::plugins
