// Tests conform() with functions that have one fault each: it must fail, and give the reason.
#include <doctest/doctest.h>

#include <catena/testing/conform.hpp>
#include <catena/testing/sample.hpp>

#include "faults.hpp"

using namespace catena::testing;

namespace {

World& world() {
    static World all({BROKEN, MATH_PLUGIN, ARRAY_PLUGIN});
    return all;
}

// Returns the failed checks in their order, without those that no example reaches.
std::string failed(const Report& report) {
    std::string names;
    for (std::size_t i = 0; i < n_checks; ++i) {
        const Report::Entry& e = report[static_cast<Check>(i)];
        if (e.verdict == Verdict::failed && e.text != "no example reaches it\n")
            names += (names.empty() ? "" : ", ") + std::string(check_infos[i].name);
    }
    return names;
}

// Returns the failed checks that do not fail if they run alone.
std::string not_found_alone(const Report& all) {
    std::string names;
    if (all.examples == 0) return names;  // the search for a call is slow
    const auto fails = [&](std::size_t i) {
        Settings settings;
        settings.only = static_cast<Check>(i);
        return conform(world(), all.function(), settings).failed(*settings.only);
    };
    for (std::size_t i = 0; i < n_checks; ++i) {
        if (!all.failed(static_cast<Check>(i))) continue;
        bool found = fails(i);
        // The check whose calls write out of bounds reports the failure of Check::guard.
        if (static_cast<Check>(i) == Check::guard)
            for (std::size_t k = 0; k < n_checks && !found; ++k) found = fails(k);
        if (!found) names += std::string(check_infos[i].name) + " ";
    }
    return names;
}

}  // namespace

TEST_CASE("each fault is found, by the checks that should; none where there is none") {
    for (const FaultInfo& fault : faults) {
        if (fault.function == std::string(name_of(Fault::isa)) &&
            world().isas(fault.function).size() < 2)
            continue;
        const Report report = conform(world(), fault.function);
        INFO(std::string(fault.function));
        INFO(report.failures());
        CHECK(failed(report) == std::string(fault.checks));
        CHECK(not_found_alone(report) == "");
    }
}

TEST_CASE("one check by itself says what it says among the others") {
    Settings settings;
    settings.large = false;  // large shapes are slow
    const Report right = conform(world(), name_of(Fault::none), settings);
    for (std::size_t i = 0; i < n_checks; ++i) {
        settings.only = static_cast<Check>(i);
        const Report alone = conform(world(), name_of(Fault::none), settings);
        INFO(check_infos[i].name);
        CHECK(alone[*settings.only].verdict == right[*settings.only].verdict);
        CHECK(alone[*settings.only].text == right[*settings.only].text);
        CHECK(alone.failures() == "");
    }
}

TEST_CASE("what is left out is not called, and not praised") {
    Settings settings;
    settings.gradients = false;
    const Report forward = conform(world(), name_of(Fault::gradient), settings);
    CHECK(forward.failures() == "");
    CHECK(forward[Check::layout].verdict == Verdict::passed);
    CHECK(forward[Check::gradient].verdict == Verdict::not_applicable);
    settings.gradients = true;
    settings.large = false;
    const Report small = conform(world(), name_of(Fault::none), settings);
    CHECK(small[Check::gradient].verdict == Verdict::passed);
    CHECK(small.failures() == "");
    CHECK(small[Check::threads].verdict == Verdict::not_applicable);
    CHECK(small[Check::reached].verdict == Verdict::not_applicable);
}

TEST_CASE("a case with expected outputs tries other shapes, too") {
    const Array x = Array::from<double>({1, 2, 3, 4, 5, 6}, {2, 3});
    const auto problems = [&](const char* function, std::vector<Array> expected) {
        return check(world(),
                     {.function = function, .inputs = {x, x, x}, .expected = std::move(expected)});
    };
    const char* size_one = name_of(Fault::size_one);
    CHECK(problems(size_one, {}) == "");
    const std::vector<Array> y = world().forward(size_one, {x, x, x});
    const std::string text = problems(size_one, y);
    INFO(text);
    CHECK(text.find("size_one: size 1: ") != std::string::npos);
    CHECK(problems(name_of(Fault::none), world().forward(name_of(Fault::none), {x, x, x})) == "");
}

TEST_CASE("a call with too few or too many inputs is refused, in a host's words") {
    const Array x = Array::from<double>({1, 2}, {2});
    const char* right = name_of(Fault::none);
    const auto refusal = [&](std::vector<Array> inputs) {
        std::string texts[2];
        texts[0] = check(world(), {.function = right, .inputs = inputs});
        try {
            world().forward(right, inputs);
        } catch (const Failure& failure) {
            texts[1] = failure.what();
        }
        CHECK(texts[0] == "org.example.right: example: " + texts[1] + "\n");
        return texts[1];
    };
    CHECK(refusal({}) == "[org.example.right] inputs: expected 3, got 0");
    CHECK(refusal({x, x, x, x}) == "[org.example.right] inputs: expected 3, got 4");
    CHECK(refusal({x, Array(), x}) == "[org.example.right] b: expected an array, got none");
    CHECK_THROWS_WITH(world().infer(right, {x.meta()}),
                      "[org.example.right] inputs: expected 3, got 1");
    CHECK_THROWS_WITH(world().gradient(right, {x}, {x, x}, {x, x}),
                      "[org.example.right] inputs: expected 3, got 1");
    CHECK_THROWS_WITH(world().backward(right, {x}, {x, x}, {x, x}),
                      "[org.example.right] inputs: expected 3, got 1");
}

TEST_CASE("a case may have its floats in any width") {
    const Array x = Array::from<float>({3, 4}, {2});
    CHECK(check(world(), {.function = name_of(Fault::none), .inputs = {x, x, x}}) == "");
    CHECK(check(world(), {.function = "catena.exp", .inputs = {x}}) == "");
}

TEST_CASE("numbers that differ are told with digits in which they do") {
    const Array a = Array::from<double>({2.154192651234567}, {1});
    const Array b = Array::from<double>({2.154192651234568}, {1});
    const std::string text = compare(a, b, {0, 0});
    CHECK(text == "element 0: expected 2.1541926512345682, got 2.1541926512345668");
    CHECK(compare(Array::from<double>({3}, {1}), a, {0, 0}) ==
          "element 0: expected 2.15419265, got 3");
}

TEST_CASE("choices and truths that no example has are tried as well") {
    const std::string text = conform(world(), name_of(Fault::choice)).failures();
    INFO(text);
    CHECK(text.find(" of \"a=(2,3) b=(2,3) c=(2,3) mode=\"two\"\": ") != std::string::npos);
    const std::string other = conform(world(), name_of(Fault::truth)).failures();
    INFO(other);
    CHECK(other.find(" of \"a=(2,3) b=(2,3) c=(2,3) neg=true\": ") != std::string::npos);
}

TEST_CASE("writing out of bounds: which kernel, which output, where; and nothing that follows") {
    const std::string text = conform(world(), name_of(Fault::write_beside)).failures();
    INFO(text);
    CHECK(text.find("guard: \"a=(2,3) b=(2,3) c=(2,3)\": forward float64 '") != std::string::npos);
    CHECK(text.find("of org.example.broken: output y: written out of bounds: bytes 1 to 8 "
                    "behind its end\n") != std::string::npos);
    CHECK(text.find("no example reaches") == std::string::npos);
}

TEST_CASE("kernels that no example reaches") {
    const Report row = conform(world(), name_of(Fault::row));
    CHECK(row[Check::reached].text ==
          "no example reaches forward int32 '' of org.example.broken: [org.example.row] a.dtype: "
          "expected a float, got another\n");
    // A plugin with kernels for functions of other plugins cannot write examples.
    World with_declining(DECLINES);
    const Report declines = conform(with_declining, "catena.relu");
    CHECK(declines.failures() == "");
    CHECK(declines[Check::reached].verdict == Verdict::not_applicable);
    CHECK(
        declines.skipped.contains("skipped: no call that was tried is taken by forward float32 "
                                  "'' of org.example.declines"));
    const Report elsewhere = conform(with_declining, "catena.tanh");
    CHECK(elsewhere.failures() == "");
    CHECK(elsewhere[Check::dtypes].verdict == Verdict::not_applicable);
    CHECK(elsewhere.skipped.contains("skipped: no device nowhere: no plugin here has its backend"));
}

TEST_CASE("a call is looked for where the description has none") {
    const catena_function& f = world().function(name_of(Fault::no_example));
    const Report report = conform(world(), f.name);
    CHECK(report.examples == 0);
    const Example found = parse_example(f, report.found);
    CHECK(text_of(f, found) == report.found);
    CHECK_NOTHROW(make_sample(world(), f, found, 1));
    CHECK(text_of(f, find_example(world(), f).value()) == report.found);  // deterministic
}

TEST_CASE("conform() of a world has a report for each function under test") {
    World all({MATH_PLUGIN});
    Settings settings;
    settings.only = Check::example;
    const Reports right = conform(all, settings);
    CHECK(right.size() == all.names().size());
    CHECK(right.size() > 10);
    CHECK(right.failures() == "");

    const Reports wrong = conform(world(), settings);
    CHECK(wrong.size() == world().names().size());
    std::string expected;
    for (const std::string& name : world().names())
        expected += conform(world(), name, settings).failures();
    CHECK(wrong.failures() == expected);
    CHECK(wrong.failures() != "");
    CHECK(Reports().failures() == "expected a function in the plugins to test, got none\n");
}

TEST_CASE("copies of an array do not see what is written to it") {
    Array a = Array::from<double>({1, 2}, {2});
    Array b = a;
    b.set(0, 5);
    CHECK(a.at(0) == 1);
    double* const elements = a.data<double>();
    const Array c = a;  // while a pointer is in use
    elements[0] = 7;
    CHECK(c.at(0) == 1);
    CHECK(a.at(0) == 7);
    const catena_tensor t = b.tensor();
    const Array d = b;
    static_cast<double*>(t.dl.data)[t.dl.byte_offset / sizeof(double) + 1] = 9;
    CHECK(d.at(1) == 2);
    CHECK(b.at(1) == 9);
    b.settle();
    const Array e = b;
    CHECK(std::as_const(b).data<double>() == e.data<double>());
    CHECK(e.intact());
}

TEST_CASE("arrays take values and shape in the order of catena::Array") {
    CHECK(Array::from<float>({1, 2, 3}, {3, 1}) == Array::from<float>({1, 2, 3}, {3, 1}));
    CHECK(Array::from<std::int64_t>({4, 5}, {2}) == Array::from<std::int64_t>({4, 5}, {2}));
    CHECK_THROWS_AS(Array::from<float>({1, 2}, {3}), std::logic_error);
}
