// Callbacks of a function, and what is right about their replies.
#include "callbacks.hpp"

#include <fmt/format.h>

namespace catena::check {

std::string Callback::judge(const Reply& reply) const {
    std::string problem = check::judge(reply, *function);
    if (problem.empty() && reply.status == CATENA_OK && !expected.empty())
        problem = testing::compare(reply.results, expected, tolerance, [&](std::size_t i) {
            return testing::result_name(*function, phase, i);
        });
    return problem;
}
std::string Callback::judge_success(const Reply& reply) const {
    if (std::string problem = judge(reply); !problem.empty()) return problem;
    if (!reply.served) return fmt::format("{}() does not serve the call", name_of(reply.step));
    if (reply.status == CATENA_OK) return {};
    return fmt::format("{}() fails: {}", name_of(reply.step), reply.text);
}

std::vector<Callback> callbacks_of(Rig& rig, const std::string& name, const Play& p) {
    const catena_function& f = rig.function(name);
    std::vector<Callback> all;
    const auto add = [&](const std::string& label, auto body, const std::vector<Array>& expected,
                         testing::Tolerance tolerance, int phase) {
        const auto call = [&rig, &f, &p, body](const Circumstances& now) {
            Caller caller = rig.caller(f, p.sample.example.attrs, p.sample.train);
            caller.arm = now.arm;
            caller.placement = now.placement;
            return body(caller);
        };
        all.push_back({label + " of \"" + p.text() + "\"", &f, call, expected, tolerance, phase});
    };
    if (rig.brings(name))
        add(
            "infer()", [&p](Caller& c) { return c.infer(testing::metas_of(p.sample.x)); }, {}, {},
            CATENA_PHASE_FORWARD);
    for (const Use& u : p.uses)
        for (const Step step : {Step::supports, Step::plan, Step::run}) {
            if (step == Step::supports && u.kernel->supports == nullptr) continue;
            if (step == Step::plan && u.kernel->plan == nullptr) continue;
            add(
                fmt::format("{}() of {}", name_of(step), u.of.label),
                [&u, &f, step](Caller& c) {
                    const auto& given = u.of.given;
                    if (u.kernel->phase == CATENA_PHASE_BACKWARD)
                        return c.backward(*u.kernel, u.before, given, step);
                    return c.forward(*u.kernel, given.x, metas_of(u.of.result, f.n_outputs), step);
                },
                step == Step::run && u.repeats ? u.of.result : std::vector<Array>(), u.of.tolerance,
                u.kernel->phase);
        }
    if (p.composed)
        add(
            "gradient()", [&p](Caller& c) { return c.gradient(p.base); }, p.gx, {1e-9, 1e-10},
            CATENA_PHASE_BACKWARD);
    return all;
}

}  // namespace catena::check
