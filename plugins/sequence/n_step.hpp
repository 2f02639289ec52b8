// Layers of recurrent cells over sequences of different lengths, in one or both directions.
#pragma once

#include "steps.hpp"

namespace catena::plugins {

// A layer in one direction over all steps: its input, packed (sum of rows, size), the first states
// of its sequences, and its arrays: matrices of x, matrices of h, vectors of x, vectors of h.
struct RecurrentLayer {
    Var x;
    const Var* state;
    const Var* weights;
    Ints rows;

    // x and states times all their matrices, plus the vectors.
    struct Map {
        Map(const Var* matrices, const Var* vectors, std::int64_t gates)
            : W(concat(Vars(matrices, static_cast<std::size_t>(gates)), 0)),
              b(concat(Vars(vectors, static_cast<std::size_t>(gates)), 0)) {}
        Var operator()(const Var& v) const { return call<"catena.linear">({v, W, b}); }
        Var W, b;
    };
    Var of_x(std::int64_t gates) const { return Map(weights, weights + 2 * gates, gates)(x); }
    Map of_h(std::int64_t gates) const { return {weights + gates, weights + 3 * gates, gates}; }
    // h = step(rows of y, h) at each step, for the sequences that it has.
    Var for_each_step(const Var& y, const auto& step) const {
        std::vector<Var> all;
        Var h = state[0];
        for (std::int64_t first = 0; const std::int64_t n : rows) {
            h = step(slice(y, 0, first, first + n), all.empty() ? h : slice(h, 0, 0, n));
            all.push_back(h);
            first += n;
        }
        return concat(all, 0);
    }
};

// The cells return the states of all steps.
struct LstmLayer {
    static constexpr bool widens = false;  // lstm_sequence computes in half precision
    static constexpr std::size_t n_states = 2;
    static constexpr std::int64_t gates = 4;
    static std::array<Var, 2> run(const auto&, const RecurrentLayer& l) {
        // The matrices are those of i, f, a and o; unit j of lstm_sequence has a, i, f and o at
        // 4 j to 4 j + 3.
        const auto of_units = [](const Var* parts) {
            const Var all = stack({parts[2], parts[0], parts[1], parts[3]}, 1);
            List shape = list_of(all.meta().shape());
            shape[1] *= shape[0];
            shape.erase(shape.begin());
            return reshape(all, shape);
        };
        const Var x = call<"catena.linear">(
            {l.x, of_units(l.weights), of_units(l.weights + 8) + of_units(l.weights + 12)});
        return call_all<"catena.lstm_sequence", 2>(
            {x, of_units(l.weights + 4), l.state[0], l.state[1]}, {set("rows", l.rows)});
    }
};

struct GruLayer {
    static constexpr bool widens = true;
    static constexpr std::size_t n_states = 1;
    static constexpr std::int64_t gates = 3;
    static std::array<Var, 1> run(const auto&, const RecurrentLayer& l) {
        const auto of_h = l.of_h(gates);
        const auto step = [&](const Var& x, const Var& state) {
            const std::int64_t units = state.dim(1);
            const Var of_state = of_h(state);
            const auto gate = [&](const Var& all, std::int64_t k) {
                return slice(all, 1, k * units, (k + 1) * units);
            };
            const Var r = math::sigmoid(gate(x, 0) + gate(of_state, 0));
            const Var z = math::sigmoid(gate(x, 1) + gate(of_state, 1));
            return (1.0 - z) * math::tanh(gate(x, 2) + r * gate(of_state, 2)) + z * state;
        };
        return {l.for_each_step(l.of_x(gates), step)};
    }
};

struct RnnLayer {
    static constexpr bool widens = true;
    static constexpr std::size_t n_states = 1;
    static constexpr std::int64_t gates = 1;
    static std::array<Var, 1> run(const auto& g, const RecurrentLayer& l) {
        const bool relu = g.template attr<"activation">() == "relu";
        const auto of_h = l.of_h(gates);
        const auto step = [&](const Var& x, const Var& state) {
            const Var sum = x + of_h(state);
            return relu ? call<"catena.relu">({sum}) : math::tanh(sum);
        };
        return {l.for_each_step(l.of_x(gates), step)};
    }
};

// F::compose of the functions below. Inputs: xs, the first states, and the weights.
template <class Layer, bool both>
std::vector<Var> n_step(const auto& g) {
    constexpr std::size_t n_states = Layer::n_states;
    constexpr auto n_weights = static_cast<std::size_t>(4 * Layer::gates);
    constexpr std::int64_t directions = both ? 2 : 1;
    const Steps steps(g, 0);
    const std::int64_t n = steps.rows(0);
    List reversed(static_cast<std::size_t>(steps.total())), last, rows;
    for (std::size_t t = 0; t < steps.size(); ++t) rows.push_back(steps.rows(t));
    for (std::int64_t i = 0; i < n; ++i) {
        std::size_t length = steps.size();
        while (steps.rows(length - 1) <= i) --length;
        for (std::size_t t = 0; t < length; ++t)
            reversed[static_cast<std::size_t>(steps.first(t) + i)] =
                steps.first(length - 1 - t) + i;
        last.push_back(steps.first(length - 1) + i);
    }
    const std::int64_t layers = g.x_meta(1).shape().empty() ? 0 : g.x_meta(1).dim(0) / directions;
    for (std::size_t k = 1; k <= n_states; ++k) {
        g.check_ndim(k, 3);
        g.check_shape(k, {layers * directions, n, g.x_meta(1).dim(2)});
    }
    const auto in = [](const Var& v) { return Layer::widens ? widened(v) : v; };
    std::vector<Var> weights = g.xs(1 + n_states);
    const std::size_t expected = static_cast<std::size_t>(layers * directions) * n_weights;
    g.check(layers > 0 && weights.size() == expected, "weights",
            text_of(expected) + " arrays, " + text_of(n_weights) + " for each layer" +
                (both ? " and direction" : "") + ", as hx has",
            text_of(weights.size()));
    const std::int64_t size = g.x(0).dim(-1);
    g.check(weights[0].meta().shape().size() == 2 && weights[0].dim(1) == size, "xs.shape[-1]",
            "as many elements as the first matrix has columns, " +
                text_of(Shape(weights[0].meta().shape())),
            text_of(size));
    for (Var& each : weights) each = in(each);
    Var x = in(reshape(g.x(0), {steps.total(), size}));
    const Var order = both ? integers(reversed) : Var::missing(), ends = integers(last);
    std::vector<Var> finals[n_states];
    for (std::int64_t i = 0, k = 0; i < layers; ++i) {
        if (i > 0)
            x = call<"catena.dropout">({x}, {set("ratio", g.template attr<"dropout_ratio">())});
        std::vector<Var> outputs;
        for (std::int64_t d = 0; d < directions; ++d, ++k) {
            std::vector<Var> state;
            for (std::size_t s = 1; s <= n_states; ++s)
                state.push_back(in(reshape(slice(g.x(s), 0, k, k + 1), {n, g.x_meta(1).dim(2)})));
            const RecurrentLayer layer{d > 0 ? take(x, order) : x, state.data(),
                                       weights.data() + static_cast<std::size_t>(k) * n_weights,
                                       rows};
            const auto states = Layer::run(g, layer);
            for (std::size_t s = 0; s < n_states; ++s) finals[s].push_back(take(states[s], ends));
            outputs.push_back(d > 0 ? take(states[0], order) : states[0]);
        }
        x = both ? concat(outputs, 1) : outputs[0];
    }
    std::vector<Var> results{x};
    for (const auto& states : finals) results.push_back(stack(states, 0));
    for (Var& y : results) y = in_dtype(y, g.x(0).dtype());
    return results;
}

// The descriptions.
constexpr Port sequences =
    Port("xs", "(steps, N, size), or packed (sum of rows, size), the longest sequence first");
constexpr Port weights_of(const char* doc) { return Port("weights", doc).variadic(); }
inline constexpr Attribute between_layers =
    attr("dropout_ratio", 0.0, "that of dropout between layers").range(0, 1);
inline constexpr const char* tanh_or_relu[] = {"tanh", "relu", nullptr};
inline constexpr Attribute activation =
    attr("activation", "tanh", "tanh or relu").one_of(tanh_or_relu);

// The weights of a layer with one unit, for inputs of some size.
#define CATENA_LSTM_WEIGHTS(SIZE)                                                                  \
    " weights=(1," #SIZE ") weights=(1," #SIZE ") weights=(1," #SIZE ") weights=(1," #SIZE         \
    ")"                                                                                            \
    " weights=(1,1) weights=(1,1) weights=(1,1) weights=(1,1) weights=(1) weights=(1) weights=(1)" \
    " weights=(1) weights=(1) weights=(1) weights=(1) weights=(1)"
#define CATENA_GRU_WEIGHTS(SIZE)                                                                 \
    " weights=(1," #SIZE ") weights=(1," #SIZE ") weights=(1," #SIZE                             \
    ")"                                                                                          \
    " weights=(1,1) weights=(1,1) weights=(1,1) weights=(1) weights=(1) weights=(1) weights=(1)" \
    " weights=(1) weights=(1)"
#define CATENA_RNN_WEIGHTS(SIZE) " weights=(1," #SIZE ") weights=(1,1) weights=(1) weights=(1)"

inline constexpr Port first_states = Port("hx", "the first states (layers, N, units)");
inline constexpr Port last_layer = Port("ys", "the states of the last layer, packed");
inline constexpr Port last_states = Port("hy", "the last states, as hx");

constexpr auto described(const char* name, const char* doc, const auto& inputs, const auto& outputs,
                         const char* example, const char* with_dropout, const auto&... attributes) {
    return describe(name, doc, inputs, outputs, rows_attribute, between_layers, attributes...)
        .stochastic()
        .example(example)
        .example(with_dropout);
}
constexpr auto describe_lstm(const char* name, const char* doc, const char* example,
                             const char* with_dropout) {
    return described(
        name, doc,
        in(sequences, first_states, Port("cx", "the first cells, as hx"),
           weights_of("of each layer: the matrices of x for the gates i, f, a and o, those of h, "
                      "then the vectors in the same order")),
        out(last_layer, last_states, Port("cy", "the last cells, as hx")), example, with_dropout);
}
constexpr auto describe_gru(const char* name, const char* doc, const char* example,
                            const char* with_dropout) {
    return described(
        name, doc,
        in(sequences, first_states,
           weights_of("of each layer: the matrices of x for the gates r, z and h, those of h, then "
                      "the vectors in the same order")),
        out(last_layer, last_states), example, with_dropout);
}
constexpr auto describe_rnn(const char* name, const char* doc, const char* example,
                            const char* with_dropout) {
    return described(name, doc,
                     in(sequences, first_states, weights_of("of each layer: W, V, b and c")),
                     out(last_layer, last_states), example, with_dropout, activation);
}

struct NStepLstm {
    static constexpr auto about = describe_lstm(
        "catena.n_step_lstm", "ys, hy, cy = layers of LSTM units over sequences",
        "xs=(3,2) hx=(1,2,1) cx=(1,2,1) rows=[2,1]" CATENA_LSTM_WEIGHTS(2),
        "xs=(4,2) hx=(2,2,1) cx=(2,2,1) rows=[2,2] dropout_ratio=0.5" CATENA_LSTM_WEIGHTS(2)
            CATENA_LSTM_WEIGHTS(1));
    static auto compose(const auto& g) { return n_step<LstmLayer, false>(g); }
};
struct NStepBilstm {
    static constexpr auto about = describe_lstm(
        "catena.n_step_bilstm",
        "ys, hy, cy = layers of LSTM units over sequences, in both directions\n\n"
        "hx, cx and the weights have two entries for each layer: forwards and backwards.",
        "xs=(3,2) hx=(2,2,1) cx=(2,2,1) rows=[2,1]" CATENA_LSTM_WEIGHTS(2) CATENA_LSTM_WEIGHTS(2),
        "xs=(4,2) hx=(4,2,1) cx=(4,2,1) rows=[2,2] dropout_ratio=0.5" CATENA_LSTM_WEIGHTS(2)
            CATENA_LSTM_WEIGHTS(2) CATENA_LSTM_WEIGHTS(2) CATENA_LSTM_WEIGHTS(2));
    static auto compose(const auto& g) { return n_step<LstmLayer, true>(g); }
};
struct NStepGru {
    static constexpr auto about =
        describe_gru("catena.n_step_gru", "ys, hy = layers of gated recurrent units over sequences",
                     "xs=(3,2) hx=(1,2,1) rows=[2,1]" CATENA_GRU_WEIGHTS(2),
                     "xs=(4,2) hx=(2,2,1) rows=[2,2] dropout_ratio=0.5" CATENA_GRU_WEIGHTS(2)
                         CATENA_GRU_WEIGHTS(1));
    static auto compose(const auto& g) { return n_step<GruLayer, false>(g); }
};
struct NStepBigru {
    static constexpr auto about = describe_gru(
        "catena.n_step_bigru",
        "ys, hy = layers of gated recurrent units over sequences, in both directions\n\n"
        "hx and the weights have two entries for each layer: forwards and backwards.",
        "xs=(3,2) hx=(2,2,1) rows=[2,1]" CATENA_GRU_WEIGHTS(2) CATENA_GRU_WEIGHTS(2),
        "xs=(4,2) hx=(4,2,1) rows=[2,2] dropout_ratio=0.5" CATENA_GRU_WEIGHTS(2)
            CATENA_GRU_WEIGHTS(2) CATENA_GRU_WEIGHTS(2) CATENA_GRU_WEIGHTS(2));
    static auto compose(const auto& g) { return n_step<GruLayer, true>(g); }
};
struct NStepRnn {
    static constexpr auto about =
        describe_rnn("catena.n_step_rnn",
                     "ys, hy = layers of units h = activation(W x + b + V h + c) over sequences",
                     "xs=(3,2) hx=(1,2,1) rows=[2,1] activation=\"relu\"" CATENA_RNN_WEIGHTS(2),
                     "xs=(4,2) hx=(2,2,1) rows=[2,2] dropout_ratio=0.5" CATENA_RNN_WEIGHTS(2)
                         CATENA_RNN_WEIGHTS(1));
    static auto compose(const auto& g) { return n_step<RnnLayer, false>(g); }
};
struct NStepBirnn {
    static constexpr auto about = describe_rnn(
        "catena.n_step_birnn",
        "ys, hy = layers of units h = activation(W x + b + V h + c) over sequences, in both "
        "directions\n\nhx and the weights have two entries for each layer: forwards and backwards.",
        "xs=(2,2,2) hx=(2,2,1)" CATENA_RNN_WEIGHTS(2) CATENA_RNN_WEIGHTS(2),
        "xs=(4,2) hx=(4,2,1) rows=[2,2] dropout_ratio=0.5" CATENA_RNN_WEIGHTS(2)
            CATENA_RNN_WEIGHTS(2) CATENA_RNN_WEIGHTS(2) CATENA_RNN_WEIGHTS(2));
    static auto compose(const auto& g) { return n_step<RnnLayer, true>(g); }
};

#undef CATENA_LSTM_WEIGHTS
#undef CATENA_GRU_WEIGHTS
#undef CATENA_RNN_WEIGHTS

CATENA_FUNCTIONS(NStepLstm, NStepBilstm, NStepGru, NStepBigru, NStepRnn, NStepBirnn);

}  // namespace catena::plugins
