// WordTree: a binary tree with words at its leaves, and Huffman's way to build one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace catena {

// A word, or two trees:
//
//     WordTree tree{{3, 1}, {2, 0}};
//     tree.left().right().word();  // 1
//     tree.to_json();              // "[[3, 1], [2, 0]]"
//
// A value: copies share nothing. Trees may be as deep as they have words.
class WordTree {
public:
    WordTree(std::int64_t word) : nodes_{{word, 1}} {}  // NOLINT: a word is a tree
    WordTree(const WordTree& left, const WordTree& right);

    bool is_word() const { return nodes_.size() == 1; }
    // Throw InvalidError if it is not one word, or if it is one.
    std::int64_t word() const;
    WordTree left() const;
    WordTree right() const;

    std::int64_t words() const { return static_cast<std::int64_t>(nodes_.size() + 1) / 2; }
    std::int64_t inner_nodes() const { return words() - 1; }
    // As the functions take it: a number, or [left, right].
    std::string to_json() const;
    bool operator==(const WordTree&) const = default;

private:
    friend WordTree create_huffman_tree(const std::map<std::int64_t, std::int64_t>& counts);

    struct Node {
        std::int64_t word;  // 0 where the node is an inner one
        std::int64_t size;  // nodes in the tree that begins here
        bool operator==(const Node&) const = default;
    };
    WordTree(std::vector<Node>::const_iterator first, std::int64_t size)
        : nodes_(first, first + size) {}
    void require_inner() const;

    std::vector<Node> nodes_;  // in pre-order: the left tree follows its root, then the right one
};

// The tree in which frequent words lie high: {word: count}. The two trees of the smallest counts are
// joined, the smaller one on the left, until one is left. Of equal counts, words come before joined
// trees, words in ascending order, joined trees in the order in which they were made; so the tree
// depends on the counts alone. One word is a tree of its own. Throws InvalidError for no words,
// negative counts, and counts whose sum is beyond 64 bits. (Huffman, "A Method for the Construction
// of Minimum-Redundancy Codes", 1952.)
WordTree create_huffman_tree(const std::map<std::int64_t, std::int64_t>& counts);

namespace functions {
using catena::create_huffman_tree;
}

}  // namespace catena
