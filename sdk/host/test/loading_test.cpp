// Tests of loading files whose names or dtypes differ from the object's.
#include <catena/array_file.hpp>
#include <catena/data_error.hpp>
#include <catena/links.hpp>
#include <catena/serializer.hpp>

#include "temporary.hpp"

using namespace catena;

namespace {

struct Net : Chain {
    links::Linear l1{3, 4}, l2{4, 2};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
    Variable operator()(const Variable& x) override { return l2(l1(x)); }
};

using Names = std::vector<std::string>;
using Values = std::vector<float>;

Values values(const Variable& x) { return x.data().to_vector<float>(); }

// Returns the net's values under PyTorch's names, and one more array.
std::map<std::string, Array> foreign(const Net& net, Dtype dtype = Dtype::float32) {
    return {{"fc1.weight", net.l1.W.data().astype(dtype)},
            {"fc1.bias", net.l1.b.data().astype(dtype)},
            {"fc2.weight", net.l2.W.data().astype(dtype)},
            {"fc2.bias", net.l2.b.data().astype(dtype)},
            {"steps", Array::from<std::int64_t>({7}, {})}};
}

const std::map<std::string, std::string> table = {
    {"fc1.weight", "l1/W"}, {"fc1.bias", "l1/b"}, {"fc2.weight", "l2/W"}, {"fc2.bias", "l2/b"}};

}  // namespace

TEST_CASE("names of another framework, by a table or a function") {
    const TemporaryFolder folder;
    for (const char* name : {"a.safetensors", "a.npz"}) {
        const auto file = folder.path / name;
        const Net net;
        save_arrays(file, foreign(net));
        Net other;
        const Values before = values(other.l1.W);
        const std::string text = error_of<DataError>([&] { load_snapshot(file, other); });
        for (const char* part : {"l1/W: missing", "fc1.weight: not expected",
                                 "LoadOptions{.rename = ...}", "{.strict = false}"})
            contains(text, part);
        contains(
            error_of<DataError>([&] { load_snapshot(file, other, {.rename = renaming(table)}); }),
            "got:\n  steps: not expected");
        CHECK(values(other.l1.W) == before);
        auto without = table;
        without["steps"] = "";
        const LoadReport all = load_snapshot(file, other, {.rename = renaming(without)});
        CHECK(all.missing.empty());
        CHECK(all.unexpected.empty());
        CHECK(values(other.l1.W) == values(net.l1.W));
        CHECK(values(other.l2.b) == values(net.l2.b));
        Net third;
        load_snapshot(file, third, {.rename = [](const std::string& full) -> std::string {
                          if (!full.starts_with("fc")) return "";
                          return "l" + full.substr(2, 1) + (full.ends_with("weight") ? "/W" : "/b");
                      }});
        CHECK(values(third.l2.W) == values(net.l2.W));
        contains(error_of<InvalidError>([&] {
                     load_snapshot(file, third,
                                   {.rename = [](const std::string&) { return "l1/W"; }});
                 }),
                 "expected a name for each array, got l1/W twice");
        links::Linear part(3, 4);
        load_snapshot(file, part,
                      {.path = "fc1.", .rename = renaming({{"weight", "W"}, {"bias", "b"}})});
        CHECK(values(part.W) == values(net.l1.W));
    }
}

TEST_CASE("what fits is loaded, and the rest is told") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    const Net net;
    save_arrays(file, foreign(net));
    Net other;
    const Values before = values(other.l2.W);
    const LoadReport report = load_npz(
        file, other,
        {.rename = renaming({{"fc1.weight", "l1/W"}, {"fc1.bias", "l1/b"}}), .strict = false});
    CHECK(report.missing == Names{"l2/W", "l2/b"});
    CHECK(report.unexpected == Names{"fc2.bias", "fc2.weight", "steps"});
    CHECK(values(other.l1.W) == values(net.l1.W));
    CHECK(values(other.l2.W) == before);
    // A wrong shape is still an error, and nothing is changed.
    Net third;
    const Values own = values(third.l1.W);
    contains(error_of<DataError>([&] {
                 load_npz(file, third,
                          {.rename = renaming({{"fc1.weight", "l1/W"}, {"fc2.bias", "l1/b"}}),
                           .strict = false});
             }),
             "l1/b: expected float32 (4,), got float32 (2,)");
    CHECK(values(third.l1.W) == own);

    struct State : Visitable {
        std::int64_t count = 3;
        double rate = 0.5;
        void visit(Visitor& v) override { v("count", count)("rate", rate).require("version", 2); }
    } state, saved;
    saved.count = 9;
    struct Part : Visitable {
        State& whole;
        explicit Part(State& s) : whole(s) {}
        void visit(Visitor& v) override { v("count", whole.count); }
    } part(saved);
    save_npz(file, part);
    CHECK(load_npz(file, state, {.strict = false}).missing == Names{"rate", "version"});
    CHECK(state.count == 9);
    CHECK(state.rate == 0.5);
    struct Newer : Visitable {
        void visit(Visitor& v) override { v.require("count", 10); }
    } newer;
    contains(error_of<DataError>([&] { load_npz(file, newer, {.strict = false}); }),
             "count: expected 10, got 9");
}

TEST_CASE("dtypes are converted where that is asked for") {
    const TemporaryFolder folder;
    const Net net;
    for (const char* name : {"a.safetensors", "a.npz"}) {
        const auto file = folder.path / name;
        const LoadOptions renamed{.rename = renaming(table), .strict = false};
        LoadOptions converting = renamed;
        converting.convert = true;
        for (const Dtype dtype : {Dtype::bfloat16, Dtype::float16, Dtype::float64}) {
            save_arrays(file, foreign(net, dtype));
            Net other;
            const std::string text =
                error_of<DataError>([&] { load_snapshot(file, other, renamed); });
            contains(text, "l1/W: expected float32 (4, 3), got " +
                               std::string(catena::name(dtype)) + " (4, 3)");
            contains(text, "LoadOptions{.convert = true}");
            load_snapshot(file, other, converting);
            CHECK(other.l1.W.dtype() == Dtype::float32);
            CHECK(values(other.l1.W) == net.l1.W.data().astype(dtype).to_vector<float>());
            CHECK(values(other.l2.b) == net.l2.b.data().astype(dtype).to_vector<float>());
        }
    }
    // Converts integers whose values fit, but not integers to floats.
    const auto file = folder.path / "b.npz";
    struct Ids : Visitable {
        Array ids = Array::zeros({2}, Dtype::int32);
        void visit(Visitor& v) override { v("ids", ids); }
    } ids;
    save_arrays(file, {{"ids", Array::from<std::int64_t>({-5, 70000}, {2})}});
    load_npz(file, ids, {.convert = true});
    CHECK(ids.ids.to_vector<int>() == std::vector<int>{-5, 70000});
    save_arrays(file, {{"ids", Array::from<std::int64_t>({1, std::int64_t{1} << 40}, {2})}});
    contains(error_of<DataError>([&] { load_npz(file, ids, {.convert = true}); }),
             "ids: expected int32 (2,), got int64 (2,)");
    save_arrays(file, {{"ids", Array::from<float>({1, 2}, {2})}});
    contains(error_of<DataError>([&] { load_npz(file, ids, {.convert = true}); }),
             "ids: expected int32 (2,), got float32 (2,)");
    CHECK(ids.ids.to_vector<int>() == std::vector<int>{-5, 70000});
}
