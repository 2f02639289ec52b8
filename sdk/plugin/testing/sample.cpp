// Dtypes and numbers of samples, and the search for a call of functions without examples.
#include <algorithm>
#include <cmath>
#include <random>

#include "catena/testing/compare.hpp"
#include "catena/testing/report.hpp"
#include "testing/engine.hpp"

namespace catena::testing {

namespace detail {

Array draw(const Example::Input& in, catena_dtype dtype, unsigned seed) {
    Array a(in.shape, dtype);
    if (!in.elements.empty()) {  // of a derived call: as many as its shape has
        const auto n = static_cast<std::int64_t>(in.elements.size());
        for (std::int64_t i = 0; i < a.size(); ++i)
            a.set(i, static_cast<double>(in.elements[static_cast<std::size_t>(i % n)]));
        return a;
    }
    std::minstd_rand engine(seed);
    std::uniform_real_distribution<double> real(in.low, in.high);
    // Integers are in [low, high]; without a range, they are 0 or 1.
    const double low = in.ranged ? std::ceil(in.low) : 0;
    const double high = in.ranged ? std::floor(in.high) : 1;
    std::uniform_int_distribution<std::int64_t> whole(
        static_cast<std::int64_t>(low), static_cast<std::int64_t>(std::max(low, high)));
    for (std::int64_t i = 0; i < a.size(); ++i)
        a.set(i, a.floating() ? real(engine) : static_cast<double>(whole(engine)));
    return a;
}

int width(const Row& row) {
    int sum = 0;
    for (const catena_dtype d : row) sum += is_floating(d) ? 10 * d.bits : d.bits == 32 ? 2 : 1;
    return sum;
}
std::vector<Row> rows_of(const World& world, const catena_function& f) {
    const std::size_t n = TypeVars(f).size();
    std::vector<Row> rows;
    for (const catena_kernel* k : world.kernels(f.name, CATENA_PHASE_FORWARD))
        each_row(*k, n, [&](const Row& row) { rows.push_back(row); });
    if ((f.flags & CATENA_FUNCTION_VIEW) != 0) rows.emplace_back(n, dtype_of<double>());
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return width(a) > width(b); });
    std::vector<Row> all = rows_of_composition(f);
    all.insert(all.end(), rows.begin(), rows.end());
    return all;
}
// Numbers are floats of one dtype, or integers. Ports without a gradient, such as labels, may be
// integers beside floats; these rows come first.
std::vector<Row> rows_of_composition(const catena_function& f) {
    std::vector<Row> rows;
    if (f.compose == nullptr) return rows;
    const TypeVars vars(f);
    enum class Kind { unknown, integers, labels, numbers };
    std::vector<Kind> kinds(vars.size());
    for (std::uint32_t i = 0; i < f.n_inputs; ++i) {
        const std::uint32_t flags = f.inputs[i]->flags;
        const Kind kind = (flags & CATENA_PORT_HOST) != 0                 ? Kind::integers
                          : (flags & CATENA_PORT_NON_DIFFERENTIABLE) != 0 ? Kind::labels
                                                                          : Kind::numbers;
        Kind& of = kinds[vars.input(i)];
        of = of == Kind::integers || kind == Kind::integers ? Kind::integers : std::max(of, kind);
    }
    const catena_dtype whole[] = {dtype_of<std::int32_t>(), dtype_of<std::int64_t>()};
    const auto add = [&](catena_dtype number) {
        std::vector<Row> some(1);
        for (const Kind kind : kinds) {
            std::vector<catena_dtype> choices = {number};
            if (kind == Kind::unknown) choices = {catena_dtype{}};
            else if (kind != Kind::numbers) choices = {whole[0], whole[1]};
            if (kind == Kind::labels && is_floating(number)) choices.push_back(number);
            std::vector<Row> longer;
            for (const catena_dtype choice : choices)
                for (const Row& row : some) {
                    longer.push_back(row);
                    longer.back().push_back(choice);
                }
            some = std::move(longer);
        }
        for (Row& row : some)
            if (std::none_of(rows.begin(), rows.end(), [&](const Row& other) {
                    return std::equal(row.begin(), row.end(), other.begin(), plugin::same);
                }))
                rows.push_back(std::move(row));
    };
    for (const catena_dtype number : {dtype_of<double>(), dtype_of<float>(), dtype_of<Float16>(),
                                      dtype_of<BFloat16>(), whole[1]})
        add(number);
    return rows;
}
bool gives_row(World& world, const catena_function& f, const Arrays& x, const OwnedAttrs& attrs,
               Row& row, std::string* why, bool composition) {
    const TypeVars vars(f);
    Options options;
    options.composition = composition;
    const Arrays y = shapes_of(world, f, x, attrs.list(), options);
    for (std::size_t i = 0; i < y.size(); ++i) {
        catena_dtype& wanted = row[vars.output(i)];
        if (!known(wanted)) wanted = y[i].dtype();
        const bool same = plugin::same(y[i].dtype(), wanted);
        if (!same && why != nullptr)
            *why = std::string("infer() gives ") + f.outputs[i]->name + " as " +
                   plugin::text_of(y[i].dtype()) + ", the kernel has " + plugin::text_of(wanted);
        if (y[i].size() > 1'000'000 || !same) return false;
    }
    return true;
}
std::optional<catena_meta> meta_of(const Example::Input& in, catena_dtype dtype) {
    if (!in.present) return std::nullopt;
    return testing::meta_of(in.shape, dtype);
}

Array draw_for_infer(const catena_function& f, const Example& e, std::size_t i, catena_dtype dtype,
                     unsigned seed) {
    const Example::Input& in = e.inputs[i];
    if (!in.present) return {};
    return (input_flags(f, i) & CATENA_PORT_HOST) != 0 ? draw(in, dtype, seed)
                                                       : Array::without_memory(in.shape, dtype);
}

Metas metas_in(const catena_function& f, const Example& e, const Row& row) {
    const TypeVars vars(f);
    Metas metas;
    for (std::size_t i = 0; i < e.inputs.size(); ++i)
        metas.push_back(meta_of(e.inputs[i], row[vars.input(i)]));
    return metas;
}

}  // namespace detail

Sample make_sample(World& world, const catena_function& f, const Example& example, unsigned seed,
                   bool train) {
    std::exception_ptr refused;
    std::string why;
    const auto seed_of = [&](std::size_t i) { return seed + 1000 * static_cast<unsigned>(i); };
    const detail::TypeVars vars(f);
    for (detail::Row& row : detail::rows_of(world, f)) {
        // A list of elements is integers.
        bool fits = true;
        for (std::size_t i = 0; i < example.inputs.size(); ++i)
            fits = fits && (example.inputs[i].elements.empty() || !is_floating(row[vars.input(i)]));
        if (!fits) continue;
        try {
            Arrays x;
            for (std::size_t i = 0; i < example.inputs.size(); ++i)
                x.push_back(detail::draw_for_infer(f, example, i, row[vars.input(i)], seed_of(i)));
            std::string unfit;
            if (!detail::gives_row(world, f, x, example.attrs, row, &unfit)) {
                if (why.empty()) why = unfit;
                continue;
            }
            for (std::size_t i = 0; i < x.size(); ++i)
                if (x[i] && !x[i].has_memory())
                    x[i] = detail::draw(example.inputs[i], x[i].dtype(), seed_of(i));
            Options options;
            options.train = train;
            world.drawn = 0;
            Arrays y = world.forward(f.name, x, example.attrs.list(), options);
            return {text_of(f, example), example, std::move(x), std::move(y), train};
        } catch (const Violation&) {
            throw;
        } catch (const Failure&) {
            if (!refused) refused = std::current_exception();
        }
    }
    if (refused) std::rethrow_exception(refused);
    detail::refuse(f, CATENA_E_DTYPE, "kernel", "one for \"" + text_of(f, example) + '"',
                   why.empty() ? "none" : "none: " + why);
}

namespace {

using detail::Row;

// Searches for a call that the function accepts, by trying small shapes.
class Search {
public:
    Search(World& world, const catena_function& f, unsigned seed)
        : world_(world), f_(f), seed_(seed), engine_(seed) {}

    // Returns none if no call was found after that many tries.
    std::optional<Example> run(int tries) {
        for (int i = 0; i < tries; ++i) {
            Example e = guess(i);
            if (works(e)) return e;
        }
        return std::nullopt;
    }

private:
    std::int64_t pick(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
    }
    template <class T>
    T one_of(std::initializer_list<T> list) {
        return list.begin()[pick(0, static_cast<std::int64_t>(list.size()) - 1)];
    }

    Example guess(int number) {
        Example e;
        const std::int64_t a = pick(1, 3), b = pick(1, 4), c = pick(1, 5);
        const bool alike = number < 20 || pick(0, 3) == 0;  // all shapes the same
        Dims shape = draw_shape(a, b, c);
        std::size_t n = f_.n_inputs;
        if (n > 0 && (f_.inputs[n - 1]->flags & CATENA_PORT_VARIADIC) != 0)
            n += static_cast<std::size_t>(pick(0, 1));
        for (std::size_t i = 0; i < n; ++i) {
            Example::Input in;
            in.present =
                (detail::input_flags(f_, i) & CATENA_PORT_OPTIONAL) == 0 || pick(0, 1) == 0;
            in.shape = alike ? shape : draw_shape(a, b, c);
            e.inputs.push_back(std::move(in));
        }
        for (std::uint32_t i = 0; i < f_.n_attrs; ++i)
            if ((f_.attrs[i]->flags & CATENA_ATTR_REQUIRED) != 0 ||
                (number > 200 && pick(0, 3) == 0))
                attribute(e.attrs, *f_.attrs[i], a, b);
        return e;
    }
    Dims draw_shape(std::int64_t a, std::int64_t b, std::int64_t c) {
        Dims shape(static_cast<std::size_t>(pick(0, 4)));
        for (std::int64_t& d : shape) d = one_of({a, a, b, b, c, 4 * a, 4 * b, a * b});
        return shape;
    }
    void attribute(OwnedAttrs& attrs, const catena_attr_spec& spec, std::int64_t a,
                   std::int64_t b) {
        const bool ranged = (spec.flags & CATENA_ATTR_RANGED) != 0;
        std::int64_t whole = one_of<std::int64_t>({0, 1, 2, -1, a, b});
        double real = one_of({0.5, 1.0, 2.0, 0.0});
        if (ranged && spec.lo.kind == CATENA_ATTR_INT)
            whole = std::clamp(whole, spec.lo.v.i, spec.hi.v.i);
        if (ranged && spec.lo.kind == CATENA_ATTR_FLOAT)
            real = std::clamp(real, spec.lo.v.f, spec.hi.v.f);
        const auto set = [&](const auto& value) { attrs.set(spec.name, plugin::value_of(value)); };
        switch (spec.kind) {
            case CATENA_ATTR_INT: return set(whole);
            case CATENA_ATTR_FLOAT: return set(real);
            case CATENA_ATTR_BOOL: return set(pick(0, 1) == 0);
            case CATENA_ATTR_DTYPE: return set(dtype_of<double>());
            case CATENA_ATTR_STRING: {
                std::int64_t n = 0;
                while (spec.choices != nullptr && spec.choices[n] != nullptr) ++n;
                return set(n == 0 ? "" : spec.choices[pick(0, n - 1)]);
            }
            case CATENA_ATTR_INTS: {
                Dims list(static_cast<std::size_t>(pick(0, 3)));
                for (std::int64_t& d : list) d = one_of<std::int64_t>({0, 1, a, b, a * b});
                return set(plugin::Ints(list));
            }
            default: {
                const std::vector<double> list(static_cast<std::size_t>(pick(0, 3)), real);
                return set(plugin::Floats(list));
            }
        }
    }

    // Tries zero integers if values are refused, and positive numbers if results are NaN.
    bool works(Example& e) {
        if (!try_call(e)) return false;
        if (nan_) {
            for (Example::Input& in : e.inputs) in.ranged = true, in.low = 0.5, in.high = 1.5;
            if (!try_call(e) || nan_) return false;
        }
        return true;
    }
    bool try_call(Example& e) {
        for (const bool zeros : {false, true}) try {
                if (zeros) only_zero_integers(e);
                const Sample s = make_sample(world_, f_, e, seed_);
                nan_ = has_nan(s.y);
                std::int64_t elements = 0;
                for (std::size_t i = 0; i < f_.n_outputs; ++i) elements += s.y[i].size();
                return elements > 0 || f_.n_outputs == 0;
            } catch (const Failure& failure) {
                if (failure.status() != CATENA_E_VALUE) return false;
            }
        return false;
    }

    void only_zero_integers(Example& e) const {
        const Row row = detail::rows_of(world_, f_).at(0);
        const detail::TypeVars vars(f_);
        for (std::size_t i = 0; i < e.inputs.size(); ++i)
            if (!is_floating(row[vars.input(i)])) {
                e.inputs[i].ranged = true;
                e.inputs[i].low = e.inputs[i].high = 0;
            }
    }

    World& world_;
    const catena_function& f_;
    unsigned seed_;
    std::mt19937 engine_;
    bool nan_ = false;
};

}  // namespace

std::optional<Example> find_example(World& world, const catena_function& f, unsigned seed,
                                    int tries) {
    return Search(world, f, seed).run(tries);
}

Examples examples_of(World& world, const catena_function& f, unsigned seed) {
    Examples result;
    const bool declares = f.examples != nullptr;
    for (; declares && f.examples[result.declared] != nullptr; ++result.declared) try {
            result.calls.push_back(parse_example(f, f.examples[result.declared]));
        } catch (const Failure& e) {
            result.faults.emplace_back(e.what());
        }
    if (!result.calls.empty()) return result;
    now_doing(f.name, "looks for a call that it accepts");
    if (auto call = find_example(world, f, seed)) {
        result.calls.push_back(std::move(*call));
        result.found = true;
    }
    return result;
}

}  // namespace catena::testing
