// Fuzz: calls that no example has. They are refused in words or served; nothing is touched that was
// not lent.

#include <algorithm>
#include <set>

#include "garbage.hpp"
#include "rig.hpp"

namespace catena::check {
namespace {

using testing::Example;
using testing::detail::Metas;

// Cases of one function, and of all functions of a plugin together.
constexpr std::size_t most_cases = 600;
constexpr std::size_t all_cases = 12000;
constexpr double most_elements = 20000;  // of tensors that kernels get

double elements(const catena_meta& m) {
    double n = 1;
    for (std::int32_t d = 0; d < m.ndim; ++d) n *= static_cast<double>(m.shape[d]);
    return n;
}
// Whether a host makes such a tensor: without those of 0, its extents multiply to 2^59 at most.
bool exists(const catena_meta& m) {
    double n = 1;
    for (std::int32_t d = 0; d < m.ndim; ++d)
        if (m.shape[d] != 0) n *= static_cast<double>(m.shape[d]);
    return n <= 0x1p59;
}

class Fuzz {
public:
    Fuzz(const Subject& subject, Findings& findings)
        : subject_(subject),
          findings_(findings),
          rig_(subject),
          f_(rig_.function()),
          examples_(rig_.examples()) {}

    // `make` turns an example into a case.
    template <class Make>
    void run(const Make& make) {
        if (examples_.empty()) return findings_.skip("no call is known that it accepts");
        const auto case_of = [&](std::uint64_t seed) {
            Garbage garbage(seed);
            const auto last = static_cast<std::int64_t>(examples_.size()) - 1;
            const Example& from = examples_[static_cast<std::size_t>(garbage.pick(0, last))];
            try_case(make(garbage, from), garbage);
        };
        if (subject_.reproduce) return case_of(subject_.seed);
        const std::size_t n_functions = std::max<std::size_t>(1, rig_.n_functions());
        const std::size_t n = std::min(most_cases, all_cases / n_functions);
        std::mt19937_64 seeds(subject_.seed);
        for (std::size_t i = 0; i < n && failed_ < 5; ++i) {
            const std::uint64_t seed = seeds();
            findings_.seed(seed);
            case_of(seed);
        }
        skip_if_idle(findings_);
    }

    const catena_function& function() const { return f_; }

    // From each example, each input in turn and then all of them with every number of axes. Nothing of
    // it depends on luck: what forgets to look at a rank is found.
    void every_rank() {
        if (examples_.empty()) return findings_.skip("no call is known that it accepts");
        for (const Example& e : examples_) {
            for (std::size_t i = 0; i <= e.inputs.size(); ++i)
                for (std::size_t rank = 0; rank <= CATENA_MAX_NDIM && failed_ < 5; ++rank)
                    for (const Change change : {Change::back, Change::front, Change::twos})
                        with_rank(e, i, rank, change);
        }
        skip_if_idle(findings_);
    }

private:
    // Where axes are taken away and put, of extent 1 or 2.
    enum class Change { back, front, twos };
    static testing::Dims changed(testing::Dims shape, std::size_t rank, Change change) {
        const std::size_t n = shape.size();
        if (change == Change::front && rank < n)
            shape.erase(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(rank));
        else if (change == Change::front) shape.insert(shape.begin(), rank - n, 1);
        else shape.resize(rank, change == Change::twos && rank <= n + 3 ? 2 : 1);
        return shape;
    }
    // Of input i, or of all; in the two widest rows of dtypes.
    void with_rank(Example e, std::size_t i, std::size_t rank, Change change) {
        bool same = true;
        for (std::size_t k = 0; k < e.inputs.size(); ++k) {
            if ((i != k && i < e.inputs.size()) || !e.inputs[k].present) continue;
            const testing::Dims to = changed(e.inputs[k].shape, rank, change);
            same = same && to == e.inputs[k].shape;
            e.inputs[k].shape = to;
        }
        if (same || !tried_.insert(testing::text_of(f_, e)).second) return;
        auto rows = testing::detail::rows_of(rig_.world(), rig_.known());
        rows.resize(std::min<std::size_t>(rows.size(), 2));
        for (const auto& row : rows) {
            const Metas x = testing::detail::metas_in(f_, e, row);
            serve(e, x, true, [&](std::size_t k) {
                return testing::detail::draw(e.inputs[k], x[k]->dtype,
                                             subject_.seed32() + static_cast<unsigned>(k));
            });
        }
    }

    // In words that can be tried again.
    std::string describe(const Example& e, const Metas& x) const {
        std::string dtypes;
        for (const auto& meta : x)
            dtypes += (dtypes.empty() ? "" : ",") + (meta ? plugin::text_of(meta->dtype) : "-");
        return fmt::format("\"{}\" of {}", testing::text_of(f_, e), dtypes);
    }
    // A row of dtypes that the function has kernels for, mostly.
    Metas metas_for(const Example& e, Garbage& garbage) {
        const testing::detail::TypeVars vars(f_);
        const auto rows = testing::detail::rows_of(rig_.world(), rig_.known());
        std::vector<catena_dtype> row(vars.size());
        for (catena_dtype& dtype : row) dtype = garbage.dtype();
        if (!rows.empty() && !garbage.chance(10))
            row = rows[static_cast<std::size_t>(
                garbage.pick(0, static_cast<std::int64_t>(rows.size()) - 1))];
        return testing::detail::metas_in(f_, e, row);
    }
    bool report(const std::string& label, const std::string& problem) {
        if (problem.empty()) return false;
        ++failed_;
        findings_.fail("{}: {}", label, problem);
        return true;
    }
    // Extents that a host would take; it refuses them itself where an input cannot be.
    std::string shapes_of(const std::vector<catena_meta>& y, const Metas& x) const {
        for (const auto& meta : x)
            if (meta && !exists(*meta)) return {};
        for (std::size_t i = 0; i < y.size(); ++i) {
            if (y[i].ndim < 0 || y[i].ndim > CATENA_MAX_NDIM)
                return fmt::format("infer() leaves {} axes to {}", y[i].ndim, f_.outputs[i]->name);
            for (std::int32_t d = 0; d < y[i].ndim; ++d)
                if (y[i].shape[d] < 0)
                    return fmt::format("infer() gives {} an extent of {}", f_.outputs[i]->name,
                                       y[i].shape[d]);
        }
        return {};
    }

    void try_case(const Example& e, Garbage& garbage) {
        const auto x = metas_for(e, garbage);
        const bool train = !garbage.chance(4);
        serve(e, x, train,
              [&](std::size_t i) { return garbage.numbers(e.inputs[i], x[i]->dtype); });
    }
    // infer(), and every kernel that serves the call, in memory that ends where it may not be touched.
    // numbers: makes input i, which is there.
    template <class Numbers>
    void serve(const Example& e, const Metas& x, bool train, const Numbers& numbers) {
        const std::string words = describe(e, x);
        Engine caller = rig_.caller(e.attrs, train, {{}, {Placement::Kind::fenced}});
        std::vector<catena_meta> y;
        if (rig_.brings()) {
            doing("infer() of " + words);
            const Reply r = caller.infer(x);
            if (report(words, judge(r, f_)) || r.status != CATENA_OK ||
                report(words, shapes_of(r.metas, x)))
                return;
            y = r.metas;
        } else try {
                y = rig_.world().infer(f_.name, x, e.attrs.list());
            } catch (const testing::Failure&) {
                return;
            }
        double largest = 0;
        for (const auto& meta : x)
            if (meta) largest = std::max(largest, elements(*meta));
        for (const catena_meta& meta : y) largest = std::max(largest, elements(meta));
        if (largest > most_elements || !std::ranges::all_of(y, exists)) return;
        if (std::ranges::any_of(x, [](const auto& meta) { return meta && !exists(*meta); })) return;
        std::vector<Array> arrays;
        for (std::size_t i = 0; i < x.size(); ++i) arrays.push_back(x[i] ? numbers(i) : Array());
        for (const catena_kernel* k : rig_.kernels(CATENA_PHASE_FORWARD)) {
            if (!testing::detail::fits(f_, *k, x, Metas(y.begin(), y.end()))) continue;
            const std::string label = fmt::format("forward '{}' of {}", k->isa, words);
            doing(label);
            report(label, judge(caller.forward(*k, arrays, y, Step::run), f_));
        }
    }

    const Subject& subject_;
    Findings& findings_;
    Rig rig_;
    const catena_function& f_;
    std::vector<Example> examples_;
    int failed_ = 0;
    std::set<std::string> tried_;
};

void attributes(const Subject& subject, Findings& findings) {
    Fuzz fuzz(subject, findings);
    const catena_function& f = fuzz.function();
    if (f.n_attrs == 0) return findings.skip("it has no attributes");
    fuzz.run([&](Garbage& garbage, const Example& from) {
        const Example e = garbage.attributes(f, from);
        return garbage.chance(3) ? garbage.shapes(f, e, false) : e;
    });
}
const Registered r1{{"fuzz", "attributes",
                     "any attributes that the schema allows are served or refused in words",
                     attributes, Each::function}};

void shapes(const Subject& subject, Findings& findings) {
    Fuzz fuzz(subject, findings);
    const catena_function& f = fuzz.function();
    if (f.n_inputs == 0) return findings.skip("it has no inputs");
    fuzz.run([&](Garbage& garbage, const Example& from) {
        return garbage.shapes(f, from, garbage.chance(2));
    });
}
const Registered r2{{"fuzz", "shapes",
                     "inputs of any shape and dtype are served or refused in words", shapes,
                     Each::function}};

void ranks(const Subject& subject, Findings& findings) {
    Fuzz fuzz(subject, findings);
    if (fuzz.function().n_inputs == 0) return findings.skip("it has no inputs");
    fuzz.every_rank();
}
const Registered r3{{"fuzz", "ranks",
                     "each input with 0 to 16 axes, from each example: served or refused in words, "
                     "and no axis is read that is not there",
                     ranks, Each::function}};

}  // namespace
}  // namespace catena::check
