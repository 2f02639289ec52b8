// ComputationalGraph: shows how variables were computed.
#pragma once

#include <catena/link.hpp>
#include <catena/lists.hpp>

#include <filesystem>

namespace catena {

struct ComputationalGraph {
    struct Node {
        bool is_call;       // a function call; otherwise a variable
        std::string label;  // "catena.linear"; "x (100, 784) float32"
        int rank;
        std::optional<std::size_t> group{};  // the composition that made it
    };
    struct Group {
        std::string label;                 // "catena.huber_loss"
        std::optional<std::size_t> outer;  // the composition that called it
    };
    std::vector<Node> nodes;    // in topological order
    std::vector<Group> groups;  // calls of functions that are compositions
    std::vector<std::pair<std::size_t, std::size_t>>
        edges;  // from node to node, in the direction of the data

    // Returns the graph in Graphviz's language. A composition is a frame around its parts.
    std::string to_dot() const;
    // Writes that text as NAME.dot or NAME.gv, or a drawing as NAME.svg, .png or .pdf, for which
    // Graphviz's program `dot` must be installed. Throws DataError for other names, if `dot` is
    // missing, and if the file cannot be written.
    void save(const std::filesystem::path& file) const;
    // Throws what save() would throw for this name. Call it before long work.
    static void require_savable(const std::filesystem::path& file);
};

// Returns the graph from which the outputs were computed. Parameters of the link are labelled with
// their paths in it, other variables with their names.
ComputationalGraph build_computational_graph(VariableList outputs, const Link* link = nullptr);

}  // namespace catena
