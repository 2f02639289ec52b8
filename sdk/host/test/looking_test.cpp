// Tests of graphs, profiles and curves.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>

using namespace catena;
namespace F = catena::functions;

namespace {

struct Net : Chain {
    links::Linear l1{3, 4}, l2{4, 2};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
    Variable operator()(const Variable& x) override { return l2(F::relu(l1(x))); }
};

}  // namespace

TEST_CASE("a graph has every call and variable once, in order") {
    Net net;
    const Variable x(Array::ones({5, 3}));
    x.set_name("input \"x\"");
    const Variable y = net(x);
    const Variable loss = F::sum(y + y);
    const ComputationalGraph graph = build_computational_graph({loss, y}, &net);
    std::vector<std::string> calls, variables;
    for (const auto& node : graph.nodes) (node.is_call ? calls : variables).push_back(node.label);
    CHECK(calls == std::vector<std::string>{"catena.linear", "catena.relu", "catena.linear",
                                            "catena.add", "catena.sum"});
    CHECK(variables.size() == 10);
    CHECK(std::ranges::count(variables, "l1/W (4, 3) float32") == 1);
    CHECK(std::ranges::count(variables, "input \"x\" (5, 3) float32") == 1);
    CHECK(graph.edges.size() == 3 + 1 + 1 + 1 + 3 + 1 + 2 + 1 + 1 + 1);
    for (const auto& [from, to] : graph.edges)
        CHECK(graph.nodes[from].rank <= graph.nodes[to].rank);
    const std::string dot = graph.to_dot();
    CHECK(dot.starts_with("digraph {"));
    CHECK(dot.find("input \\\"x\\\" (5, 3) float32") != dot.npos);
    CHECK(build_computational_graph({x}).nodes.size() == 1);
    CHECK(build_computational_graph(std::span<const Variable>()).nodes.empty());
}

TEST_CASE("graphs of functions of one's own, and deep ones") {
    struct Twice : FunctionNode {
        std::vector<Array> forward(std::span<const Array> x) override { return {x[0] + x[0]}; }
        std::vector<Variable> backward(std::span<const std::size_t>,
                                       std::span<const Variable> gy) override {
            return {gy[0] + gy[0]};
        }
    };
    Variable y(Array::ones({1}));
    for (int i = 0; i < 20000; ++i) y = apply<Twice>({y})[0];
    const ComputationalGraph graph = build_computational_graph({y});
    CHECK(graph.nodes.size() == 40001);
    CHECK(graph.nodes[1].label.find("Twice") != std::string::npos);
}

TEST_CASE("a composition is a group of its parts: in graphs, profiles and traces") {
    const TemporaryFolder folder;
    const Variable x(Array::ones({2, 3})), t(Array::zeros({2, 3}));
    const Profile profile;
    const Variable loss = F::sum(F::huber_loss(x, t, 1.0));
    loss.backward();
    const ComputationalGraph graph = build_computational_graph({loss});
    REQUIRE(!graph.groups.empty());
    CHECK(graph.groups[0].label == "catena.huber_loss");
    CHECK(!graph.groups[0].outer);
    const auto is_alone = [](const auto& node) { return node.is_call && !node.group; };
    CHECK(std::ranges::count_if(graph.nodes, is_alone) == 1);  // F::sum
    const std::string dot = graph.to_dot();
    CHECK(dot.find("subgraph cluster_0 {\n  label=\"catena.huber_loss\";\n") != dot.npos);
    double parts = 0;
    for (const Profile::Row& row : profile.rows()) {
        CAPTURE(row.function);
        if (row.group == "catena.huber_loss") parts += row.seconds;
    }
    CHECK(parts > 0);
    CHECK(profile.table().find("\ncatena.huber_loss ") != std::string::npos);
    CHECK(profile.table().find("\n  catena.") != std::string::npos);
    const auto file = folder.path / "trace.json";
    profile.write_trace(file);
    std::ifstream text(file);
    int groups = 0;
    const auto trace = nlohmann::json::parse(text);
    for (const auto& event : trace["traceEvents"])
        groups += event.value("name", "") == "catena.huber_loss forward";
    CHECK(groups == 1);
}

TEST_CASE("a trace has a span for each call of a composition") {
    const TemporaryFolder folder;
    const Array x = Array::ones({2, 3});
    Profile profile;
    for (int i = 0; i < 2; ++i) F::huber_loss(x, x, 1, "no");
    F::squared_error(x, x);
    profile.write_trace(folder.path / "trace.json");
    std::ifstream text(folder.path / "trace.json");
    std::map<std::string, int> spans;
    const auto trace = nlohmann::json::parse(text);
    for (const auto& event : trace["traceEvents"])
        if (event.value("cat", "") == "composition") ++spans[event["name"]];
    CHECK(spans == std::map<std::string, int>{{"catena.huber_loss forward", 2},
                                              {"catena.squared_error forward", 1}});
}

TEST_CASE("graphs are saved as texts and pictures") {
    const TemporaryFolder folder;
    Net net;
    const auto graph = build_computational_graph({net(Variable(Array::ones({1, 3})))}, &net);
    graph.save(folder.path / "a.dot");
    CHECK(read_file(folder.path / "a.dot") == graph.to_dot());
    contains(error_of<DataError>([&] { graph.save(folder.path / "a.bmp"); }),
             "expected a name that ends in");
    if (std::system("command -v dot >/dev/null") == 0) {
        graph.save(folder.path / "a.svg");
        contains(read_file(folder.path / "a.svg"), "l1/W (4, 3) float32");
        CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 2);
    }
    const std::string path = std::getenv("PATH");
    setenv("PATH", folder.path.c_str(), 1);
    contains(
        error_of<DataError>([&] { ComputationalGraph::require_savable(folder.path / "a.svg"); }),
        "expected the program dot");
    setenv("PATH", path.c_str(), 1);
}

TEST_CASE("a profile counts every kernel") {
    Net net;
    optimizers::SGD optimizer(0.1);
    optimizer.setup(net);
    const Variable x(Array::ones({5, 3}));
    const auto step = [&] {
        optimizer.cleargrads();
        F::sum(net(x)).backward();
        optimizer.update();
    };
    step();
    const TemporaryFolder folder;
    {
        const auto parameters = static_cast<std::uint64_t>(net.count_parameters());
        const Profile profile;
        CHECK_THROWS_AS(Profile(), InvalidError);
        for (int i = 0; i < 7; ++i) step();
        std::map<std::string, Profile::Row> rows;
        for (const auto& row : profile.rows()) rows[row.function + " " + row.direction] = row;
        CHECK(rows.at("catena.linear forward").calls == 14);
        CHECK(rows.at("catena.linear backward").calls == 14);
        CHECK(rows.at("catena.relu forward").calls == 7);
        CHECK(rows.at("catena.sgd_update forward").calls == 28);
        CHECK(rows.at("catena.linear forward").bytes == 7 * (5 * 4 + 5 * 2) * 4);
        CHECK(rows.at("catena.relu backward").bytes == 7 * 5 * 4 * 4);
        // For functions that update parameters in place, bytes counts the updated elements.
        CHECK(rows.at("catena.sgd_update forward").bytes == 7 * sizeof(float) * parameters);
        CHECK(rows.at("catena.linear forward").kernel.starts_with("org.catena.connection"));
        for (const auto& [name, row] : rows) {
            CHECK(row.seconds > 0);
            CHECK(row.longest <= row.seconds);
            CHECK(row.memory >= sizeof(float) * parameters);
        }
        const std::string table = profile.table(2);
        contains(table, "catena.linear");
        contains(table, " others");
        profile.write_trace(folder.path / "trace.json");
        const auto trace = nlohmann::json::parse(read_file(folder.path / "trace.json"));
        int complete = 0;
        for (const auto& event : trace["traceEvents"]) {
            if (event["ph"] != "X") continue;
            ++complete;
            CHECK(event["dur"].get<double>() >= 0);
        }
        std::int64_t calls = 0;
        for (const auto& [name, row] : rows) calls += row.calls;
        CHECK(complete == calls);
    }
    step();
    const Profile after;
    CHECK(after.rows().empty());
    contains(after.table(), "kernels: 0.000 s");
}

TEST_CASE("a profile shows kernels from formulas by their names") {
    const Array x = Array::ones({1000}), y = Array::ones({1000});
    const auto muladd = elementwise("T x, T y", "T z", "z = x * y + 1", "profiled_muladd");
    const auto total = reduction("T x", "T y", "x", "a + b", "", "0", "profiled_sum");
    (void)muladd(x, y);
    {
        const Profile profile;
        for (int i = 0; i < 5; ++i) (void)muladd(x, y);
        (void)total(x);
        F::sum(ElementwiseFunction({"T x", "T y", "y = x * x", "profiled_square"},
                                   {"T x, T gy", "T gx", "gx = 2 * x * gy"})(Variable(x)))
            .backward();
        std::map<std::string, Profile::Row> rows;
        for (const auto& row : profile.rows()) rows[row.function] = row;
        REQUIRE(rows.contains("profiled_muladd"));
        CHECK(rows.at("profiled_muladd").calls == 5);
        CHECK(rows.at("profiled_muladd").kernel == "formula");
        CHECK(rows.at("profiled_muladd").bytes == 5 * 4000);
        CHECK(rows.at("profiled_muladd").seconds > 0);
        CHECK(rows.at("profiled_muladd").device == "cpu:0");
        CHECK(rows.at("profiled_sum").calls == 1);
        CHECK(rows.at("profiled_square").calls == 1);
        CHECK(rows.at("profiled_square_grad").calls == 1);
        contains(profile.table(), "profiled_muladd ");
        const TemporaryFolder folder;
        profile.write_trace(folder.path / "trace.json");
        contains(read_file(folder.path / "trace.json"), "\"name\":\"profiled_muladd forward\"");
    }
    (void)muladd(x, y);  // without a Profile
}

TEST_CASE("curves: tables that are whole at any time, and go on") {
    const TemporaryFolder folder;
    for (const char* name : {"a.csv", "a.jsonl"}) {
        const auto file = folder.path / name;
        {
            Curves curves({"epoch", "train loss", "test loss"}, file);
            curves.add({1, 0.5, 0.25});
            curves.add({2, 0.4, NAN});
            curves.add({3, 0.1, 1e-7});
            CHECK_THROWS_AS(curves.add({1}), ShapeError);
        }
        Curves again({"epoch", "train loss", "test loss"}, file);
        again.resume(2);
        REQUIRE(again.rows().size() == 2);
        CHECK(again.rows()[0] == std::vector<double>{1, 0.5, 0.25});
        CHECK(std::isnan(again.rows()[1][2]));
        again.add({3, 0.2, 0.3});
        again.resume(99);
        CHECK(again.rows().size() == 3);
        Curves other({"epoch", "accuracy"}, file);
        CHECK_THROWS_AS(other.resume(3), DataError);
    }
    CHECK(read_file(folder.path / "a.csv") ==
          "epoch,train loss,test loss\n1,0.5,0.25\n2,0.4,\n3,0.2,0.3\n");
    write_file(folder.path / "a.csv", "epoch,train loss,test loss\n1,x,2\n");
    Curves broken({"epoch", "train loss", "test loss"}, folder.path / "a.csv");
    CHECK_THROWS_AS(broken.resume(9), DataError);
    write_file(folder.path / "a.jsonl", R"({"epoch":)" + std::string(1'000'000, '[') + "\n");
    Curves deep({"epoch", "train loss", "test loss"}, folder.path / "a.jsonl");
    CHECK(error_of<DataError>([&] { deep.resume(9); }).size() < 500);
    CHECK_THROWS_AS(Curves({"epoch"}, ""), InvalidError);
    for (const char* name : {"a,b", "\"a\"", "a\nb", "", "epoch", "\xe9"})
        CHECK_THROWS_AS(Curves({"epoch", name}, ""), InvalidError);
    CHECK_THROWS_AS(Curves({"a", "b"}, folder.path / "a.txt"), DataError);
    CHECK_THROWS_AS(Curves({"a", "b"}, "", folder.path / "a.png"), DataError);
}

TEST_CASE("plots: one number alone, of any size") {
    for (const double value : {1e20, -1e20, 1e300, -1e308, 1e-300, 0.0, 12345678.0}) {
        CAPTURE(value);
        Curves curves({"epoch", "loss"}, "");
        curves.add({1, value});
        const std::string svg = curves.to_svg();
        CHECK(svg.find("nan") == svg.npos);
        CHECK(svg.find("inf") == svg.npos);
        CHECK(svg.size() < 20000);
    }
}

TEST_CASE("plots: titles and names of lines do not overlap") {
    std::vector<std::string> columns = {"epoch"};
    for (const char* quantity : {"accuracy", "loss", "s"}) {
        for (const char* of : {"the training images", "the first validation set", "x", "y", "z"})
            columns.push_back(std::string(of) + " " + quantity);
    }
    columns.push_back("one that is wider than the whole plot and has to be narrowed to fit loss");
    Curves curves(columns, "");
    std::vector<double> row(columns.size(), 1);
    curves.add(row);
    const std::string svg = curves.to_svg();
    struct Box {
        double x, y, width;
    };
    std::vector<Box> boxes;
    const std::regex text(
        R"re(<text x="([\d.]+)" y="([\d.]+)" (font-weight|fill)="[^"]*"([^>]*)>([^<]*)<)re");
    for (std::sregex_iterator at(svg.begin(), svg.end(), text), end; at != end; ++at) {
        const std::smatch& found = *at;
        const std::string narrowed = found[4];
        const double length = 6.5 * static_cast<double>(found[5].length());  // of a usual font
        boxes.push_back({std::stod(found[1]), std::stod(found[2]),
                         narrowed.empty() ? length : std::stod(narrowed.substr(13))});
    }
    REQUIRE(boxes.size() == 3 + columns.size() - 1);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        CHECK(boxes[i].width > 0);
        CHECK(boxes[i].width < 350);
        for (std::size_t j = 0; j < i; ++j) {
            const bool apart = std::abs(boxes[i].y - boxes[j].y) >= 12 ||
                               boxes[i].x > boxes[j].x + boxes[j].width ||
                               boxes[j].x > boxes[i].x + boxes[i].width;
            CHECK(apart);
        }
    }
}

TEST_CASE("plots: a panel for each quantity, whatever the numbers") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.svg";
    Curves curves({"epoch", "train loss", "test loss", "a<b accuracy"}, "", file);
    for (const double value : {0.0, 0.0, -5.0, 1e-30, 1e30, double(NAN), double(INFINITY), 3.0}) {
        curves.add({static_cast<double>(curves.rows().size()), value, 1, value});
        const std::string svg = read_file(file);
        contains(svg, ">loss</text>");
        contains(svg, "a&lt;b accuracy");
        CHECK(svg.find("nan") == svg.npos);
        CHECK(svg.find("inf") == svg.npos);
    }
}
