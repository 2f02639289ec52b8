// Checks of kernels: all give the same numbers, in all ways of calling them.
#include <map>

#include "testing/exam.hpp"
#include "testing/resize.hpp"

namespace catena::testing::detail {
namespace {

// Returns a copy at an address that is aligned only for the dtype.
Array odd_address(const Array& a) { return a.moved(a.dtype().bits / 8); }

// Returns the first read-only array for which other bytes around it change the result.
std::string beside_which(Exam& exam, const Use& u) {
    const auto changes = [&](Arrays Given::*list, std::size_t i) {
        Given other = u.given;
        Array& a = (other.*list)[i];
        if (!a) return false;
        a = a.moved(0, std::uint8_t{0x3f});
        return !exam.alike(u, exam.run(u, other, Options())).empty();
    };
    const auto text = [](const std::string& what, const Array& a) {
        return what + ", which is " + plugin::text_of(a.dtype());
    };
    for (std::size_t i = 0; i < u.given.x.size(); ++i)
        if (changes(&Given::x, i)) return text("input " + input_name(exam.f, i), u.given.x[i]);
    const auto output = [&](std::size_t i) { return std::string(exam.f.outputs[i]->name); };
    for (std::size_t i = 0; i < u.given.y.size() && i < exam.f.n_outputs; ++i)
        if (changes(&Given::y, i)) return text("output " + output(i), u.given.y[i]);
    for (std::size_t i = 0; i < u.given.gy.size(); ++i)
        if (changes(&Given::gy, i))
            return text("the gradient of output " + output(i), u.given.gy[i]);
    return "an input";
}
Tolerance grown(const Exam& exam, const Use& u) {
    return u.tolerance.times(elements(exam.sample.example) > 1000 ? 10 : 1);
}
// Runs the kernel on NaN: it must return, with results or with an error.
void run_with_nan(Exam& exam, const Use& u) {
    const Given all = u.given.changed([](Array a) {
        if (a.floating()) a.fill(0xff);
        return a;
    });
    try {
        exam.run(u, all, Options());
    } catch (const Violation&) {
        throw;
    } catch (const Failure&) {
    }
}

}  // namespace

bool check_values(Exam& exam, const std::vector<Use>& uses, Check check) {
    bool same = true;
    for (const Use& u : uses) same = exam.repeats(u) && same;
    if (!same) return false;
    // Without a composition, backward kernels are compared only with their own float64 results.
    const bool decides = check != Check::backward || exam.composed();
    std::map<std::string, const Use*> firsts;
    for (const Use& u : uses) {
        exam.step(
            check, u.label,
            [&] { return exam.compare(u.result, exam.expected(u), grown(exam, u), u.phase); },
            decides);
        exam.report.pass(Check::inputs);  // World checks this in every run
        exam.report.compared = true;
        const Use* first = firsts.try_emplace(u.row, &u).first->second;
        if (first == &u) continue;
        exam.step(
            Check::variants, u.label + " and " + first->label,
            [&] { return exam.compare(u.result, first->result, grown(exam, u), u.phase); }, false);
    }
    return true;
}
void check_behaviour(Exam& exam, const Use& u) {
    const std::size_t n_y = u.forward() ? exam.f.n_outputs : u.result.size();
    const Options plain;
    exam.step(Check::guard, u.label, [&] {
        const Given fenced =
            u.given.changed([](const Array& a) { return a.moved(0, std::uint8_t{0x3f}); });
        const std::string text = exam.alike(u, exam.run(u, fenced, plain));
        return text.empty() ? text : "it reads beside " + beside_which(exam, u) + ": " + text;
    });
    exam.step(Check::written, u.label, [&] {
        Options options;
        options.fill = 0x3c;
        const std::string text = exam.alike(u, exam.run(u, u.given, options));
        return text.empty() ? text : "it depends on uninitialised memory: " + text;
    });
    exam.step(Check::layout, u.label, [&] {
        return exam.compare(exam.run(u, u.given.changed(odd_address), plain), u.result, u.tolerance,
                            u.phase);
    });
    if (u.flag(CATENA_KERNEL_ADDS) && !updates(exam.f))
        exam.step(Check::add, u.label, [&] {
            Options options;
            options.add = true;
            return asked_to_add(exam.compare(exam.run(u, u.given, options), plus_one(u.result, n_y),
                                             u.tolerance, u.phase));
        });
    exam.step(Check::nan, u.label, [&] {
        run_with_nan(exam, u);
        return "";
    });
    check_threads(exam, u, false);
}
void check_threads(Exam& exam, const Use& u, bool large) {
    for (const int threads : {2, 3})
        exam.step(
            Check::threads, u.label + " on " + std::to_string(threads) + " threads",
            [&] {
                Options options;
                options.threads = threads;
                return exam.alike(u, exam.run(u, u.given, options));
            },
            large);
}

}  // namespace catena::testing::detail
