// All links that come with catena. New links are on the thread's current device, in float32. The
// arguments of constructors are those of Chainer 7, in its order; links of Chainer 1 also take its
// arguments `wscale` and `bias`, numbers in place of `nobias`. Constructors throw ShapeError for
// sizes below 1, and PluginError if no plugin has the function.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/initializers.hpp>
#include <catena/sequential.hpp>
#include <catena/word_tree.hpp>

namespace catena {

// (y, x), or one number for both: filter sizes, strides, pads.
struct Pair {
    Pair(std::int64_t both) : y(both), x(both) {}  // NOLINT(google-explicit-constructor)
    Pair(std::int64_t for_y, std::int64_t for_x) : y(for_y), x(for_x) {}
    std::vector<std::int64_t> list() const { return {y, x}; }
    friend bool operator==(const Pair&, const Pair&) = default;

    std::int64_t y;
    std::int64_t x;
};

// The number of positions of a window of k along `size` elements, with padding p on both sides and
// stride s: floor((size + 2p - k) / s) + 1, or 0 if the window does not fit. With cover_all there
// is one more if elements at the end would not be covered; the last window then extends beyond the
// padding. Throws InvalidError if s < 1, k < 1, or size or p is negative.
std::int64_t get_conv_outsize(std::int64_t size, std::int64_t k, std::int64_t s, std::int64_t p,
                              bool cover_all = false);

namespace links {

// Linear: a fully connected layer.
// y = x W^T + b, where x is (N, ...) with in_size values after the first axis, or after the first
// n_batch_axes axes, which y has too: with 2, x is (N, T, in_size) and y is (N, T, out_size).
// Parameters: W (out_size, in_size), from N(0, 1 / in_size); b (out_size), 0, unless nobias.
class Linear : public Link {
public:
    Linear(std::int64_t in_size, std::int64_t out_size, bool nobias = false,
           const Initial& initialW = {}, const Initial& initial_bias = {});
    // W is drawn from N(0, wscale^2 / in_size), b is `bias`.
    template <Number N>
    Linear(std::int64_t in_size, std::int64_t out_size, N wscale, double bias = 0,
           bool nobias = false)
        : Linear(in_size, out_size, nobias, initializers::LeCunNormal(static_cast<double>(wscale)),
                 bias) {}

    Variable operator()(const Variable& x) const override;
    Variable operator()(const Variable& x, std::int64_t n_batch_axes) const;
    void visit(Visitor& visitor) override { visitor("W", W)("b", b); }

    catena::Parameter W;
    catena::Parameter b;  // empty with nobias
};

// MLP: fully connected layers with an activation between them.
// sizes: of the input, of each hidden layer and of the output. The activation after each hidden
// layer is a function or a link, which is deeply copied for each; dropout follows, unless it is 0.
// Throws ShapeError for less than two sizes, InvalidError unless 0 <= dropout < 1.
// Parameters: those of the Linear layers, and of activations that are links: "0/W", "0/b", "1/W"
//
//     links::MLP mlp({784, 1000, 1000, 10}, F::tanh, 0.5);
class MLP : public Sequential {
public:
    explicit MLP(const std::vector<std::int64_t>& sizes, const Step& activation = relu(),
                 double dropout = 0);

private:
    static Step relu();
};

// Convolution2D: a layer of filters over images.
// y = convolution_2d(x, W, b): x is (N, in_channels, H, W), y (N, out_channels, ...).
// Parameters: W (out_channels, in_channels, kh, kw), drawn from N(0, 1 / (in_channels kh kw)) by
// default; b (out_channels), 0 by default, unless nobias. ksize, stride and pad are one number or
// (y, x). Throws ShapeError also for negative pads.
class Convolution2D : public Link {
public:
    Convolution2D(std::int64_t in_channels, std::int64_t out_channels, Pair ksize, Pair stride = 1,
                  Pair pad = 0, bool nobias = false, const Initial& initialW = {},
                  const Initial& initial_bias = {});
    // W is drawn from N(0, wscale^2 / (in_channels kh kw)), b is `bias`.
    template <Number N>
    Convolution2D(std::int64_t in_channels, std::int64_t out_channels, Pair ksize, Pair stride,
                  Pair pad, N wscale, double bias = 0, bool nobias = false)
        : Convolution2D(in_channels, out_channels, ksize, stride, pad, nobias,
                        initializers::LeCunNormal(static_cast<double>(wscale)), bias) {}

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("W", W)("b", b); }

    catena::Parameter W;
    catena::Parameter b;  // empty with nobias

private:
    PluginFunction function_;
};

// EmbedID: an embedding, which maps each id to a vector.
// y = the rows of W for the ids in x: x has any shape, int32 or int64, and y has shape x.shape +
// (out_size,). The row of ignore_label is 0. Calls throw ValueError for other ids outside 0 ..
// in_size - 1; unlike in NumPy, negative ids do not count from the end.
// Parameter: W (in_size, out_size), drawn from N(0, 1) by default.
class EmbedID : public Link {
public:
    EmbedID(std::int64_t in_size, std::int64_t out_size, const Initial& initialW = {},
            std::optional<std::int64_t> ignore_label = {});

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("W", W); }

    catena::Parameter W;
    std::optional<std::int64_t> ignore_label;
};

// PReLU: a rectifier with trainable slopes.
// y = x where x >= 0, else W * x. The shape of W is that of x from axis 1 on, or a prefix of it; ()
// is one slope for all. Parameter: W, initially `init`. Calls throw ShapeError if x does not fit.
class PReLU : public Link {
public:
    explicit PReLU(const Shape& shape = {}, const Initial& init = 0.25);

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("W", W); }

    catena::Parameter W;
};

// Swish: x * sigmoid(beta x) with trainable beta.
// The shape of beta is that of x from axis 1 on, or a prefix of it; () is one number for all.
// Parameter: beta, initially `beta_init`. Calls throw ShapeError if x does not fit.
class Swish : public Link {
public:
    explicit Swish(const Shape& beta_shape, const Initial& beta_init = 1);

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("beta", beta); }

    catena::Parameter beta;
};

// Maxout: a fully connected layer, each of whose outputs is the largest of pool_size sums.
// y = maxout(linear(x), pool_size), with out_size values per sample. (Goodfellow et al., ICML
// 2013.) Parameters: those of `linear`, a Linear(in_size, out_size * pool_size) with the same
// initial values, without b if initial_bias is {}.
class Maxout : public Chain {
public:
    Maxout(std::int64_t in_size, std::int64_t out_size, std::int64_t pool_size,
           const Initial& initialW = {}, const Initial& initial_bias = 0);

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("linear", linear); }

    Linear linear;

private:
    std::int64_t pool_size_;
};

// Parameter: a link that is a single trainable array.
// Called without arguments, it returns its variable. Parameter: W, which shares the array's memory.
// Throws DtypeError unless the array is floating.
class Parameter : public Link {
public:
    explicit Parameter(const Array& array) : W(array) {}

    using Link::operator();
    Variable operator()() const { return W; }
    void visit(Visitor& visitor) override { visitor("W", W); }

    catena::Parameter W;
};

// BatchNormalization: normalizes by the minibatch in training, else by running statistics.
// y = gamma (x - mean) / sqrt(var + eps) + beta for each channel (axis 1) of x (N, size, ...). A
// size that is a shape, {a, b}, means x (N, a, b, ...) with a * b channels, which is `size` below.
// The statistics are over all other axes, or over `axis`; those that it lacks are `size` then.
// Parameters, of `dtype`: gamma (size,) if use_gamma, initially 1; beta (size,) if use_beta, 0.
// Persistent values: avg_mean (size,), initially 0; avg_var (size,), 1; N, the number of
// fine-tuning batches. (Ioffe and Szegedy, ICML 2015. Running statistics as in Chainer 7: for a
// minibatch with m values per channel, the mean and the unbiased variance m / (m - 1) var have
// weight 1 - decay.)
class BatchNormalization : public Link {
public:
    explicit BatchNormalization(const Ints& size, double decay = 0.9, double eps = 2e-5,
                                Dtype dtype = Dtype::float32, bool use_gamma = true,
                                bool use_beta = true, const Initial& initial_gamma = {},
                                const Initial& initial_beta = {},
                                const std::vector<std::int64_t>& axis = {},
                                const Initial& initial_avg_mean = {},
                                const Initial& initial_avg_var = {});

    // In training this uses the statistics of the minibatch and updates the running statistics in
    // place, also in a const link. With config().train = false it uses the running statistics and
    // changes nothing. Throws ShapeError if x does not fit.
    Variable operator()(const Variable& x) const override;
    // test: use the running statistics. finetune: set the running statistics to the mean over all
    // batches since start_finetuning(), instead of a decaying average.
    Variable operator()(const Variable& x, bool test) const;
    Variable operator()(const Variable& x, bool test, bool finetune);
    void start_finetuning() { N = 0; }

    // y and the statistics of the values that it was normalized by, `count` for each channel.
    struct Normalized {
        Variable y;
        Array mean, var;  // biased
        std::int64_t count;
    };
    // Normalizes x (N, size, ...) in training. If empty, by its own statistics.
    using Normalize = std::function<Normalized(const Variable& x, const Variable& gamma,
                                               const Variable& beta, double eps)>;
    Normalize normalize_minibatch;

    void visit(Visitor& visitor) override {
        visitor("gamma", gamma)("beta", beta);
        visitor.running("avg_mean", avg_mean).running("avg_var", avg_var)("N", N);
    }

    catena::Parameter gamma;  // empty without use_gamma; same for beta
    catena::Parameter beta;
    Array avg_mean;
    Array avg_var;
    std::int64_t N = 0;
    double decay;
    double eps;

private:
    // share: the weight of the old running statistics in the update. Without it, the call
    // normalizes by the running statistics, changes nothing and returns a count of 0.
    Normalized call(const Variable& x, std::optional<double> share) const;
    Normalized call_by_channel(const Variable& x, std::optional<double> share) const;
    Normalized normalize(const Variable& x, std::optional<double> share) const;

    Shape size_;
    std::vector<std::int64_t> axis_;  // empty: all but those of size_
};

// LayerNormalization: normalizes each sample, or each position of a sequence, by itself.
// y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and var over the last axes of x, whose
// extents are `size`: a number for the last axis, or a shape. Calls throw ShapeError if x does not
// fit. Parameters: gamma, of shape `size`, initially 1; beta, as gamma, 0. (Ba et al., 2016.)
class LayerNormalization : public Link {
public:
    explicit LayerNormalization(const Ints& size, double eps = 1e-6,
                                const Initial& initial_gamma = {},
                                const Initial& initial_beta = {});

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("gamma", gamma)("beta", beta); }

    catena::Parameter gamma;
    catena::Parameter beta;
    double eps;
};

// RMSNormalization: divides by the root mean square of the last axes of x.
// y = gamma x / sqrt(mean of x^2 + eps). size and errors as for LayerNormalization. Parameter:
// gamma, of shape `size`, initially 1. (Zhang and Sennrich, NeurIPS 2019.)
class RMSNormalization : public Link {
public:
    explicit RMSNormalization(const Ints& size, double eps = 1e-6,
                              const Initial& initial_gamma = {});

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("gamma", gamma); }

    catena::Parameter gamma;
    double eps;
};

// GroupNormalization: normalizes groups of channels of each sample.
// y = gamma (x - mean) / sqrt(var + eps) + beta for x (N, size, ...), with mean and var over each
// of `groups` groups of adjacent channels, and gamma and beta for each channel. The constructor
// throws ShapeError unless size is a multiple of groups; calls throw it if x does not fit.
// Parameters: gamma (size,), initially 1; beta (size,), 0. (Wu and He, ECCV 2018.)
class GroupNormalization : public Link {
public:
    GroupNormalization(std::int64_t groups, std::int64_t size, double eps = 1e-5,
                       const Initial& initial_gamma = {}, const Initial& initial_beta = {});

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("gamma", gamma)("beta", beta); }

    catena::Parameter gamma;
    catena::Parameter beta;
    std::int64_t groups;
    double eps;
};

// Slower rotation, for texts longer than those of training: see F::rotary_tables().
struct RotaryScaling {
    double factor = 1;
    double low = 1, high = 4;
    double context = 0;  // tokens of the texts of training

    bool operator==(const RotaryScaling&) const = default;
};

// RotaryPositions: rotates vectors of tokens by their positions (F::rotary_embedding). Layers with
// copies of one object share its tables, which grow with the longest text. Thread-safe. (Su and
// others, "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.)
class RotaryPositions {
public:
    RotaryPositions() = default;  // does not rotate
    // base=0 does not rotate. Throws InvalidError for a negative base or an invalid scaling.
    explicit RotaryPositions(double base, const RotaryScaling& scaling = {});

    explicit operator bool() const noexcept { return tables_ != nullptr; }
    // x: (N, T, heads, D) with an even D; token t is at position offset + t.
    Variable operator()(const Variable& x, std::int64_t offset = 0) const;

private:
    struct Tables;
    std::shared_ptr<Tables> tables_;
};

// MultiHeadAttention: each token looks up values of others, in several heads.
// y = out(F::scaled_dot_product_attention(q(x), k(c), v(c))) for x (N, T, units) and a context c
// (N, S, units), which is x itself in self-attention. (Vaswani and others, "Attention Is All You
// Need", 2017.) Parameters: those of the layers q, k, v and out. A head has D units, so q is
// Linear(units, heads * D), k and v are Linear(units, kv_heads * D), and out is
// Linear(heads * D, units). With norm_eps also those of q_norm and k_norm, RMSNormalization(D). The
// constructor throws ShapeError if heads do not divide units (unless head_size is given), or
// kv_heads do not divide heads; calls throw it if x does not fit.
class MultiHeadAttention : public Chain {
public:
    struct Options {
        std::int64_t kv_heads = 0;    // heads of keys and values, which heads of q share; 0: heads
        std::int64_t head_size = 0;   // D; 0: units / heads
        bool bias = true;             // of the four layers
        bool causal = false;          // no token sees later ones
        std::int64_t window = 0;      // a token sees the last `window` ones up to itself; 0: all
        double dropout = 0;           // in training, of the weights of attention
        RotaryPositions rotary = {};  // of q and k
        double wscale = 1;            // of the initial weights, as for Linear
        double norm_eps = 0;          // normalizes the heads of q and k, before rotary; 0: does not
    };
    // Keys and values of earlier tokens: (N, places, kv_heads, D). Copies share them.
    struct Cache {
        Array k, v;
        std::int64_t length = 0;  // tokens so far
        std::int64_t places() const { return k.shape()[1]; }
    };

    MultiHeadAttention(std::int64_t units, std::int64_t heads, const Options& options);
    MultiHeadAttention(std::int64_t units, std::int64_t heads)
        : MultiHeadAttention(units, heads, Options()) {}

    Variable operator()(const Variable& x) const override { return (*this)(x, x); }
    // mask: bool, true where a token of x sees one of the context; or floating-point numbers, such
    // as F::alibi(), which are added to the scores. Broadcasts to (N, heads, T, S). lengths: int64
    // (N,), the numbers of tokens of the contexts, after which no token sees others.
    Variable operator()(const Variable& x, const Variable& context, const Variable& mask = {},
                        const Variable& lengths = {}) const;
    // Causal self-attention of x, which follows the tokens in the cache. Appends the keys and
    // values of x to the cache, in place and without their graph. The mask broadcasts to (N, heads,
    // T, places). Throws ShapeError if the cache has not T more places, or is for another N.
    Variable operator()(const Variable& x, Cache& cache, const Variable& mask = {}) const;
    // An empty cache for n texts of up to `places` tokens, with the link's device and dtype.
    Cache make_cache(std::int64_t n, std::int64_t places) const;

    void visit(Visitor& visitor) override;

    Linear q, k, v, out;
    std::optional<RMSNormalization> q_norm, k_norm;

private:
    Variable queries_of(const Variable& x, std::int64_t offset) const;
    Variable keys_of(const Variable& x, std::int64_t offset) const;
    Variable split(const Variable& x, std::int64_t heads) const;
    // offset: the place of the first query, as in F::scaled_dot_product_attention().
    Variable attend(const Variable& q, const Variable& k, const Variable& v, const Variable& mask,
                    const Variable& lengths, bool causal, std::int64_t offset) const;

    std::int64_t heads_;
    Options options_;
};

// BinaryHierarchicalSoftmax: a loss over many words that costs only the depth of a tree.
// loss = link(x, t): for x (N, in_size) and words t (N,), the sum over the samples of -log of the
// probability of the path to t. Each inner node turns left or right with probability sigmoid(+-w .
// x). Calls throw ValueError for words that are not in the tree.
// Parameter: W (tree.inner_nodes(), in_size), drawn from U[-1, 1). Loading requires the same tree.
//
// The sign is that of the paper and of Chainer's documentation: -1 turns left. Chainer's code does
// the opposite, so its W is the negative of this one. Loading one of its files, which have W but no
// tree, converts W, also if the file is renamed or loaded partially; make the link with the same
// tree before. To use a file from catena in Chainer, negate W before saving.
// The state of an optimizer is not converted, because the files do not show who wrote them: negate
// sums of gradients of W from Chainer before loading (load_arrays(), save_arrays()). These are m of
// Adam and v of MomentumSGD. The constructor throws InvalidError for a word that occurs twice.
//
//     links::BinaryHierarchicalSoftmax loss(650, create_huffman_tree(counts));
class BinaryHierarchicalSoftmax : public Link {
public:
    BinaryHierarchicalSoftmax(std::int64_t in_size, const WordTree& tree,
                              Dtype dtype = Dtype::float32);

    using Link::operator();
    Variable operator()(const Variable& x, const Variable& t) const;
    void visit(Visitor& visitor) override;

    catena::Parameter W;

private:
    std::string tree_;  // as JSON
    PluginFunction function_;
};

// Inception: four parallel branches of convolutions and pooling.
// relu of the concatenated channels of
//    a 1x1 convolution to out1 channels,
//    1x1 to proj3, relu, 3x3 to out3,
//    1x1 to proj5, relu, 5x5 to out5,
//    3x3 max pooling, 1x1 to proj_pool;
// images keep their height and width. (Szegedy et al., "Going Deeper with Convolutions", 2014.)
// Parameters: W, initially conv_init, and b, bias_init, of conv1, conv3, conv5, proj3, proj5 and
// projp; defaults and errors are those of Convolution2D.
class Inception : public Chain {
public:
    Inception(std::int64_t in_channels, std::int64_t out1, std::int64_t proj3, std::int64_t out3,
              std::int64_t proj5, std::int64_t out5, std::int64_t proj_pool,
              const Initial& conv_init = {}, const Initial& bias_init = {});

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override;

    Convolution2D conv1, conv3, conv5, proj3, proj5, projp;

private:
    PluginFunction relu_, concat_, pool_;
};

}  // namespace links
}  // namespace catena
