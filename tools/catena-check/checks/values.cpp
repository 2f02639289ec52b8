// What catena::testing::conform() says of each function, by the names of its checks.
#include "plugin.hpp"
#include "state.hpp"

#include <catena/testing/conform.hpp>

namespace catena::check {
namespace {

using testing::Report;
using testing::Verdict;
using In = testing::Check;

struct Mapped {
    In of;
    const char* name;
};
constexpr Mapped mapped[] = {
    {In::example, "values/examples"},
    {In::dtypes, "values/dtypes"},
    {In::variants, "values/variants"},
    {In::empty, "values/empty"},
    {In::size_one, "values/size-one"},
    {In::zero_d, "values/zero-d"},
    {In::layout, "values/layout"},
    {In::inputs, "values/inputs"},
    {In::guard, "values/guard"},
    {In::written, "values/written"},
    {In::add, "values/add"},
    {In::wrong_rank, "inference/wrong-rank"},
    {In::wrong_shape, "inference/wrong-shape"},
    {In::wrong_dtype, "inference/wrong-dtype"},
    {In::gradient, "gradients/composed"},
    {In::backward, "gradients/kernel"},
    {In::second_order, "gradients/second-order"},
    {In::targets, "gradients/targets"},
    {In::missing_gy, "gradients/missing"},
    {In::retained, "gradients/retained"},
    {In::threads, "determinism/threads"},
    {In::determinism, "determinism/repeated"},
};

bool failed(const Report& report, In check) { return report[check].verdict == Verdict::failed; }
bool contains(const std::string& text, const char* part) { return text.find(part) != text.npos; }

// What follows from another fault that the report names is not said again.
bool follows(const Report& report, In check, const std::string& line) {
    if (check == In::empty || check == In::size_one || check == In::zero_d) {
        // A shape that should have been refused is no edge.
        if (failed(report, In::wrong_shape) || failed(report, In::wrong_rank)) return true;
        for (const Mapped& m : mapped) {
            const std::string start = report.function() + ": " + info(m.of).name + ": ";
            if (m.of != check && failed(report, m.of) && contains(line, start.c_str())) return true;
        }
        return contains(line, "NaN") && failed(report, In::example);
    }
    if (check == In::dtypes && contains(line, "no example reaches the kernels"))
        return failed(report, In::guard) || failed(report, In::inputs) ||
               failed(report, In::example) || failed(report, In::dtypes);
    if (failed(report, In::determinism))
        return check == In::threads || contains(line, "it depends on");
    // Measured by the composition.
    if (failed(report, In::gradient)) return check == In::backward;
    return false;
}

void tell(const Report& report, const Mapped& m, Findings findings) {
    const Report::Entry& entry = report[m.of];
    if (entry.verdict == Verdict::not_applicable || entry.verdict == Verdict::none)
        return findings.skip(entry.text);
    if (entry.verdict == Verdict::passed) return;
    std::vector<std::string> lines;
    for (std::size_t begin = 0, end; (end = entry.text.find('\n', begin)) != std::string::npos;
         begin = end + 1)
        lines.push_back(entry.text.substr(begin, end - begin));
    if (lines == std::vector<std::string>{"no example reaches it"})
        return findings.skip("no example reaches it");
    std::string unreached;
    bool said = false;
    for (const std::string& line : lines) {
        if (m.of == In::dtypes && contains(line, "no example reaches the kernels")) {
            unreached += (unreached.empty() ? "" : "\n") + line;
            continue;
        }
        if (follows(report, m.of, line)) continue;
        findings.fail(line);
        said = true;
    }
    const bool elsewhere = said || failed(report, In::guard) || failed(report, In::inputs) ||
                           failed(report, In::example);
    if (!unreached.empty() && !elsewhere) findings.fail(unreached);
    else if (!said) findings.skip("it fails in another check, too");
}

void exam(const Subject& subject, Findings& findings) {
    const auto world = make_world(subject);
    testing::Settings settings;
    settings.seed = static_cast<unsigned>(subject.seed);
    const ProcessState before = ProcessState::now();
    const Report report = conform(*world, subject.function, settings);
    const ProcessState after = ProcessState::now();
    for (const Mapped& m : mapped) tell(report, m, findings.of(m.name));
    for (const auto& lines :
         {before.float_mode(after), before.signals(after), before.environment(after)})
        for (const std::string& line : lines) findings.of("values/process").fail(line);
}

#define CATENA_EXAMINED(id, group, name, doc)      \
    const Registered id {                          \
        { group, name, doc, exam, Each::function } \
    }
CATENA_EXAMINED(v1, "values", "survives",
                "calls of every shape and with NaN, right or wrong, come back: no crash, no hang");
CATENA_EXAMINED(v2, "values", "examples", "the examples are accepted, and give finite numbers");
CATENA_EXAMINED(v3, "values", "dtypes", "every dtype gives what float64 gives");
CATENA_EXAMINED(v4, "values", "variants",
                "kernels for every instruction set and of every plugin agree: tuned ones with the "
                "reference");
CATENA_EXAMINED(v5, "values", "empty", "first extents of 0");
CATENA_EXAMINED(v6, "values", "size-one", "extents of 1");
CATENA_EXAMINED(v7, "values", "zero-d", "inputs without axes");
CATENA_EXAMINED(v8, "values", "layout", "inputs at addresses that fit the dtype alone");
CATENA_EXAMINED(v9, "values", "inputs", "what was lent for reading is unmodified");
CATENA_EXAMINED(v10, "values", "guard", "nothing is written or read beside what was lent");
CATENA_EXAMINED(v11, "values", "written", "every byte of a result is written, whatever was there");
CATENA_EXAMINED(v12, "values", "add", "REQ_ADD adds to what is there");
CATENA_EXAMINED(v13, "values", "process",
                "calls leave floating-point mode, signals and environment as they were");
CATENA_EXAMINED(i1, "inference", "wrong-rank",
                "refused with \"[function] ...\" before a kernel runs");
CATENA_EXAMINED(i2, "inference", "wrong-shape",
                "refused with \"[function] ...\" before a kernel runs");
CATENA_EXAMINED(i3, "inference", "wrong-dtype",
                "refused with \"[function] ...\" before a kernel runs");
CATENA_EXAMINED(g1, "gradients", "composed", "the composed gradient is that of finite differences");
CATENA_EXAMINED(g2, "gradients", "kernel",
                "backward kernels give what the composition gives, or finite differences");
CATENA_EXAMINED(g3, "gradients", "second-order",
                "the gradient of the gradient is that of finite differences");
CATENA_EXAMINED(g4, "gradients", "targets", "every set of wanted gradients gives the same numbers");
CATENA_EXAMINED(g5, "gradients", "missing", "an output's gradient that did not come is zero");
CATENA_EXAMINED(g6, "gradients", "retained",
                "backward reads the inputs and outputs alone that are declared as retained");
CATENA_EXAMINED(d1, "determinism", "threads", "1, 2 and 3 threads agree");
CATENA_EXAMINED(d2, "determinism", "repeated", "the same call gives the same bits again");

}  // namespace
}  // namespace catena::check
