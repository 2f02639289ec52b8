// Walking a graph backwards, and drawing it.
#include <catena/computational_graph.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/write_file.hpp>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <map>
#include <numeric>
#include <sstream>

extern char** environ;  // NOLINT: POSIX's

namespace catena {
namespace {

bool is_text(const std::filesystem::path& file) {
    return file.extension() == ".dot" || file.extension() == ".gv";
}

class Builder {
public:
    explicit Builder(const Link* link) {
        if (!link) return;
        for (const auto& [name, variable] : link->collect_parameters())
            names_[&variable.node()] = name;
    }

    void add(std::span<const Variable> outputs) {
        std::vector<const VariableNode*> open;
        for (const Variable& output : outputs) {
            if (see(output.node())) open.push_back(&output.node());
        }
        while (!open.empty()) {
            const VariableNode* variable = open.back();
            open.pop_back();
            const GraphNode* call = variable->creator.get();
            if (!call) continue;
            const bool first = see(*call);
            edges_.emplace_back(call, variable);
            if (!first) continue;
            for (const auto& input : call->inputs()) {
                if (!input) continue;
                edges_.emplace_back(input.get(), call);
                if (see(*input)) open.push_back(input.get());
            }
        }
    }

    ComputationalGraph build() const {
        std::vector<std::size_t> order(nodes_.size()), place(nodes_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, {}, [&](std::size_t i) {
            return std::pair(nodes_[i].rank, !nodes_[i].is_call);
        });
        ComputationalGraph graph;
        for (const std::size_t i : order) {
            place[i] = graph.nodes.size();
            graph.nodes.push_back(nodes_[i]);
        }
        for (const auto& [from, to] : edges_)
            graph.edges.emplace_back(place[seen_.at(from)], place[seen_.at(to)]);
        return graph;
    }

private:
    bool see(const VariableNode& node) {
        if (!seen_.try_emplace(&node, nodes_.size()).second) return false;
        std::string label;
        if (const auto found = names_.find(&node); found != names_.end())
            label = found->second + ' ';
        else if (node.name) label = *node.name + ' ';
        label += fmt::format("{} {}", to_string(node.data.shape()), name(node.data.dtype()));
        nodes_.push_back({false, label, node.rank()});
        return true;
    }
    bool see(const GraphNode& call) {
        if (!seen_.try_emplace(&call, nodes_.size()).second) return false;
        nodes_.push_back({true, std::string(call.label()), call.rank()});
        return true;
    }

    std::map<const void*, std::string> names_;
    std::map<const void*, std::size_t> seen_;
    std::vector<ComputationalGraph::Node> nodes_;
    std::vector<std::pair<const void*, const void*>> edges_;
};

// Lets `dot` draw one file into another.
void draw(const std::filesystem::path& from, const std::string& format,
          const std::filesystem::path& to) {
    std::string program = "dot", kind = "-T" + format, out = "-o" + to.string(), in = from.string();
    char* arguments[] = {program.data(), kind.data(), out.data(), in.data(), nullptr};
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, "dot", nullptr, nullptr, arguments, environ);
    if (error != 0)
        fail<DataError>("[ComputationalGraph] expected the program dot to start, got {}",
                        std::strerror(error));
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail<DataError>("[ComputationalGraph] expected dot to draw {}, got status {}", format,
                        status);
}

}  // namespace

ComputationalGraph build_computational_graph(VariableList outputs, const Link* link) {
    Builder builder(link);
    builder.add(outputs.view());
    return builder.build();
}

std::string ComputationalGraph::to_dot() const {
    std::ostringstream text;
    text << "digraph {\n  rankdir=TB;\n  node [fontname=\"sans-serif\", fontsize=10];\n";
    for (std::size_t i = 0; i < nodes.size(); ++i)
        text << "  n" << i << " [label=" << std::quoted(nodes[i].label) << ", "
             << (nodes[i].is_call ? "shape=box, style=filled, fillcolor=\"#d8e6f3\""
                                  : "shape=ellipse")
             << "];\n";
    for (const auto& [from, to] : edges) text << "  n" << from << " -> n" << to << ";\n";
    text << "}\n";
    return text.str();
}

void ComputationalGraph::require_savable(const std::filesystem::path& file) {
    const std::string ending = file.extension();
    require_writable(file);
    if (is_text(file)) return;
    if (ending != ".svg" && ending != ".png" && ending != ".pdf")
        fail<DataError>(
            "[ComputationalGraph] {}: expected a name that ends in .dot, .gv, .svg, .png or .pdf, "
            "got another",
            file.string());
    const char* path = std::getenv("PATH");
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
        if (access((folder + "/dot").c_str(), X_OK) == 0) return;
    }
    fail<DataError>(
        "[ComputationalGraph] {}: expected the program dot, which comes with Graphviz, in $PATH, "
        "got none; a name in .dot needs no program",
        file.string());
}

void ComputationalGraph::save(const std::filesystem::path& file) const {
    require_savable(file);
    if (is_text(file)) return write_file(file, to_dot());
    AtomicFile source(file), picture(file);
    source.write(to_dot());
    draw(source.temporary(), file.extension().string().substr(1), picture.temporary());
    picture.commit();
}

}  // namespace catena
