// Learns the characters of a text and writes more of it. Usage: gpt FILE STEPS
#include <catena/catena.hpp>
using namespace catena;
namespace F = catena::functions;
constexpr std::int64_t context = 64, units = 96;

struct Block : Chain {
    links::LayerNormalization norm1{units}, norm2{units};
    links::MultiHeadAttention attention{units, 4, {.causal = true}};
    links::Linear up{units, 4 * units}, down{4 * units, units};
    void visit(Visitor& v) override {
        v("norm1", norm1)("attention", attention)("norm2", norm2)("up", up)("down", down);
    }
    Variable operator()(const Variable& x) const override {
        const Variable h = x + attention(norm1(x));
        return h + down(F::gelu(up(norm2(h), 2)), 2);
    }
};

struct Gpt : Chain {
    explicit Gpt(std::int64_t n) : words(n, units), out(units, n) {}
    links::EmbedID words, places{context, units};
    Sequential blocks{Block(), Block(), Block(), links::LayerNormalization(units)};
    links::Linear out;
    void visit(Visitor& v) override {
        v("words", words)("places", places)("blocks", blocks)("out", out);
    }
    Variable operator()(const Variable& x) const override {  // (N, T) to (N, T, n)
        return out(blocks(words(x) + places(as_variable(F::arange(x.shape()[1])))), 2);
    }
};

int main(int argc, char** argv) {
    if (argc != 3) return std::fputs("usage: gpt FILE STEPS\n", stderr), 2;
    const std::string text = read_text(argv[1]);
    const Vocabulary vocabulary = Vocabulary::of(text, Tokens::characters);
    RandomWindows windows(vocabulary.encode(text), 16, context);
    Gpt gpt(vocabulary.size());
    optimizers::AdamW optimizer(0.002);
    optimizer.setup(gpt);
    for (int step = 1; step <= std::atoi(argv[2]); ++step) {
        const TextBatch batch = windows.next();
        const Variable y = gpt(as_variable(batch.by_text(batch.x)));
        const Variable t = as_variable(F::reshape(batch.by_text(batch.t), {-1}));
        const Variable loss = F::softmax_cross_entropy(F::reshape(y, {t.size(), -1}), t);
        optimizer.cleargrads();
        loss.backward();
        optimizer.update();
        if (step % 100 == 0) std::printf("step %d: loss %.2f\n", step, loss.data().item<float>());
    }
    const no_backprop_mode no_graph;
    Generator generator(1);
    std::vector<std::int32_t> written = vocabulary.encode(text.substr(0, context));
    for (int i = 0; i < 300; ++i) {
        const std::vector<std::int32_t> seen(written.end() - context, written.end());
        const Variable y = F::get_item(gpt(as_variable(Array::from(seen, {1, context}))), {0, -1});
        written.push_back(sample_token(y.data().to_vector<float>(), {}, generator));
    }
    std::printf("%s\n", vocabulary.decode(written).c_str());
}
