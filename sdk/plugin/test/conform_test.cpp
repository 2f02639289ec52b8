// conform() against a function with one fault at a time: it can fail, and says why.
#include <doctest/doctest.h>

#include <catena/testing/check.hpp>
#include <catena/testing/coverage.hpp>

#include "faults.hpp"

using namespace catena::testing;

namespace {

World& world() {
    static World all({BROKEN, MATH_PLUGIN, ARRAY_PLUGIN});
    return all;
}

// The checks that failed, in their order; those that no example reached are none of them.
std::string failed(const Report& report) {
    std::string names;
    for (std::size_t i = 0; i < n_checks; ++i) {
        const Report::Entry& e = report[static_cast<Check>(i)];
        if (e.verdict == Verdict::failed && e.text != "no example reaches it\n")
            names += (names.empty() ? "" : ", ") + std::string(check_infos[i].name);
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
        INFO(fault.function);
        INFO(report.failures());
        CHECK(failed(report) == fault.checks);
    }
}

TEST_CASE("a case with expected outputs tries other shapes, too") {
    const Array x = Array::of<double>({2, 3}, {1, 2, 3, 4, 5, 6});
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

TEST_CASE("a call is looked for where the description has none") {
    const catena_function& f = world().function(name_of(Fault::no_example));
    const Report report = conform(world(), f.name);
    CHECK(report.examples == 0);
    const Example found = parse_example(f, report.found);
    CHECK(text_of(f, found) == report.found);
    CHECK_NOTHROW(make_sample(world(), f, found, 1));
    CHECK(text_of(f, find_example(world(), f).value()) == report.found);  // the same again
}

TEST_CASE("the page: a row for each function, a note for each reason") {
    const Report right = conform(world(), name_of(Fault::none));
    const Report wrong = conform(world(), name_of(Fault::gradient));
    const std::string page = coverage_page({right, wrong});
    CHECK(page.find("| `org.example.right` | 2 | ✓ | ✓ | ✓ |") != std::string::npos);
    CHECK(page.find("| `org.example.gradient` | 2 | ✓ | –1 | ✓ | ✓ | **✗** |") !=
          std::string::npos);
    CHECK(page.find("\n1. one kernel for each row of dtypes\n") != std::string::npos);
}
