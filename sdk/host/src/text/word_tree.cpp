// WordTree: an array of nodes, without recursion, so that trees may have any depth.
#include <catena/fail.hpp>
#include <catena/word_tree.hpp>

#include <functional>
#include <queue>

namespace catena {

WordTree::WordTree(const WordTree& left, const WordTree& right)
    : nodes_{{0, static_cast<std::int64_t>(left.nodes_.size() + right.nodes_.size() + 1)}} {
    nodes_.insert(nodes_.end(), left.nodes_.begin(), left.nodes_.end());
    nodes_.insert(nodes_.end(), right.nodes_.begin(), right.nodes_.end());
}

std::int64_t WordTree::word() const {
    if (!is_word())
        fail<InvalidError>("[WordTree] word: expected one word, got a tree of {}", words());
    return nodes_[0].word;
}

void WordTree::require_inner() const {
    if (is_word())
        fail<InvalidError>("[WordTree] left, right: expected two trees, got the word {}", word());
}

WordTree WordTree::left() const {
    require_inner();
    return {nodes_.begin() + 1, nodes_[1].size};
}

WordTree WordTree::right() const {
    require_inner();
    const std::int64_t skip = 1 + nodes_[1].size;
    return {nodes_.begin() + skip, nodes_[0].size - skip};
}

std::string WordTree::to_json() const {
    std::string text;
    std::vector<int> children;  // finished children of each open bracket
    for (const Node& node : nodes_) {
        if (node.size > 1) {
            text += '[';
            children.push_back(0);
            continue;
        }
        text += std::to_string(node.word);
        while (!children.empty() && ++children.back() == 2) {
            text += ']';
            children.pop_back();
        }
        if (!children.empty()) text += ", ";
    }
    return text;
}

WordTree create_huffman_tree(const std::map<std::int64_t, std::int64_t>& counts) {
    if (counts.empty())
        throw InvalidError("[create_huffman_tree] counts: expected at least one word, got none");
    std::vector<WordTree> trees;  // words in ascending order, then joined trees
    using Entry = std::pair<std::int64_t, std::size_t>;  // count, index
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    for (const auto& [word, count] : counts) {
        if (count < 0)
            fail<InvalidError>("[create_huffman_tree] count of {}: expected at least 0, got {}",
                               word, count);
        queue.emplace(count, trees.size());
        trees.emplace_back(word);
    }
    const auto pop = [&] {
        const Entry top = queue.top();
        queue.pop();
        return top;
    };
    while (queue.size() > 1) {
        const auto [count, left] = pop();
        const auto [more, right] = pop();
        std::int64_t sum = 0;
        if (__builtin_add_overflow(count, more, &sum))
            throw InvalidError(
                "[create_huffman_tree] counts: expected a sum that fits into 64 bits, got a larger "
                "one");
        queue.emplace(sum, trees.size());
        trees.push_back({std::exchange(trees[left], 0), std::exchange(trees[right], 0)});
    }
    return trees.back();
}

}  // namespace catena
