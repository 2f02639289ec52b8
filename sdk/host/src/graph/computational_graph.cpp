// ComputationalGraph: collects the nodes of a graph, and draws them with Graphviz.
#include <catena/computational_graph.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/write_file.hpp>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <map>
#include <sstream>

extern char** environ;  // NOLINT: POSIX's

namespace catena {
namespace fs = std::filesystem;
namespace {

bool is_text(const fs::path& file) {
    return file.extension() == ".dot" || file.extension() == ".gv";
}

// Runs `dot`, which draws the graph in file `from` to file `to`.
void draw(const fs::path& from, const std::string& format, const fs::path& to) {
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
    using Key = const void*;
    std::map<Key, std::string> names;
    if (link) {
        for (const auto& [name, variable] : link->collect_parameters())
            names[&variable.node()] = name + ' ';
    }
    ComputationalGraph graph;
    std::map<const CallGroup*, std::size_t> groups;
    const std::function<std::optional<std::size_t>(const CallGroup*)> place_of =
        [&](const CallGroup* group) -> std::optional<std::size_t> {
        if (!group) return {};
        if (const auto known = groups.find(group); known != groups.end()) return known->second;
        const auto outer = place_of(group->outer.get());
        graph.groups.push_back({std::string(group->name), outer});
        return groups[group] = graph.groups.size() - 1;
    };
    std::map<Key, std::size_t> places;
    std::vector<std::pair<Key, ComputationalGraph::Node>> found;
    std::vector<std::pair<Key, Key>> edges;
    std::vector<const VariableNode*> open;
    const auto see = [&](const VariableNode& node) {
        if (!places.try_emplace(&node).second) return;
        std::string label = node.name ? *node.name + ' ' : "";
        if (const auto known = names.find(&node); known != names.end()) label = known->second;
        label += fmt::format("{} {}", to_string(node.data.shape()), name(node.data.dtype()));
        const GraphNode* const creator = node.creator.get();
        found.push_back(
            {&node, {false, label, node.rank(), place_of(creator ? creator->group() : nullptr)}});
        open.push_back(&node);
    };
    for (const Variable& output : outputs.view()) see(output.node());
    while (!open.empty()) {
        const VariableNode* variable = open.back();
        open.pop_back();
        const GraphNode* call = variable->creator.get();
        if (!call) continue;
        edges.emplace_back(call, variable);
        if (!places.try_emplace(call).second) continue;
        found.push_back(
            {call, {true, std::string(call->label()), call->rank(), place_of(call->group())}});
        for (const auto& input : call->inputs()) {
            if (!input) continue;
            edges.emplace_back(input.get(), call);
            see(*input);
        }
    }
    std::ranges::stable_sort(found, {}, [](const auto& each) {
        return std::pair(each.second.rank, !each.second.is_call);
    });
    for (auto& [key, node] : found) {
        places[key] = graph.nodes.size();
        graph.nodes.push_back(std::move(node));
    }
    for (const auto& [from, to] : edges) graph.edges.emplace_back(places[from], places[to]);
    return graph;
}

std::string ComputationalGraph::to_dot() const {
    std::ostringstream text;
    text << "digraph {\n  rankdir=TB;\n  node [fontname=\"sans-serif\", fontsize=10];\n";
    std::vector<std::vector<std::size_t>> members(groups.size() + 1), within(groups.size() + 1);
    for (std::size_t i = 0; i < nodes.size(); ++i)
        members[nodes[i].group.value_or(groups.size())].push_back(i);
    for (std::size_t i = 0; i < groups.size(); ++i)
        within[groups[i].outer.value_or(groups.size())].push_back(i);
    const std::function<void(std::size_t)> write = [&](std::size_t group) {
        for (const std::size_t i : members[group])
            text << "  n" << i << " [label=" << std::quoted(nodes[i].label) << ", "
                 << (nodes[i].is_call ? "shape=box, style=filled, fillcolor=\"#d8e6f3\""
                                      : "shape=ellipse")
                 << "];\n";
        for (const std::size_t i : within[group]) {
            text << "  subgraph cluster_" << i << " {\n  label=" << std::quoted(groups[i].label)
                 << ";\n";
            write(i);
            text << "  }\n";
        }
    };
    write(groups.size());
    for (const auto& [from, to] : edges) text << "  n" << from << " -> n" << to << ";\n";
    text << "}\n";
    return text.str();
}

void ComputationalGraph::require_savable(const fs::path& file) {
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

void ComputationalGraph::save(const fs::path& file) const {
    require_savable(file);
    if (is_text(file)) return write_file(file, to_dot());
    AtomicFile source(file), picture(file);
    source.write(to_dot());
    draw(source.temporary(), file.extension().string().substr(1), picture.temporary());
    picture.commit();
}

}  // namespace catena
