// Tests of files saved by Chainer 7: models, persistent values and optimizers are loaded from them.
#include <catena/catena.hpp>

#include "temporary.hpp"

using namespace catena;
namespace F = catena::functions;

namespace {

const std::filesystem::path folder = CATENA_TEST_DATA;

struct Net : Chain {
    links::Convolution2D conv{1, 2, 3};
    links::BatchNormalization bn{2, 0.9, 2e-5};
    links::Linear l1{8, 3};
    void visit(Visitor& v) override { v("conv", conv)("bn", bn)("l1", l1); }
    Variable operator()(const Variable& x) override { return l1(F::relu(bn(conv(x)))); }
};
struct Classifier : Chain {
    Net predictor;
    void visit(Visitor& v) override { v("predictor", predictor); }
};

}  // namespace

TEST_CASE("a snapshot of Chainer's trainer, part by part") {
    const auto snapshot = folder / "chainer_snapshot.npz";
    Classifier model;
    optimizers::Adam optimizer;
    optimizer.setup(model);
    load_npz(snapshot, model, "updater/model:main/");
    load_npz(snapshot, optimizer, "updater/optimizer:main/");
    CHECK(optimizer.t() == 5);
    CHECK(optimizer.epoch() == 2);
    optimizer.new_epoch();
    CHECK(optimizer.epoch() == 3);

    const auto values = load_arrays(folder / "chainer_values.npz");
    const using_config testing(&Config::train, false);
    const Variable y = model.predictor(as_variable(values.at("x")));
    gradient_check::assert_allclose(y.data(), values.at("y"), 1e-5, 1e-5);
}

TEST_CASE("what is saved here has Chainer's names") {
    const TemporaryFolder temporary;
    const auto file = temporary.path / "a.npz";
    const auto theirs = load_arrays(folder / "chainer_snapshot.npz", {}, "updater/");
    const auto check = [&](const Visitable& object, const std::string& path) {
        save_npz(file, object);
        for (const auto& [name, array] : load_arrays(file)) {
            INFO(name);
            REQUIRE(theirs.contains(path + name));
            CHECK(theirs.at(path + name).shape() == array.shape());
            CHECK(theirs.at(path + name).dtype() == array.dtype());
        }
        const auto ours = load_arrays(file);
        for (const auto& [name, array] : theirs) {
            INFO(name);
            if (name.starts_with(path)) CHECK(ours.contains(name.substr(path.size())));
        }
    };
    Classifier model;
    optimizers::Adam optimizer;
    optimizer.setup(model);
    check(model, "updater/model:main/");
    check(optimizer, "updater/optimizer:main/");
}

TEST_CASE("a path that nothing begins with") {
    Classifier model;
    contains(error_of<DataError>(
                 [&] { load_npz(folder / "chainer_snapshot.npz", model, "updater/model:other/"); }),
             "expected names with the prefix 'updater/model:other/', got none");
    // If the prefix selects another part of the file, the error names all missing arrays.
    contains(error_of<DataError>([&] {
                 load_npz(folder / "chainer_snapshot.npz", model, "updater/model:main/predictor/");
             }),
             "predictor/conv/W: missing");
}

TEST_CASE("a hierarchical softmax of Chainer's, whose codes have the opposite sign") {
    const WordTree tree{{0, 1}, {2, {3, 4}}};
    const auto values = load_arrays(folder / "chainer_tree_values.npz");
    const Variable x = as_variable(values.at("x")), t = as_variable(values.at("t"));
    const auto near = [&](const Variable& loss) {
        return loss.data().item<double>() ==
               doctest::Approx(values.at("loss").item<double>()).epsilon(1e-6);
    };
    links::BinaryHierarchicalSoftmax loss(3, tree);
    load_npz(folder / "chainer_tree.npz", loss);
    CHECK(near(loss(x, t)));
    // A file saved by catena contains the tree, so its W is loaded unchanged.
    const TemporaryFolder temporary;
    save_npz(temporary.path / "a.npz", loss);
    links::BinaryHierarchicalSoftmax again(3, tree);
    load_npz(temporary.path / "a.npz", again);
    CHECK(near(again(x, t)));
    CHECK(again.W.data().to_vector<float>() == loss.W.data().to_vector<float>());

    // In a net with two such links.
    struct Twice : Chain {
        links::BinaryHierarchicalSoftmax first, second;
        explicit Twice(const links::BinaryHierarchicalSoftmax& link) : first(link), second(link) {}
        void visit(Visitor& v) override { v("first", first)("second", second); }
    } twice(links::BinaryHierarchicalSoftmax(3, tree));
    const Array theirs = load_arrays(folder / "chainer_tree.npz").at("W");
    save_arrays(temporary.path / "b.npz", {{"first/W", theirs}, {"second/W", theirs}});
    load_npz(temporary.path / "b.npz", twice);
    CHECK(near(twice.first(x, t)));
    CHECK(near(twice.second(x, t)));

    // In float64, which is converted.
    save_arrays(temporary.path / "c.npz", {{"first/W", theirs.astype(Dtype::float64)},
                                           {"second/W", theirs.astype(Dtype::float64)}});
    load_npz(temporary.path / "c.npz", twice, {.convert = true});
    CHECK(near(twice.first(x, t)));
    // A rename that drops the tree does not make it a Chainer file: W keeps its sign.
    const auto partial = load_npz(temporary.path / "a.npz", again,
                                  {.rename = [](const std::string& name) -> std::string {
                                       return name == "tree" ? "" : name;
                                   },
                                   .strict = false});
    CHECK(partial.missing == std::vector<std::string>{"tree"});
    CHECK(near(again(x, t)));

    // Chainer's W, renamed, loaded in part, or both; then catena's W, without or with its tree.
    const auto to = [](const std::string& from, const std::string& name) {
        return renaming({{from + "W", name + "W"}, {from + "tree", ""}});
    };
    save_arrays(temporary.path / "d.npz", {{"net/loss.W", theirs}, {"net/b", theirs}});
    const auto fresh = [&](const std::filesystem::path& file, const LoadOptions& options) {
        links::BinaryHierarchicalSoftmax link(3, tree);
        const LoadReport report = load_npz(file, link, options);
        CHECK(near(link(x, t)));
        return report;
    };
    const LoadReport part = fresh(folder / "chainer_tree.npz", {.strict = false});
    CHECK(part.missing.empty());
    CHECK(part.unexpected.empty());
    const LoadReport renamed = fresh(temporary.path / "d.npz",
                                     {.path = "net/", .rename = to("loss.", ""), .strict = false});
    CHECK(renamed.missing.empty());
    CHECK(renamed.unexpected == std::vector<std::string>{"b"});
    fresh(temporary.path / "d.npz",
          {.path = "net/", .rename = renaming({{"loss.W", "W"}, {"b", ""}})});
    save_npz(temporary.path / "e.npz", twice);
    fresh(temporary.path / "e.npz", {.path = "second/", .rename = to("", ""), .strict = false});
    contains(error_of<DataError>([&] {
                 fresh(temporary.path / "e.npz", {.path = "second/", .rename = to("", "")});
             }),
             "tree: missing");
    fresh(temporary.path / "e.npz", {.path = "first/", .strict = false});

    // Refuses another shape.
    links::BinaryHierarchicalSoftmax other(4, tree);
    contains(error_of<DataError>([&] { load_npz(folder / "chainer_tree.npz", other); }),
             "W: expected float32 (4, 4), got float32 (4, 3)");
}

TEST_CASE("the momentum of a hierarchical softmax of Chainer's goes on, negated by the program") {
    const TemporaryFolder temporary;
    const WordTree tree{{0, 1}, {2, {3, 4}}};
    const auto values = load_arrays(folder / "chainer_tree_values.npz");
    const Variable x = as_variable(values.at("x")), t = as_variable(values.at("t"));
    links::BinaryHierarchicalSoftmax loss(3, tree), resumed(3, tree);
    optimizers::MomentumSGD optimizer, again;
    optimizer.setup(loss);
    again.setup(resumed);
    const auto step = [&](auto& link, auto& with) {
        link.cleargrads();
        link(x, t).backward();
        with.update();
    };
    step(loss, optimizer);
    // Negates state and parameters, as Chainer would have saved them.
    save_npz(temporary.path / "o.npz", optimizer);
    auto state = load_arrays(temporary.path / "o.npz");
    state["W/v"] = -state.at("W/v");
    save_arrays(temporary.path / "theirs.npz", state);
    save_arrays(temporary.path / "w.npz", {{"W", -loss.W.data()}});

    state = load_arrays(temporary.path / "theirs.npz");
    state["W/v"] = -state.at("W/v");
    save_arrays(temporary.path / "ours.npz", state);
    load_npz(temporary.path / "w.npz", resumed);
    load_npz(temporary.path / "ours.npz", again);
    step(loss, optimizer);
    step(resumed, again);
    CHECK(resumed.W.data().to_vector<float>() == loss.W.data().to_vector<float>());
}
