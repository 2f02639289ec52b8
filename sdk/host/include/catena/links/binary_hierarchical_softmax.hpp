// BinaryHierarchicalSoftmax: a loss over many words that costs only the depth of a tree.
#pragma once

#include <catena/core/plugin_function.hpp>
#include <catena/link.hpp>
#include <catena/word_tree.hpp>

namespace catena::links {

// loss = link(x, t): for x (N, in_size) and words t (N,), the sum over the samples of -log of the
// probability of the path to t. Each inner node turns left or right with probability sigmoid(+-w .
// x). Calls throw ValueError for words that are not in the tree.
// Parameter: W (tree.inner_nodes(), in_size), drawn from U[-1, 1). The tree is saved too: it must
// be the same when parameters are loaded.
//
// The sign is that of the paper and of Chainer's documentation: -1 turns left. Chainer's code does
// the opposite, so its W is the negative of this one. Loading one of its files, which have W but no
// tree, converts W, also if the file is renamed or loaded partially; make the link with the same
// tree before. To use a file from catena in Chainer, negate W before saving.
// The state of an optimizer is not converted, because the files do not show who wrote them: negate
// sums of gradients of W from Chainer before loading (load_arrays(), save_arrays()). These are m of
// Adam and v of MomentumSGD.
//
// New links are on the thread's current device, in float32. Throws ShapeError for sizes below 1,
// InvalidError for a word that occurs twice, PluginError if no plugin has
// catena.binary_hierarchical_softmax.
//
//     links::BinaryHierarchicalSoftmax loss(650, create_huffman_tree(counts));
class BinaryHierarchicalSoftmax : public Link {
public:
    BinaryHierarchicalSoftmax(std::int64_t in_size, const WordTree& tree);

    using Link::operator();
    Variable operator()(const Variable& x, const Variable& t) const;
    void visit(Visitor& visitor) override;

    catena::Parameter W;

private:
    std::string tree_;  // as JSON
    PluginFunction function_;
};

}  // namespace catena::links
