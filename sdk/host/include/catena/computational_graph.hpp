// ComputationalGraph: how variables came to be, to be looked at.
#pragma once

#include <catena/core/variable.hpp>
#include <catena/link.hpp>

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena {

struct ComputationalGraph {
    struct Node {
        bool is_call;       // of a function; else a variable
        std::string label;  // "catena.linear"; "x (100, 784) float32"
        int rank;
    };
    std::vector<Node> nodes;  // what came first stands first
    std::vector<std::pair<std::size_t, std::size_t>>
        edges;  // from node to node: data, on their way

    // In the language of Graphviz.
    std::string to_dot() const;
    // NAME.dot or NAME.gv is that text; NAME.svg, .png and .pdf are pictures, which Graphviz's program
    // `dot` draws. Throws DataError for other names, where there is no `dot`, and if it cannot be written.
    void save(const std::filesystem::path& file) const;
    // Throws what save() would throw for this name: to ask before long work, not after it.
    static void require_savable(const std::filesystem::path& file);
};

// All that the outputs were computed from. Parameters of the link are called by their paths in it, other
// variables by the names they have.
ComputationalGraph build_computational_graph(std::span<const Variable> outputs,
                                             const Link* link = nullptr);
inline ComputationalGraph build_computational_graph(std::initializer_list<Variable> outputs,
                                                    const Link* link = nullptr) {
    return build_computational_graph(std::span(outputs.begin(), outputs.size()), link);
}

}  // namespace catena
