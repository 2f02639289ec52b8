// BinaryHierarchicalSoftmax: initial parameters and the call.
#include <catena/core/error.hpp>
#include <catena/initializers.hpp>
#include <catena/links/binary_hierarchical_softmax.hpp>
#include <catena/operators.hpp>

#include <fmt/format.h>

namespace catena::links {

BinaryHierarchicalSoftmax::BinaryHierarchicalSoftmax(std::int64_t in_size, const WordTree& tree)
    : tree_(tree.to_json()), function_("catena.binary_hierarchical_softmax", {{"tree", tree_}}) {
    if (in_size < 1) {
        throw ShapeError(fmt::format(
            "[BinaryHierarchicalSoftmax] in_size: expected a positive number, got {}", in_size));
    }
    W = as_parameter(initializers::Uniform(1)({tree.inner_nodes(), in_size}));
    // Nothing is computed; a tree with a word that stands twice is refused here.
    const Variable none(Array::zeros({0, in_size}));
    (*this)(none, Variable(Array::zeros({0}, Dtype::int64)));
}

Variable BinaryHierarchicalSoftmax::operator()(const Variable& x, const Variable& t) const {
    return function_.first({&x, &t, &W});
}

// Chainer's files have no tree, and its codes the opposite sign.
void BinaryHierarchicalSoftmax::visit(Visitor& visitor) {
    visitor("W", W).require_or_convert("tree", tree_, "W",
                                       [](const Array& theirs) { return -theirs; });
}

}  // namespace catena::links
