// Binary trees with labels at their leaves, parsed from JSON, and a cache of such trees.
#pragma once

#include <charconv>
#include <memory>
#include <vector>

#include <catena/plugin.hpp>
#include <catena/plugin/vendor.hpp>

namespace catena::plugins {

using namespace catena::plugin;

class LabelTree {
public:
    // The inner node above a node or leaf (-1: none, it is the root), and the side it is on.
    struct Link {
        std::int32_t parent;
        std::int32_t code;  // -1: left, +1: right, 0: the root
        bool operator==(const Link&) const = default;
    };
    struct Leaf {
        std::int64_t label;
        Link link;
        std::size_t position;
        bool operator==(const Leaf&) const = default;
    };
    bool operator==(const LabelTree&) const = default;

    // Parses "[[0, 1], 2]": a label, or [left, right]. Inner nodes are numbered in pre-order.
    // Throws CATENA_E_INVALID with the position of the error and the function's name.
    static LabelTree parse(const char* function, std::string_view text);

    std::int64_t nodes() const { return static_cast<std::int64_t>(nodes_.size()); }
    std::int64_t depth() const { return depth_; }  // of the deepest leaf
    const Leaf* find(std::int64_t label) const {
        const auto found = std::ranges::lower_bound(leaves_, label, {}, &Leaf::label);
        return found == leaves_.end() || found->label != label ? nullptr : &*found;
    }
    const std::vector<Link>& links() const { return nodes_; }    // of the inner nodes
    const std::vector<Leaf>& leaves() const { return leaves_; }  // sorted by label
    // Calls step(node, code) for each inner node above a leaf, the root last.
    template <class Step>
    CATENA_KERNEL void walk(const Leaf& leaf, const Step& step) const {
        for (Link link = leaf.link; link.parent >= 0;
             link = nodes_[static_cast<std::size_t>(link.parent)])
            step(std::int64_t{link.parent}, link.code);
    }

private:
    std::vector<Link> nodes_;
    std::vector<Leaf> leaves_;  // sorted by label
    std::int64_t depth_ = 0;
};

inline LabelTree LabelTree::parse(const char* function, std::string_view text) {
    struct Open {
        std::int32_t node;
        int children;
    };
    LabelTree tree;
    std::vector<Open> open;  // no recursion: the depth may reach the number of labels
    std::size_t at = 0;
    const auto wrong = [&](const std::string& expected) {
        const std::string got =
            at < text.size() ? "'" + std::string(1, text[at]) + "'" : std::string("the end");
        fail(CATENA_E_INVALID, function, ("tree at " + std::to_string(at)).c_str(), expected, got);
    };
    const auto skip = [&] {
        while (at < text.size() && std::string_view(" \t\r\n").find(text[at]) != text.npos) ++at;
    };
    const auto take = [&](char c) {
        skip();
        if (at == text.size() || text[at] != c) wrong(std::string("'") + c + "'");
        ++at;
    };
    for (;;) {
        skip();
        const Link link =
            open.empty() ? Link{-1, 0} : Link{open.back().node, open.back().children == 0 ? -1 : 1};
        if (at < text.size() && text[at] == '[') {
            ++at;
            open.push_back({static_cast<std::int32_t>(tree.nodes_.size()), 0});
            tree.nodes_.push_back(link);
            continue;
        }
        std::int64_t label = 0;
        const char* const first = text.data() + at;
        const auto [end, error] = std::from_chars(first, text.data() + text.size(), label);
        if (error != std::errc()) wrong("a whole number or '['");
        tree.leaves_.push_back({label, link, at});
        tree.depth_ = std::max(tree.depth_, static_cast<std::int64_t>(open.size()));
        at += static_cast<std::size_t>(end - first);
        while (!open.empty() && ++open.back().children == 2) {
            take(']');
            open.pop_back();
        }
        if (open.empty()) break;
        take(',');
    }
    skip();
    if (at != text.size()) wrong("the end");
    std::ranges::stable_sort(tree.leaves_, {}, &Leaf::label);
    const auto twice = std::ranges::adjacent_find(tree.leaves_, {}, &Leaf::label);
    if (twice != tree.leaves_.end())
        fail(CATENA_E_INVALID, function, ("tree at " + std::to_string(twice[1].position)).c_str(),
             "each label once", twice->label);
    return tree;
}

// Returns the tree of a text: parses it, unless it is in the cache, which holds the 8 trees that
// were used last. Errors name the function.
inline std::shared_ptr<const LabelTree> tree_of(const char* function, std::string_view text) {
    // Plugins are never unloaded.
    static auto& cache = *new Cache<std::string, std::shared_ptr<const LabelTree>>(8);
    const std::string key(text);
    if (auto known = cache.find(key)) return *known;
    auto tree = std::make_shared<const LabelTree>(LabelTree::parse(function, text));
    cache.keep(key, tree);
    return tree;
}

}  // namespace catena::plugins
