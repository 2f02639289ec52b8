// Image nets by the names that options and snapshots have.
#pragma once

#include <catena/models/classifier.hpp>

#include <memory>
#include <string_view>
#include <vector>

namespace catena::models {

// "nin", "alexnet-bn", "googlenet".
std::vector<std::string_view> image_net_names();
// Throws InvalidError for other names, and what the net throws.
std::unique_ptr<Classifier> make_image_net(std::string_view name, std::int64_t classes,
                                           const Scale& scale);

}  // namespace catena::models
