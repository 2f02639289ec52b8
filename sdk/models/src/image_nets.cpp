// Image nets by name.
#include <catena/core/error.hpp>
#include <catena/models/alexnet_bn.hpp>
#include <catena/models/googlenet.hpp>
#include <catena/models/image_nets.hpp>
#include <catena/models/nin.hpp>

#include <fmt/format.h>

namespace catena::models {
namespace {

struct Entry {
    std::string_view name;
    std::unique_ptr<Classifier> (*make)(std::int64_t, const Scale&);
};

template <class Net>
std::unique_ptr<Classifier> make(std::int64_t classes, const Scale& scale) {
    return std::make_unique<Net>(classes, scale);
}

constexpr Entry entries[] = {
    {"nin", make<NIN>}, {"alexnet-bn", make<AlexNetBN>}, {"googlenet", make<GoogLeNet>}};

}  // namespace

std::vector<std::string_view> image_net_names() {
    std::vector<std::string_view> names;
    for (const Entry& entry : entries) names.push_back(entry.name);
    return names;
}

std::unique_ptr<Classifier> make_image_net(std::string_view name, std::int64_t classes,
                                           const Scale& scale) {
    for (const Entry& entry : entries) {
        if (entry.name == name) return entry.make(classes, scale);
    }
    throw InvalidError(
        fmt::format("[make_image_net] name: expected nin, alexnet-bn or googlenet, "
                    "got '{}'",
                    name));
}

}  // namespace catena::models
