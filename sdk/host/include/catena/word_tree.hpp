// WordTree: a binary tree with words as leaves, and Huffman's algorithm to build one.
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
// A value type: copies share nothing. A tree may be as deep as it has words.
class WordTree {
public:
    WordTree(std::int64_t word) : nodes_{{word, 1}} {}  // NOLINT: a word is a tree
    WordTree(const WordTree& left, const WordTree& right);

    bool is_word() const { return nodes_.size() == 1; }
    // word() throws InvalidError for a tree of several words; left() and right() for a single word.
    std::int64_t word() const;
    WordTree left() const;
    WordTree right() const;

    std::int64_t words() const { return static_cast<std::int64_t>(nodes_.size() + 1) / 2; }
    std::int64_t inner_nodes() const { return words() - 1; }
    // The format that functions use: a number, or [left, right].
    std::string to_json() const;
    bool operator==(const WordTree&) const = default;

private:
    struct Node {
        std::int64_t word;  // 0 for inner nodes
        std::int64_t size;  // number of nodes in this subtree
        bool operator==(const Node&) const = default;
    };
    WordTree(std::vector<Node>::const_iterator first, std::int64_t size)
        : nodes_(first, first + size) {}
    void require_inner() const;

    std::vector<Node> nodes_;  // in pre-order: root, left tree, right tree
};

// The tree in which frequent words are near the root: {word: count}. The two trees with the
// smallest counts are joined, the smaller one on the left, until one is left. For equal counts,
// words come before joined trees, words in ascending order, joined trees in the order of their
// creation; so the tree depends only on the counts. A single word is a tree of its own. Throws
// InvalidError for no words, negative counts, and counts whose sum exceeds 64 bits. (Huffman, "A
// Method for the Construction of Minimum-Redundancy Codes", 1952.)
WordTree create_huffman_tree(const std::map<std::int64_t, std::int64_t>& counts);

namespace functions {
using catena::create_huffman_tree;
}

}  // namespace catena
