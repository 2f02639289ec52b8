// FunctionSet: the map of links.
#include "support.hpp"

#include <catena/function_set.hpp>

#include <ranges>

namespace catena {

FunctionSet::FunctionSet(std::initializer_list<std::pair<std::string_view, Child>> links) {
    for (const auto& [name, child] : links) add(name, child);
}

Link& FunctionSet::add(std::string_view name, Child child) {
    if (name.empty() || name.find('/') != name.npos)
        fail<InvalidError>("[FunctionSet] add: expected a name without '/', got '{}'", name);
    const auto [place, added] = children_.emplace(std::string(name), std::move(child));
    if (!added) fail<InvalidError>("[FunctionSet] add: expected a new name, got '{}'", name);
    return place->second.link();
}

Link& FunctionSet::operator[](std::string_view path) const {
    const auto slash = path.find('/');
    const auto child = children_.find(path.substr(0, slash));
    if (child == children_.end()) {
        const std::string names = fmt::format("{}", fmt::join(std::views::keys(children_), ", "));
        fail<InvalidError>(
            "[FunctionSet] link: expected {}, got '{}'",
            names.empty() ? "the name of a link, of which there are none" : "one of " + names,
            path);
    }
    Link& link = child->second.link();
    if (slash == path.npos) return link;
    const auto* set = dynamic_cast<const FunctionSet*>(&link);
    if (!set) throw_wrong_kind(child->first, typeid(FunctionSet), link);
    return (*set)[path.substr(slash + 1)];
}

bool FunctionSet::contains(std::string_view path) const {
    const auto slash = path.find('/');
    const auto child = children_.find(path.substr(0, slash));
    if (child == children_.end() || slash == path.npos) return child != children_.end();
    const auto* set = dynamic_cast<const FunctionSet*>(&child->second.link());
    return set && set->contains(path.substr(slash + 1));
}

FunctionSet& FunctionSet::to_gpu(const cuda::DeviceLike& device) & {
    Link::to_gpu(device);
    return *this;
}
FunctionSet FunctionSet::to_gpu(const cuda::DeviceLike& device) && {
    return std::move(to_gpu(device));
}
FunctionSet& FunctionSet::to_cpu() & {
    Link::to_cpu();
    return *this;
}
FunctionSet FunctionSet::to_cpu() && { return std::move(to_cpu()); }

void FunctionSet::visit(Visitor& visitor) {
    for (auto& [name, child] : children_) visitor(name, child.link());
}

void FunctionSet::throw_wrong_kind(std::string_view path, const std::type_info& expected,
                                   const Link& got) {
    fail<InvalidError>("[FunctionSet] {}: expected {}, got {}", path, class_name(expected),
                       class_name(typeid(got)));
}

}  // namespace catena
