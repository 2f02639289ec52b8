// Checks of kernels: the same numbers from each of them, however they are called.
#pragma once

#include "catena/testing/exam.hpp"
#include "catena/testing/resize.hpp"

namespace catena::testing::detail {

template <class Name>
std::string same_bits(const std::vector<Array>& got, const std::vector<Array>& expected,
                      const Name& name) {
    if (got == expected) return {};
    const std::string text = compare(got, expected, {0, 0}, name);
    return text.empty() ? "other bits" : text;
}
inline std::vector<Array> plus_one(std::vector<Array> arrays, std::size_t n) {
    for (std::size_t k = 0; k < n && k < arrays.size(); ++k)
        for (std::int64_t i = 0; arrays[k] && arrays[k].floating() && i < arrays[k].size(); ++i)
            arrays[k].set(i, arrays[k].at(i) + 1);
    return arrays;
}
// The same numbers, from a view of the host's memory with gaps and axes in the other order, to an
// address that is aligned for the dtype alone.
inline Array from_strides(const Array& a) {
    const std::size_t bytes = a.dtype().bits / 8;
    Dims strides(a.shape().size());
    std::int64_t stride = 2;
    for (std::size_t d = 0; d < strides.size(); ++d) {
        strides[d] = stride;
        stride *= a.shape()[d];
    }
    std::vector<std::byte> memory(static_cast<std::size_t>(2 * a.size() + 1) * bytes,
                                  std::byte{0x77});
    for (std::int64_t i = 0; i < a.size(); ++i) {
        std::int64_t at = 0;
        std::int64_t rest = i;
        for (std::size_t d = strides.size(); d-- > 0; rest /= a.shape()[d])
            at += rest % a.shape()[d] * strides[d];
        std::memcpy(memory.data() + static_cast<std::size_t>(at) * bytes,
                    a.data<std::byte>() + static_cast<std::size_t>(i) * bytes, bytes);
    }
    return Array::packed(memory.data(), a.shape(), strides, a.dtype(), bytes);
}

// What is wrong with a result that the kernel was asked to add.
inline std::string asked_to_add(const std::string& text) {
    return text.empty() ? text : "asked to add to what is there, which is 1: " + text;
}

class KernelChecks {
public:
    explicit KernelChecks(Exam& exam) : e_(exam) {}

    // Every kernel against float64, and against the first of its row. False: one does not even give
    // the same again, so that nothing else can be said of it.
    bool values(const std::vector<Use>& uses, Check check) {
        bool same = true;
        for (const Use& u : uses) same = repeats(u) && same;
        if (!same) return false;
        // A backward kernel without a composition is expected to give what it gives in float64.
        const bool decides = check != Check::backward || e_.composed();
        std::map<std::string, const Use*> firsts;
        for (const Use& u : uses) {
            e_.step(
                check, u.label,
                [&] { return compare(u.result, u.expected, grown(u), e_.results(u)); }, decides);
            e_.report.pass(Check::inputs);  // World watches every run
            e_.report.compared = true;
            const Use* first = firsts.try_emplace(u.row, &u).first->second;
            if (first == &u) continue;
            e_.step(
                Check::variants, u.label + " and " + first->label,
                [&] { return compare(u.result, first->result, grown(u), e_.results(u)); }, false);
        }
        return true;
    }
    // The same bits again.
    bool repeats(const Use& u) {
        bool same = false;
        e_.step(Check::determinism, u.label, [&] {
            std::string text = alike(u, e_.run(u, u.given, Options()));
            if (text.empty() && e_.world.drawn > 0 &&
                (e_.f.flags & CATENA_FUNCTION_STOCHASTIC) == 0)
                text = "it draws random numbers and is not STOCHASTIC";
            same = text.empty();
            return text;
        });
        return same;
    }
    // How one kernel behaves.
    void behaviour(const Use& u) {
        const std::size_t n_y =
            u.kernel->phase == CATENA_PHASE_FORWARD ? e_.f.n_outputs : u.result.size();
        const Options plain;
        e_.step(Check::guard, u.label, [&] {
            const Given fenced =
                u.given.changed([](const Array& a) { return a.moved(0, std::uint8_t{0x3f}); });
            const std::string text = alike(u, e_.run(u, fenced, plain));
            return text.empty() ? text : "it reads beside " + beside_which(u) + ": " + text;
        });
        e_.step(Check::written, u.label, [&] {
            Options options;
            options.fill = 0x3c;
            const std::string text = alike(u, e_.run(u, u.given, options));
            return text.empty() ? text : "it depends on uninitialised memory: " + text;
        });
        e_.step(Check::layout, u.label, [&] {
            return compare(e_.run(u, u.given.changed(from_strides), plain), u.result, u.tolerance,
                           e_.results(u));
        });
        if ((u.kernel->flags & CATENA_KERNEL_ADDS) != 0 && !e_.updates())
            e_.step(Check::add, u.label, [&] {
                Options options;
                options.add = true;
                return asked_to_add(compare(e_.run(u, u.given, options), plus_one(u.result, n_y),
                                            u.tolerance, e_.results(u)));
            });
        e_.step(Check::nan, u.label, [&] {
            nan(u);
            return "";
        });
        threads(u, false);
    }
    // The same from any number of threads. Small calls run on one thread, so they decide nothing.
    void threads(const Use& u, bool large) {
        for (const int threads : {2, 3})
            e_.step(
                Check::threads, u.label + " on " + std::to_string(threads) + " threads",
                [&] {
                    Options options;
                    options.threads = threads;
                    return alike(u, e_.run(u, u.given, options));
                },
                large);
    }

private:
    // The first array lent for reading whose surroundings alone change the result.
    std::string beside_which(const Use& u) {
        const auto changes = [&](std::vector<Array> Given::*list, std::size_t i) {
            Given other = u.given;
            Array& a = (other.*list)[i];
            if (!a) return false;
            a = a.moved(0, std::uint8_t{0x3f});
            return !alike(u, e_.run(u, other, Options())).empty();
        };
        const auto text = [](const std::string& what, const Array& a) {
            return what + ", which is " + plugin::text_of(a.dtype());
        };
        for (std::size_t i = 0; i < u.given.x.size(); ++i)
            if (changes(&Given::x, i)) return text("input " + input_name(e_.f, i), u.given.x[i]);
        const auto output = [&](std::size_t i) { return std::string(e_.f.outputs[i]->name); };
        for (std::size_t i = 0; i < u.given.y.size() && i < e_.f.n_outputs; ++i)
            if (changes(&Given::y, i)) return text("output " + output(i), u.given.y[i]);
        for (std::size_t i = 0; i < u.given.gy.size(); ++i)
            if (changes(&Given::gy, i))
                return text("the gradient of output " + output(i), u.given.gy[i]);
        return "an input";
    }
    Tolerance grown(const Use& u) const {
        return u.tolerance.times(elements(e_.sample.example) > 1000 ? 10 : 1);
    }
    std::string alike(const Use& u, const std::vector<Array>& got) const {
        return (u.kernel->flags & CATENA_KERNEL_DETERMINISTIC) != 0
                   ? same_bits(got, u.result, e_.results(u))
                   : compare(got, u.result, u.tolerance, e_.results(u));
    }
    // It comes back: with results or with an error.
    void nan(const Use& u) {
        const Given all = u.given.changed([](Array a) {
            if (a.floating()) a.fill(0xff);
            return a;
        });
        try {
            e_.run(u, all, Options());
        } catch (const Violation&) {
            throw;
        } catch (const Failure&) {
        }
    }

    Exam& e_;
};

}  // namespace catena::testing::detail
