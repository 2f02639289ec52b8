// Image nets by their names in options and snapshots.
#pragma once

#include <catena/models/classifier.hpp>

namespace catena::models {

// "nin", "alexnet-bn", "googlenet".
std::vector<std::string_view> image_net_names();
// Throws InvalidError for other names, and the exceptions of the net.
std::unique_ptr<Classifier> make_image_net(std::string_view name, std::int64_t classes,
                                           const Scale& scale);

}  // namespace catena::models
