// Checks compositions: which calls they make, and that infer() says the same of their shapes.
#include "rig.hpp"

#include <testing/resize.hpp>

#include <fmt/ranges.h>

namespace catena::check::compose {
namespace {

using testing::Example;
using testing::RecordedCall;

// The calls of a composition as lines: "#2 = catena.mul(#0, #1)", and the results.
struct Calls {
    std::vector<std::string> lines;
    Reply reply;
};

class Compositions {
public:
    Compositions(const Subject& subject, Findings& findings) : findings_(findings), rig_(subject) {}

    // Calls body for each example; with `runs`, that the composition accepts.
    template <class Body>
    void each(const Body& body, bool runs = true) {
        if (!rig_.brings() || rig_.function().compose == nullptr)
            return findings_.skip("it is no composition");
        const std::vector<Play> plays = rig_.plays(findings_);
        for (const Play& p : plays)
            if (p.composition || !runs) body(p);
        if (!plays.empty()) skip_if_idle(findings_);
    }

    Calls calls(const Play& p, const std::vector<Array>& x, bool shapes) {
        Engine caller = rig_.caller(p.sample.example.attrs, p.sample.train, {});
        std::vector<RecordedCall> tape;
        caller.ctx.tape = &tape;
        const std::vector<catena_var*> inputs = caller.make({x}).x;
        std::vector<catena_var*> y;
        Calls result;
        result.reply = caller.compose(inputs, y, shapes);
        std::map<const catena_var*, std::size_t> numbers;
        const auto names = [&](const std::vector<catena_var*>& vars) {
            std::vector<std::string> list;
            for (const catena_var* v : vars)
                list.push_back(v == nullptr ? "none" : fmt::format("#{}", number(numbers, v)));
            return fmt::format("{}", fmt::join(list, ", "));
        };
        names(inputs);
        for (const RecordedCall& call : tape) {
            std::string attrs;
            for (const catena_named_value& a : call.attrs.list())
                attrs += fmt::format(" {}={}", a.name, testing::detail::text_of(a.value, ",", '"'));
            std::string line = fmt::format("{}({}){}", call.function->name, names(call.x), attrs);
            line = fmt::format("{} = {}", names(call.y), line);
            result.lines.push_back(std::move(line));
        }
        if (result.reply.ok() && result.reply.status == CATENA_OK)
            result.lines.push_back(fmt::format("the results are {}", names(y)));
        return result;
    }

    Rig& rig() { return rig_; }

private:
    static std::size_t number(std::map<const catena_var*, std::size_t>& all, const catena_var* v) {
        return all.try_emplace(v, all.size()).first->second;
    }

    Findings& findings_;
    Rig rig_;
};

// Returns other numbers for the inputs that compose() may not read.
std::vector<Array> other_numbers(const catena_function& f, std::vector<Array> x, double value) {
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!x[i] || (testing::detail::input_flags(f, i) & CATENA_PORT_HOST) != 0) continue;
        for (std::int64_t k = 0; k < x[i].size(); ++k) set_clamped(x[i], k, value);
    }
    return x;
}

void pure(const Subject& subject, Findings& findings) {
    Compositions all(subject, findings);
    all.each([&](const Play& p) {
        const std::vector<Array>& x = p.composition->given.x;
        const Calls first = all.calls(p, x, false);
        const auto compare = [&](const char* words, const Calls& other) {
            std::size_t i = 0;
            while (i < first.lines.size() && i < other.lines.size() &&
                   first.lines[i] == other.lines[i])
                ++i;
            const auto line = [&](const Calls& c) {
                return i < c.lines.size() ? c.lines[i] : std::string("no further call");
            };
            // Numbers that a part refuses end the calls early.
            const bool refused = other.reply.status != CATENA_OK && i == other.lines.size();
            if (line(first) != line(other) && !refused)
                findings.fail_once(
                    words, "\"{}\", {}: expected the same calls, got \"{}\" in place of \"{}\"",
                    p.sample.text, words, line(other), line(first));
        };
        const catena_function& f = all.rig().function();
        compare("with the same inputs again", all.calls(p, x, false));
        for (const double value : {0.25, -3.0})
            compare("with other elements", all.calls(p, other_numbers(f, x, value), false));
        compare("without elements", all.calls(p, x, true));
    });
}
const Registered r1{{"compose", "pure",
                     "the same inputs make the same calls of the host; elements make no "
                     "difference, but those of HOST inputs",
                     pure, Each::function}};

void host(const Subject& subject, Findings& findings) {
    Compositions all(subject, findings);
    all.each([&](const Play& p) {
        for (const Callback& callback : all.rig().callbacks(p)) {
            if (!callback.label.starts_with("compose()")) continue;
            for (const char* const time : {"the first time", "the second time"})
                callback.check(findings, time, {});
        }
    });
}
const Registered r2{{"compose", "host",
                     "contexts and variables are those of the running callback, read() is for "
                     "HOST inputs, and results are results of calls",
                     host, Each::function}};

void shapes(const Subject& subject, Findings& findings) {
    Compositions all(subject, findings);
    const catena_function& f = all.rig().function();
    if (f.infer == nullptr) return findings.skip("it has no infer()");
    const auto of_play = [&](const Play& p) {
        const auto compare = [&](const Example& e) {
            std::vector<Array> x;
            for (std::size_t i = 0; i < e.inputs.size(); ++i)
                x.push_back(testing::detail::draw_for_infer(
                    f, e, i, p.sample.x[i] ? p.sample.x[i].dtype() : catena_dtype(),
                    subject.seed32()));
            const std::string call = testing::text_of(f, e);
            doing("infer() and compose() of \"{}\"", call);
            Engine caller = all.rig().caller(e.attrs, p.sample.train, {});
            const Reply inferred = caller.infer(testing::detail::metas_of(x));
            std::vector<catena_var*> y;
            const Reply composed = caller.compose(caller.make({x}).x, y, true);
            const auto text = [&](const Reply& reply) {
                if (reply.status != CATENA_OK) return "a refusal: " + reply.text;
                std::vector<std::string> list;
                for (const catena_meta& m : reply.metas)
                    list.push_back(fmt::format("{} ({})", plugin::text_of(m.dtype),
                                               fmt::join(m.shape, m.shape + m.ndim, ",")));
                for (const Array& a : reply.results)
                    list.push_back(fmt::format("{} ({})", plugin::text_of(a.dtype()),
                                               fmt::join(a.shape(), ",")));
                return fmt::format("{}", fmt::join(list, " "));
            };
            const bool both = inferred.status != CATENA_OK && composed.status != CATENA_OK;
            if (!both && text(inferred) != text(composed))
                findings.fail_once(
                    "shapes", "\"{}\": expected infer() to say what compose() gives, {}, got {}",
                    call, text(composed), text(inferred));
        };
        compare(p.sample.example);
        for (const auto& derived : {testing::detail::wrong_shapes(p.sample.example),
                                    testing::detail::wrong_ranks(p.sample.example)})
            for (const Example& e : derived) compare(e);
    };
    all.each(of_play, false);
}
const Registered r3{{"compose", "shapes",
                     "infer() and compose() give the same shapes and dtypes, or both refuse",
                     shapes, Each::function}};

}  // namespace
}  // namespace catena::check::compose
