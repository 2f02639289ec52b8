// Tests of the saved state of every optimizer: exact resumption, refusal of unsuitable state.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <functional>
#include <memory>

using namespace catena;

namespace {

struct Model : Link {
    Parameter w;
    Parameter b{Array::from({0.5, -0.25}, {2})};  // float64
    Parameter idle{Array::ones({3})};             // never has a gradient
    explicit Model(std::int64_t n = 37) {
        std::vector<double> v(static_cast<std::size_t>(n));
        Generator(5).normal(v);
        w = Parameter(Array::from(v, {n}).astype(Dtype::float32));
    }
    void visit(Visitor& v) override { v("w", w)("b", b)("idle", idle); }
    std::vector<double> values() const {
        auto all = w.data().to_vector<double>();
        for (const double v : b.data().to_vector<double>()) all.push_back(v);
        return all;
    }
};

// Takes steps with different gradients.
void learn(Model& model, Optimizer& optimizer, int steps) {
    for (int i = 0; i < steps; ++i) {
        Generator generator(static_cast<std::uint64_t>(optimizer.t()) + 100);
        std::vector<double> v(static_cast<std::size_t>(model.w.size()));
        generator.normal(v);
        const Device device = model.w.device();
        model.w.set_grad(Array::from(v, model.w.shape(), device).astype(Dtype::float32));
        model.b.set_grad(Array::from({v[0], v[1]}, {2}, device));
        optimizer.update();
    }
}

// An optimizer with an update rule on arrays. Of its two states, one has another shape than param.
class OnArrays : public Optimizer {
public:
    explicit OnArrays(double rate) : Optimizer({"v", "steps"}), lr(rate) {}
    double lr;

private:
    std::vector<Array> init_state(const Array& param) override {
        return {Array::zeros(param.shape(), param.dtype()), Array::zeros({}, param.dtype())};
    }
    void update_one(Array& param, const Array& grad, std::span<Array> state) override {
        state[1] = state[1] + 1;
        state[0] = 0.9 * state[0] - lr * grad / state[1];
        param += state[0];
    }
};

struct Kind {
    std::string name;
    std::function<std::unique_ptr<Optimizer>()> make;
    bool has_state = true;
};

template <class O, class... A>
Kind kind(const char* name, bool has_state, A... arguments) {
    return {name, [=] { return std::make_unique<O>(arguments...); }, has_state};
}

const std::vector<Kind> kinds{
    kind<optimizers::SGD>("SGD", false, 0.1),
    kind<optimizers::MomentumSGD>("MomentumSGD", true, 0.1),
    kind<optimizers::AdaGrad>("AdaGrad", true, 0.1),
    kind<optimizers::AdaDelta>("AdaDelta", true),
    kind<optimizers::RMSprop>("RMSprop", true, 0.1),
    kind<optimizers::Adam>("Adam", true, 0.1),
    kind<optimizers::AMSGrad>("AMSGrad", true, 0.1),
    kind<optimizers::SMORMS3>("SMORMS3", true, 0.1),
    kind<OnArrays>("OnArrays", true, 0.1),
};

struct Run : Visitable {
    Model model;
    std::unique_ptr<Optimizer> optimizer;
    explicit Run(const Kind& kind, std::int64_t n = 37) : model(n), optimizer(kind.make()) {
        optimizer->setup(model);
    }
    void visit(Visitor& v) override { v("model", model)("optimizer", *optimizer); }
    void learn(int steps) { ::learn(model, *optimizer, steps); }
};

}  // namespace

TEST_CASE("saved after k steps, loaded into new objects, the next steps are the same bits") {
    const TemporaryFolder folder;
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        for (const int k : {0, 1, 3}) {
            const auto file = folder.path / "run.npz";
            Run a(kind);
            a.learn(k);
            save_npz(file, a);
            a.learn(4);
            Run b(kind);
            b.model.w.data().fill(9);
            b.learn(2);  // state that loading replaces
            load_npz(file, b);
            CHECK(b.optimizer->t() == k);
            b.learn(4);
            CHECK(b.optimizer->t() == k + 4);
            CHECK(b.model.values() == a.model.values());
            // The complete state is equal too.
            save_npz(folder.path / "a.npz", a);
            save_npz(folder.path / "b.npz", b);
            CHECK(read_file(folder.path / "a.npz") == read_file(folder.path / "b.npz"));
        }
        // The state matters: with copied parameters only, the next steps differ.
        Run a(kind);
        a.learn(3);
        Run c(kind);
        c.model.copy_parameters_from(a.model);
        const auto steps = [](Run& run) {
            run.model.cleargrads();
            for (int i = 0; i < 3; ++i) {
                run.model.w.set_grad(Array::ones({37}));
                run.optimizer->update();
            }
            return run.model.values();
        };
        CHECK((steps(a) != steps(c)) == kind.has_state);
    }
}

TEST_CASE("state goes to where the parameters are") {
    const TemporaryFolder folder;
    const Device second = Device::get("cpu:1");
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        Run a(kind);
        a.learn(2);
        save_npz(folder.path / "a.npz", a);
        Run b(kind);
        b.model.to(second);
        b.optimizer->setup(b.model);
        load_npz(folder.path / "a.npz", b);
        a.learn(3);
        b.learn(3);
        CHECK(b.model.w.device() == second);
        CHECK(b.model.values() == a.model.values());
    }
}

TEST_CASE("another optimizer's state is an error that changes nothing") {
    const TemporaryFolder folder;
    const auto file = folder.path / "other.npz";
    for (const Kind& from : kinds) {
        Run saved(from);
        saved.learn(3);
        save_npz(file, saved);
        for (const Kind& to : kinds) {
            if (from.name == to.name) continue;
            CAPTURE(from.name);
            CAPTURE(to.name);
            Run tried(to);
            Run twin(to);
            tried.learn(2);
            twin.learn(2);
            const auto text = error_of<DataError>([&] { load_npz(file, tried); });
            if (to.has_state) contains(text, "optimizer/w/");
            else contains(text, "not expected");
            CHECK(tried.optimizer->t() == 2);
            tried.learn(2);
            twin.learn(2);
            CHECK(tried.model.values() == twin.model.values());
        }
    }
}

TEST_CASE("state of another shape, and of no parameters, is an error that changes nothing") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        Run large(kind, 38);
        large.learn(3);
        save_npz(file, *large.optimizer);
        Run run(kind);
        Run twin(kind);
        run.learn(1);
        twin.learn(1);
        if (kind.has_state) {
            contains(error_of<DataError>([&] { load_npz(file, *run.optimizer); }),
                     "expected float32 (37,), got float32 (38,)");
            const auto fresh = kind.make();  // without setup()
            contains(error_of<DataError>([&] { load_npz(file, *fresh); }), "not expected");
            CHECK(fresh->t() == 0);
        }
        CHECK_THROWS_AS(load_npz(folder.path / "none.npz", *run.optimizer), DataError);
        CHECK(run.optimizer->t() == 1);
        run.learn(2);
        twin.learn(2);
        CHECK(run.model.values() == twin.model.values());
    }
}
