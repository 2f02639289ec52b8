// Fuzzing: checks that calls unlike the examples are served, or refused with a text, and that no
// memory outside of the arguments is accessed.
#include "rig.hpp"

#include <testing/types.hpp>

#include <algorithm>
#include <limits>
#include <random>

namespace catena::check::fuzz {
namespace {

using plugin::value_of;
using testing::Dims;
using testing::Example;
using testing::detail::elements;
using testing::detail::Metas;

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr double inf = std::numeric_limits<double>::infinity();

// Generates unusual calls that a host may make: any attributes that the schema allows, any shapes,
// and any input values. The same seed generates the same calls.
class Garbage {
public:
    explicit Garbage(std::uint64_t seed) : engine_(seed) {}

    std::int64_t pick(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
    }
    bool chance(int of) { return pick(1, of) == 1; }
    template <class List>
    const auto& one_of(const List& list) {
        return list[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(list.size()) - 1))];
    }
    // Returns the example with other values of most attributes.
    Example attributes(const catena_function& f, const Example& from) {
        Example e = from;
        for (std::uint32_t i = 0; i < f.n_attrs; ++i)
            for (int tries = chance(3) ? 0 : 100; tries > 0; --tries)
                if (attribute(*f.attrs[i], e.attrs)) break;
        return e;
    }
    // Returns the example with other shapes; with `wild`, they may be too large for the memory.
    Example shapes(const catena_function& f, const Example& from, bool wild) {
        Example e = from;
        const bool alike = chance(2);  // equal shapes stay equal
        std::map<Dims, Dims> same;
        for (Example::Input& in : e.inputs) {
            if (!in.present) continue;
            Dims& to = same[in.shape];
            if (!alike || to.empty()) to = shape(in.shape, wild);
            in.shape = to;
        }
        if (e.inputs.empty()) return e;
        const std::uint32_t last = testing::detail::input_flags(f, f.n_inputs - 1);
        if ((last & CATENA_PORT_VARIADIC) != 0 && chance(4))
            e.inputs.resize(static_cast<std::size_t>(pick(f.n_inputs, 70)), e.inputs.back());
        for (std::size_t i = 0; i < e.inputs.size(); ++i)
            if ((testing::detail::input_flags(f, i) & CATENA_PORT_OPTIONAL) != 0 && chance(3))
                e.inputs[i].present = !e.inputs[i].present;
        return e;
    }
    catena_dtype dtype() { return one_of(std::span(testing::detail::EveryType::dtypes)); }
    // Returns input values: mostly the example's, sometimes unusual ones.
    Array numbers(const Example::Input& in, catena_dtype dtype) {
        Array a = testing::detail::draw(in, dtype, static_cast<unsigned>(engine_()));
        if (!chance(3)) return a;
        static const std::vector<double> list = {NAN,   inf, -inf, -1,    0,    1e30, -1e30,
                                                 1e-40, 1e5, 127,  65504, 3e38, -2,   0.5};
        const bool all = chance(4);
        for (std::int64_t i = 0; i < a.size(); ++i)
            if (all || chance(4)) set_clamped(a, i, one_of(list));
        return a;
    }

private:
    std::int64_t whole(const catena_attr_spec& spec) {
        std::vector<std::int64_t> list = {-17, -3, -2, -1, 0, 0, 1, 1, 2, 3, 4, 7, 16, 17, 65, 255};
        for (const int power : {30, 31, 32, 62}) list.push_back(std::int64_t{1} << power);
        for (const std::int64_t n : {least, least + 1, most, std::int64_t{INT32_MAX},
                                     -(std::int64_t{1} << 62), -(std::int64_t{1} << 32)})
            list.push_back(n);
        if ((spec.flags & CATENA_ATTR_RANGED) != 0) {
            list.insert(list.end(), 3, spec.lo.v.i);
            list.insert(list.end(), 3, spec.hi.v.i);
        }
        return one_of(list);
    }
    double real(const catena_attr_spec& spec) {
        std::vector<double> list = {-inf, inf,  NAN,    0,     -0.0,   1,     -1,   0.5,       2,
                                    3,    1e-3, 5e-324, 1e308, -1e308, 1e-30, 1e30, 1 + 1e-12, 0.1};
        if ((spec.flags & CATENA_ATTR_RANGED) != 0) {
            list.insert(list.end(), 3, spec.lo.v.f);
            list.insert(list.end(), 3, spec.hi.v.f);
        }
        return one_of(list);
    }
    // Draws and sets a value; returns false if the schema does not allow the value.
    bool attribute(const catena_attr_spec& spec, testing::OwnedAttrs& attrs) {
        static const std::vector<std::size_t> lengths = {0, 1, 1, 2, 2, 3, 4, 5, 16, 17, 1000};
        static const std::vector<std::string> words = {
            "", " ", "%s%n", "\n", "\xc3\xa4", "none", "\"", std::string(10000, 'x')};
        const auto try_value = [&](const auto& value) {
            const catena_value v = value_of(value);
            if (!testing::detail::refused(spec, v).empty()) return false;
            attrs.set(spec.name, v);
            return true;
        };
        switch (spec.kind) {
            case CATENA_ATTR_INT: return try_value(whole(spec));
            case CATENA_ATTR_FLOAT: return try_value(real(spec));
            case CATENA_ATTR_BOOL: return try_value(chance(2));
            case CATENA_ATTR_DTYPE: return try_value(dtype());
            case CATENA_ATTR_STRING: {
                std::vector<std::string> list;
                for (const char* const* c = spec.choices; c != nullptr && *c != nullptr; ++c)
                    list.emplace_back(*c);
                return try_value(one_of(list.empty() ? words : list).c_str());
            }
            case CATENA_ATTR_INTS: {
                Dims list(one_of(lengths));
                for (std::int64_t& n : list) n = whole(spec);
                return try_value(plugin::Ints(list));
            }
            default: {
                std::vector<double> list(one_of(lengths));
                for (double& d : list) d = real(spec);
                return try_value(plugin::Floats(list));
            }
        }
    }
    Dims shape(const Dims& from, bool wild) {
        static const std::vector<std::int64_t> extents = {
            0,         1,   2, 3, 7, 255, 65536, (1LL << 31) - 1, 1LL << 31, (1LL << 32) + 1,
            1LL << 62, most};
        Dims shape = from;
        const std::int64_t change = pick(0, 5);
        if (change == 0)
            shape.resize(static_cast<std::size_t>(pick(0, wild ? CATENA_MAX_NDIM : 5)), 2);
        if (change == 1) shape.push_back(1);
        if (shape.size() > CATENA_MAX_NDIM) shape.resize(CATENA_MAX_NDIM);
        for (std::int64_t& d : shape) {
            if (!chance(3)) continue;
            d = wild ? one_of(extents) : pick(0, 9);
        }
        return shape;
    }

    std::mt19937_64 engine_;
};

// Maximum number of cases of one function, and of all functions of a plugin together.
constexpr std::size_t most_cases = 600;
constexpr std::size_t all_cases = 12000;
constexpr double most_elements = 20000;  // of a tensor in kernel calls

// The product of the extents that are not 0: other tensors of a composition may be as large.
double whole(const catena_meta& m) {
    double n = 1;
    for (std::int32_t d = 0; d < m.ndim; ++d)
        if (m.shape[d] != 0) n *= static_cast<double>(m.shape[d]);
    return n;
}
// Whether a host can create such a tensor.
bool exists(const catena_meta& m) { return whole(m) <= 0x1p59; }

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
            try_case(make(garbage, garbage.one_of(examples_)), garbage);
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

    // Checks every number of axes for each input of each example, and for all inputs at once. Does
    // not depend on random numbers, so that it always finds a missing check of a rank.
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
    // Where axes are removed or added: with extent 1 or, for twos, with extent 2 at the back.
    enum class Change { back, front, twos };
    static Dims changed(Dims shape, std::size_t rank, Change change) {
        const std::int64_t extent = change == Change::twos && rank <= shape.size() + 3 ? 2 : 1;
        if (change == Change::front) std::ranges::reverse(shape);
        shape.resize(rank, extent);
        if (change == Change::front) std::ranges::reverse(shape);
        return shape;
    }
    // Changes the rank of input i, or of all if i is past the end, in the two widest dtype rows.
    void with_rank(Example e, std::size_t i, std::size_t rank, Change change) {
        bool same = true;
        for (std::size_t k = 0; k < e.inputs.size(); ++k) {
            if ((i != k && i < e.inputs.size()) || !e.inputs[k].present) continue;
            const Dims to = changed(e.inputs[k].shape, rank, change);
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

    // Returns the call as text, so that it can be repeated.
    std::string describe(const Example& e, const Metas& x) const {
        std::string dtypes;
        for (const auto& meta : x)
            dtypes += (dtypes.empty() ? "" : ",") + (meta ? plugin::text_of(meta->dtype) : "-");
        return fmt::format("\"{}\" of {}", testing::text_of(f_, e), dtypes);
    }
    // Describes the inputs, mostly with a row of dtypes that the function has kernels for.
    Metas metas_for(const Example& e, Garbage& garbage) {
        const testing::detail::TypeVars vars(f_);
        const auto rows = testing::detail::rows_of(rig_.world(), rig_.known());
        std::vector<catena_dtype> row(vars.size());
        for (catena_dtype& dtype : row) dtype = garbage.dtype();
        if (!rows.empty() && !garbage.chance(10)) row = garbage.one_of(rows);
        return testing::detail::metas_in(f_, e, row);
    }
    bool report(const std::string& label, const std::string& problem) {
        if (problem.empty()) return false;
        ++failed_;
        findings_.fail("{}: {}", label, problem);
        return true;
    }
    // Returns what is wrong with output shapes. Any are allowed if a host cannot create an input.
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
    // Checks infer() and every forward kernel for the call; arguments end at an inaccessible page.
    // numbers(i) returns the values of input i, which is present.
    template <class Numbers>
    void serve(const Example& e, const Metas& x, bool train, const Numbers& numbers) {
        const std::string words = describe(e, x);
        Engine caller = rig_.caller(e.attrs, train, {{}, {Placement::Kind::fenced}});
        std::vector<catena_meta> y;
        std::vector<Array> arrays;  // those that compose() may read
        for (std::size_t i = 0; i < x.size(); ++i) {
            const bool host = (testing::detail::input_flags(f_, i) & CATENA_PORT_HOST) != 0;
            if (!x[i]) arrays.emplace_back();
            else if (host && exists(*x[i]) && elements(*x[i]) <= most_elements)
                arrays.push_back(numbers(i));
            else
                arrays.push_back(
                    Array::without_memory(testing::detail::dims_of(*x[i]), x[i]->dtype));
        }
        if (rig_.brings()) {
            doing("infer() of {}", words);
            const Reply r = f_.infer != nullptr ? caller.infer(x) : caller.shapes(arrays);
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
            if (meta)
                largest = std::max(largest, f_.compose != nullptr ? whole(*meta) : elements(*meta));
        for (const catena_meta& meta : y) largest = std::max(largest, elements(meta));
        if (largest > most_elements || !std::ranges::all_of(y, exists)) return;
        if (std::ranges::any_of(x, [](const auto& meta) { return meta && !exists(*meta); })) return;
        for (std::size_t i = 0; i < x.size(); ++i)
            if (x[i] && !arrays[i].has_memory()) arrays[i] = numbers(i);
        if (rig_.brings() && f_.compose != nullptr) {
            doing("compose() of {}", words);
            std::vector<catena_var*> results;
            report(words, judge(caller.compose(caller.make({arrays}).x, results), f_));
        }
        for (const catena_kernel* k : rig_.kernels(CATENA_PHASE_FORWARD)) {
            if (!testing::detail::fits(f_, *k, x, Metas(y.begin(), y.end()))) continue;
            const std::string label = fmt::format("forward '{}' of {}", k->isa, words);
            doing("{}", label);
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
                     "any attributes that the schema allows are accepted or refused with a message",
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
                     "inputs of any shape and dtype are accepted or refused with a message", shapes,
                     Each::function}};

void ranks(const Subject& subject, Findings& findings) {
    Fuzz fuzz(subject, findings);
    if (fuzz.function().n_inputs == 0) return findings.skip("it has no inputs");
    fuzz.every_rank();
}
const Registered r3{{"fuzz", "ranks",
                     "each input with 0 to 16 axes, from each example: accepted or refused with a "
                     "message, and only existing axes are read",
                     ranks, Each::function}};

}  // namespace
}  // namespace catena::check::fuzz
