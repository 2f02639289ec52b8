// Loads both instances of the subject, and makes calls of its function.
#include "rig.hpp"

#include <table_rules.hpp>
#include <testing/resize.hpp>
#include <testing/state.hpp>
#include <testing/types.hpp>

#include <sys/mman.h>

#include <fstream>
#include <limits>
#include <stdexcept>

namespace catena::check {

using testing::Example;
using testing::Failure;
using testing::Sample;
using testing::detail::Given;
using testing::detail::Module;

std::string damage(const catena_manifest& manifest, const catena_plugin& table) {
    try {
        check_table(
            table,
            {.complete = true, .known_headers = manifest.abi_minor_built <= CATENA_ABI_MINOR},
            Broken([](const std::string& text) { throw std::runtime_error(text); }));
    } catch (const std::runtime_error& broken) {
        return broken.what();
    }
    return {};
}

std::unique_ptr<testing::World> make_world(const Subject& subject) {
    std::vector<std::string> paths = {subject.file.string()};
    for (const auto& path : subject.with) paths.push_back(path.string());
    return std::make_unique<testing::World>(paths);
}

std::string absent_in(testing::World& world, const Subject& subject) {
    if (world.origin(world.function(subject.function)) == subject.id) return {};
    for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD})
        for (const catena_kernel* k : world.kernels(subject.function, phase))
            if (world.origin(*k) == subject.id) return {};
    std::string text = "none of its kernels can run here";
    for (const std::string& line : world.skipped(subject.function)) text += "; " + line;
    return text;
}

std::optional<testing::Sample> longer(testing::World& world, const catena_function& f,
                                      const testing::Example& example, std::int64_t total,
                                      std::int64_t most, unsigned seed) {
    return testing::detail::longer_first(
        example, total, most, [&](const testing::Example& e) -> std::optional<testing::Sample> {
            try {
                doing("makes \"{}\" longer: \"{}\"", text_of(f, example), text_of(f, e));
                return make_sample(world, f, e, seed);
            } catch (const testing::Failure&) {
                return std::nullopt;  // the function refuses this call
            }
        });
}

void set_clamped(testing::Array& a, std::int64_t i, double value) {
    testing::detail::with_type(a.dtype(), [&]<class T>(T) {
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            constexpr auto low = std::numeric_limits<T>::min(),
                           high = std::numeric_limits<T>::max();
            a.data<T>()[i] = value != value                       ? T(0)
                             : value <= static_cast<double>(low)  ? low
                             : value >= static_cast<double>(high) ? high
                                                                  : static_cast<T>(value);
        } else {
            a.set(i, value);
        }
    });
}

std::vector<catena_value> values_of(const catena_function& f, const testing::OwnedAttrs& attrs) {
    std::vector<catena_value> values;
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        const catena_value* given = attrs.find(f.attrs[i]->name);
        values.push_back(given != nullptr ? *given : f.attrs[i]->def);
    }
    return values;
}

Module second_copy(const std::filesystem::path& file) {
    const int fd = memfd_create("copy.catena", 0);  // stays open: each copy needs a path of its own
    const std::string path = fmt::format("/proc/self/fd/{}", fd);
    std::ofstream copy(path, std::ios::binary);
    copy << std::ifstream(file, std::ios::binary).rdbuf();
    copy.close();
    if (fd < 0 || !copy) throw Failure(CATENA_E_INTERNAL, "it could not be copied into memory");
    return Module(path);
}

Rig::Rig(const Subject& subject, const catena_host& host)
    : subject_(subject), world_(make_world(subject)) {
    doing("loads the plugin once more");
    const Module copy = second_copy(subject.file);
    const catena_plugin& table = copy.table(host, *world_, true);
    fresh_.state().add({subject.file.string(), copy.manifest, &table}, true);
    std::size_t next = 0;
    const auto& fresh = fresh_.kernels();
    for (const catena_kernel* k : world_->kernels())
        if (world_->origin(*k) == subject.id && next < fresh.size()) {
            const catena_kernel* mine = fresh[next++];
            if (testing::detail::on_cpu(*mine) || fresh_.state().device_of(*mine) != nullptr)
                kernels_.emplace(k, mine);
        }
}

std::size_t Rig::n_functions() const { return fresh_.state().functions.size(); }
bool Rig::brings() const { return fresh_.state().functions.contains(subject_.function); }
const catena_function& Rig::function() {
    return brings() ? fresh_.function(subject_.function) : known();
}

std::vector<Example> Rig::examples() {
    return testing::examples_of(*world_, function(), example_seed).calls;
}

std::vector<Play> Rig::plays(Findings& findings) {
    std::vector<Play> result;
    for (const Example& e : examples()) {
        std::optional<Sample> first;
        for (const bool train : {true, false}) try {
                doing("runs \"{}\"", testing::text_of(function(), e));
                Sample s = testing::make_sample(*world_, known(), e, subject_.seed32(), train);
                if (first && s.y == first->y) continue;
                first = s;
                result.push_back(play(std::move(s)));
            } catch (const Failure&) {
                // Another check reports it.
            }
    }
    if (result.empty()) findings.skip("no call is known that it accepts");
    return result;
}

Play Rig::play(Sample sample) {
    testing::Report report;
    testing::Settings settings;
    settings.seed = subject_.seed32();
    testing::detail::Exam exam(*world_, known(), sample, report, settings);
    Play p;
    p.base = exam.base();
    const bool differentiable = exam.differentiable();
    for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD}) {
        if (phase == CATENA_PHASE_BACKWARD && !differentiable) continue;
        for (testing::detail::Use& u : exam.uses(phase)) {
            if (u.kernel == nullptr && u.forward() && brings() && !p.composition) {
                p.repeats = exam.repeats(u);
                p.composition = u;
            }
            const auto own = kernels_.find(u.kernel);
            if (own == kernels_.end()) continue;
            const bool repeats = exam.repeats(u);
            const auto before =
                world_->state().before(*u.kernel, testing::detail::metas_of(u.given.x),
                                       testing::detail::metas_of(u.given.y));
            p.uses.push_back({own->second, mine(before), std::move(u), repeats});
        }
    }
    if (differentiable && brings() && function().gradient != nullptr) try {
            p.gx = exam.gradient(p.base);
            p.composed = true;
        } catch (const Failure&) {
            // Another check reports it.
        }
    p.sample = std::move(sample);
    return p;
}

std::vector<const catena_kernel*> Rig::mine(const std::vector<const catena_kernel*>& known) const {
    std::vector<const catena_kernel*> result;
    for (const catena_kernel* k : known)
        if (const auto own = kernels_.find(k); own != kernels_.end()) result.push_back(own->second);
    return result;
}
std::vector<const catena_kernel*> Rig::kernels(int phase) {
    return mine(world_->kernels(subject_.function, phase));
}

Engine Rig::caller(const testing::OwnedAttrs& attrs, bool train, const Circumstances& now) {
    const catena_function& f = function();
    testing::Options options;
    options.train = train;
    options.most_bytes = std::uint64_t{1} << 25;
    Engine engine(*world_, f, values_of(f, attrs), options);
    engine.placement = now.placement;
    engine.owner = &fresh_;
    engine.watch = &control;
    control.arm = now.arm;
    world_->drawn = 0;
    return engine;
}

Reply Rig::run(const Use& use, const Given& given, const Play& play, const Circumstances& now,
               Step last) {
    Engine engine = caller(play.sample.example.attrs, play.sample.train, now);
    if (!testing::detail::is_forward(*use.kernel))
        return engine.backward(*use.kernel, use.before, given, 0, last);
    std::vector<catena_meta> y;
    for (std::size_t i = 0; i < function().n_outputs; ++i) y.push_back(use.of.result[i].meta());
    return engine.forward(*use.kernel, given.x, y, last);
}

std::vector<Callback> Rig::callbacks(const Play& p) {
    std::vector<Callback> all;
    const auto add = [&](const std::string& label, const auto& call, int phase,
                         const std::vector<Array>& expected = {},
                         testing::Tolerance tolerance = {}) {
        all.push_back({fmt::format("{} of \"{}\"", label, p.sample.text), &function(), call,
                       expected, tolerance, phase});
    };
    const auto engine = [this, &p](const Circumstances& now) {
        return caller(p.sample.example.attrs, p.sample.train, now);
    };
    const auto infer = [=, &p](const Circumstances& now) {
        return engine(now).infer(testing::detail::metas_of(p.sample.x));
    };
    if (brings() && function().infer != nullptr) add("infer()", infer, CATENA_PHASE_FORWARD);
    for (const Use& u : p.uses)
        for (const Step step : {Step::supports, Step::plan, Step::run}) {
            if (step == Step::supports && u.kernel->supports == nullptr) continue;
            if (step == Step::plan && u.kernel->plan == nullptr) continue;
            const auto call = [this, &u, &p, step](const Circumstances& now) {
                return run(u, u.of.given, p, now, step);
            };
            const bool compared = step == Step::run && u.repeats;
            add(fmt::format("{}() of {}", name_of(step), u.of.label), call, u.kernel->phase,
                compared ? u.of.result : std::vector<Array>(), u.of.tolerance);
        }
    const auto gradient = [=, &p](const Circumstances& now) {
        return engine(now).gradient(p.base);
    };
    if (p.composition) {
        const testing::detail::Use& u = *p.composition;
        const auto compose = [&](bool shapes) {
            return [=, &u](const Circumstances& now) {
                Engine caller = engine(now);
                std::vector<catena_var*> y;
                return caller.compose(caller.make(u.given).x, y, shapes);
            };
        };
        add("compose()", compose(false), CATENA_PHASE_FORWARD,
            p.repeats ? u.result : std::vector<Array>(), u.tolerance);
        add("compose() without elements", compose(true), CATENA_PHASE_FORWARD);
    }
    if (p.composed) add("gradient()", gradient, CATENA_PHASE_BACKWARD, p.gx, {1e-9, 1e-10});
    return all;
}

void Rig::each_callback(Findings& findings, const std::function<void(const Callback&)>& body) {
    const std::vector<Play> all = plays(findings);
    for (const Play& p : all)
        for (const Callback& callback : callbacks(p)) body(callback);
    if (!all.empty()) skip_if_idle(findings);
}

std::string Callback::judge(const Reply& reply) const {
    std::string problem = check::judge(reply, *function);
    if (problem.empty() && reply.status == CATENA_OK && !expected.empty())
        problem = testing::compare(reply.results, expected, tolerance, [&](std::size_t i) {
            return testing::detail::result_name(*function, phase, i);
        });
    return problem;
}
std::string Callback::judge_success(const Reply& reply) const {
    if (std::string problem = judge(reply); !problem.empty()) return problem;
    if (!reply.served) return fmt::format("{}() does not serve the call", name_of(reply.step));
    if (reply.status == CATENA_OK) return {};
    return fmt::format("{}() fails: {}", name_of(reply.step), reply.text);
}

void Callback::check(Findings& findings, const std::string& words, const Circumstances& now,
                     bool has_to_succeed) const {
    const std::string what = label + ", " + words;
    doing("{}", what);
    const Reply reply = call(now);
    const std::string problem = has_to_succeed ? judge_success(reply) : judge(reply);
    if (!problem.empty()) findings.fail("{}: {}", what, problem);
}

void skip_if_idle(Findings& findings) {
    if (control.entered == 0)
        findings.skip("no function and no kernel of the plugin can be called here");
}

}  // namespace catena::check
