// Cells of long short-term memory with several states.
#pragma once

#include "lstm_cell.hpp"

namespace catena::plugins {

struct Slstm {
    static constexpr auto about =
        describe(
            "catena.slstm",
            "c = sum of tanh(a) sigmoid(i) + c_prev sigmoid(f) over two inputs and their cells, "
            "h = tanh(c) sigmoid(sum of o)\n\n"
            "Unit j uses channels 4 j to 4 j + 3 of an input as a, i, f and o.",
            in(Port("c_prev1", "cells (N, units, ...)"), Port("c_prev2", "as c_prev1"),
               Port("x1", "(N, 4 units, ...)"), Port("x2", "as x1")),
            out(Port("c", "as c_prev1"), Port("h", "as c_prev1")))
            .example("c_prev1=(2,3) c_prev2=(2,3) x1=(2,12) x2=(2,12)")
            .example("c_prev1=(2,1,2) c_prev2=(2,1,2) x1=(2,4,2) x2=(2,4,2)");

    static std::array<Var, 2> compose(const auto& g) {
        g.check_least_ndim(0, 2);
        const Meta cell = g.x_meta(0);
        g.check_shape(1, cell.shape());
        List of_x = list_of(cell.shape());
        of_x[1] *= 4;
        for (const std::size_t i : {2, 3}) g.check_shape(i, of_x);
        const LstmGates<Var> first = gates_in(g.x(2)), second = gates_in(g.x(3));
        const Var c = first.activated().cell(g.x(0)) + second.activated().cell(g.x(1));
        return {c, math::sigmoid(first.o + second.o) * math::tanh(c)};
    }
};

struct TreeLstm {
    static constexpr auto about =
        describe(
            "catena.tree_lstm",
            "c = tanh(a) sigmoid(i) + sum of c_k sigmoid(f_k) over the cells of n children, "
            "h = tanh(c) sigmoid(o)\n\n"
            "x consists of a, i, o and then f_k for each child. (Tai et al., \"Improved "
            "Semantic Representations From Tree-Structured Long Short-Term Memory Networks\", "
            "ACL 2015.)",
            in(Port("inputs", "cells (N, units, ...) of each child, then x (N, (3 + n) units, ...)")
                   .variadic()),
            out(Port("c", "(N, units, ...)"), Port("h", "as c")))
            .example("inputs=(2,3) inputs=(2,3) inputs=(2,15)")
            .example("inputs=(2,9)");

    static std::array<Var, 2> compose(const auto& g) {
        const std::size_t n = g.n_x() - 1;  // children
        const auto parts = static_cast<std::int64_t>(3 + n);
        const Var x = g.x(n);
        List of_cell = list_of(g.x_meta(n).shape());
        g.check(of_cell.size() >= 2 && of_cell[1] % parts == 0, "the shape of the last input",
                "(N, " + text_of(parts) + " units, ...)", Shape(of_cell));
        of_cell[1] /= parts;
        const auto part = [&](std::size_t k) {
            const auto at = static_cast<std::int64_t>(k) * of_cell[1];
            return slice(x, 1, at, at + of_cell[1]);
        };
        Var c = math::tanh(part(0)) * math::sigmoid(part(1));
        for (std::size_t k = 0; k < n; ++k) {
            const Meta cell = g.x_meta(k);
            g.check(std::ranges::equal(cell.shape(), of_cell),
                    ("inputs[" + std::to_string(k) + "].shape").c_str(), text_of(Shape(of_cell)),
                    cell.shape());
            c = c + math::sigmoid(part(3 + k)) * g.x(k);
        }
        return {c, math::sigmoid(part(2)) * math::tanh(c)};
    }
};

CATENA_FUNCTIONS(Slstm, TreeLstm);

}  // namespace catena::plugins
