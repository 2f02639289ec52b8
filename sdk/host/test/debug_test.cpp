// Tests of debug mode with user-defined functions: which forward or backward made a NaN, and where.
#include "nodes.hpp"

#include <cmath>

namespace {

struct LogForward : FunctionNode {
    Arrays forward(ArraySpan x) override { return {F::log(x[0])}; }
};
struct LogBackward : FunctionNode {
    Arrays forward(ArraySpan x) override { return {x[0] * 1}; }
    Variables backward(Targets, VariableSpan gy) override { return {F::log(-gy[0])}; }
};
struct OldLog : Function<OldLog> {
    Arrays forward(ArraySpan x) override { return {F::log(x[0])}; }
};
struct Outer : FunctionNode {
    Arrays forward(ArraySpan x) override { return {apply<LogForward>({Variable(x[0])})[0].data()}; }
};

}  // namespace

// Not in a namespace, so that the names of stack frames begin with the functions' names.
[[gnu::noinline]] Variable in_sight(const Variable& x) {
    const Variable y = apply<LogForward>({x})[0];
    return y + 1;
}

TEST_CASE("NaN from within a node's forward names the node") {
    const Variable x = var({-1, 2});
    CHECK_NOTHROW(in_sight(x));
    const using_config debug(&Config::debug, true);
    CHECK_NOTHROW(in_sight(var({1, 2})));
    const std::string text = error_of<NanError>([&] { in_sight(x); });
    INFO(text);
    CHECK(
        text.starts_with("[catena.log] forward: y: expected numbers, got NaN in 1 of 2 elements; "
                         "the call was made at\n  "));
    CHECK(text.ends_with("\nin the forward of LogForward"));
    contains(text, "LogForward::forward(");
    contains(text, "\n  in_sight(catena::Variable const&)");
    contains(error_of<ValueError>([&] { OldLog()(x); }), "\nin the forward of OldLog");
    // Other errors are passed on unchanged.
    CHECK(error_of<InvalidError>([&] { apply<MulAdd>({x}); }) ==
          "[MulAdd] unpack: expected 3, got 1");
}

TEST_CASE("nodes within nodes are named from the inside out") {
    const using_config debug(&Config::debug, true);
    contains(error_of<NanError>([&] { apply<Outer>({var({-1})}); }),
             "\nin the forward of LogForward\nin the forward of Outer");
    const Variable x = var({2});
    const Variable y = apply<LogBackward>({x})[0];
    contains(error_of<NanError>([&] { y.backward(); }), "\nin the backward of LogBackward");
}

TEST_CASE("the place of a call shows the program's frames alone") {
    const using_config debug(&Config::debug, true);
    const Variable x = var({-1});
    for (const std::string& text :
         {error_of<ValueError>([&] { in_sight(x); }), in_sight(var({1})).creator()->created_at()}) {
        INFO(text);
        contains(text, "in_sight(");
        CHECK(text.find("libcatena-") == text.npos);
        CHECK(text.find("UserCall") == text.npos);
        CHECK(text.find("catena::FunctionNode::apply") == text.npos);
        CHECK(text.find(" catena::apply<") == text.npos);
    }
}
