// Section 1.2 of Chainer 1.0.1's manual: backprop through time, whole and truncated;
// evaluation without a graph; a predictor on top of a fixed network.
#include <catena/catena.hpp>

#include <vector>

using namespace catena;
namespace F = catena::functions;

namespace {

struct Rnn {
    FunctionSet model{
        {"embed", links::EmbedID(1000, 100)},
        {"x_to_h", links::Linear(100, 50)},
        {"h_to_h", links::Linear(50, 50)},
        {"h_to_y", links::Linear(50, 1000)},
    };

    std::pair<Variable, Variable> forward_one_step(Variable h, const Array& cur_word,
                                                   const Array& next_word,
                                                   bool is_volatile = false) const {
        const Variable word(cur_word, is_volatile);
        const Variable t(next_word, is_volatile);
        const Variable x = F::tanh(model["embed"](word));
        h = F::tanh(model["x_to_h"](x) + model["h_to_h"](h));
        const Variable y = model["h_to_y"](h);
        const Variable loss = F::softmax_cross_entropy(y, t);
        return {h, loss};
    }

    Variable forward(const Arrays& x_list, bool is_volatile = false) const {
        Variable h(Array::zeros({x_list[0].size(), 50}), is_volatile);
        Variable loss;
        for (std::size_t i = 0; i + 1 < x_list.size(); ++i) {
            const auto [next, new_loss] =
                forward_one_step(h, x_list[i], x_list[i + 1], is_volatile);
            h = next;
            loss += new_loss;
        }
        return loss;
    }
};

// Returns n minibatches of words that repeat every five steps, which a net learns quickly.
Arrays words(std::int32_t n) {
    Arrays list;
    for (std::int32_t i = 0; i < n; ++i) list.push_back(Array::from({i % 5, i % 5 + 3}, {2}));
    return list;
}

bool whole() {
    const Rnn rnn;
    optimizers::SGD optimizer(0.1);
    optimizer.setup(rnn.model.collect_parameters());
    const Arrays x_list = words(11);
    const double before = rnn.forward(x_list, /*is_volatile=*/true).item();
    for (int i = 0; i < 5; ++i) {
        optimizer.zero_grads();
        const Variable loss = rnn.forward(x_list);
        loss.backward();
        optimizer.update();
    }
    const Variable loss = rnn.forward(x_list, /*is_volatile=*/true);
    return loss.is_volatile() && !loss.creator() && loss.item() < before;
}

bool truncated() {
    const Rnn rnn;
    optimizers::SGD optimizer(0.1);
    optimizer.setup(rnn.model.collect_parameters());
    const Arrays x_list = words(71);
    Variable h(Array::zeros({2, 50}));
    Variable loss;
    const std::size_t seqlen = x_list.size() - 1;
    for (std::size_t count = 1; count <= seqlen; ++count) {
        const auto [next, new_loss] = rnn.forward_one_step(h, x_list[count - 1], x_list[count]);
        h = next;
        loss += new_loss;
        if (count % 30 == 0 || count == seqlen) {
            optimizer.zero_grads();
            loss.backward();
            loss.unchain_backward();
            optimizer.update();
            if (h.creator() || loss.creator()) return false;
        }
    }
    return optimizer.t() == 3;
}

bool on_top_of_a_fixed_network() {
    links::Linear fixed_func(4, 3), predictor_func(3, 1);
    const Variable x(Array::ones({2, 4}), /*is_volatile=*/true);
    const Variable feat = fixed_func(x);
    feat.set_volatile(false);
    const Variable y = F::sum(predictor_func(feat));
    y.backward();
    return predictor_func.W.grad() && feat.grad() && !fixed_func.W.grad() && !x.grad();
}

// The same with a predictor without parameters: backward() still reaches feat.
bool on_top_without_parameters() {
    links::Linear fixed_func(4, 3);
    const Variable x(Array::ones({2, 4}), /*is_volatile=*/true);
    const Variable feat = fixed_func(x);
    feat.set_volatile(false);
    const Variable y = F::sum(feat * feat);
    y.backward();
    gradient_check::assert_allclose(feat.grad(), 2 * feat.data());
    return !fixed_func.W.grad() && !x.grad();
}

}  // namespace

int main() {
    const bool well =
        whole() && truncated() && on_top_of_a_fixed_network() && on_top_without_parameters();
    return well ? 0 : 1;
}
