// Inception: the parts and how they are put together.
#include <catena/links/inception.hpp>

namespace catena::links {

Inception::Inception(std::int64_t in_channels, std::int64_t out1, std::int64_t channels3,
                     std::int64_t out3, std::int64_t channels5, std::int64_t out5,
                     std::int64_t proj_pool)
    : conv1(in_channels, out1, 1),
      conv3(channels3, out3, 3, 1, 1),
      conv5(channels5, out5, 5, 1, 2),
      proj3(in_channels, channels3, 1),
      proj5(in_channels, channels5, 1),
      projp(in_channels, proj_pool, 1),
      relu_("catena.relu"),
      concat_("catena.concat", {{"axis", 1}}),
      pool_("catena.max_pooling_2d", {{"ksize", 3}, {"stride", 1}, {"pad", 1}}) {}

Variable Inception::operator()(const Variable& x) const {
    const auto relu = [&](const Variable& v) { return relu_.first({&v}); };
    const Variable one = conv1(x);
    const Variable three = conv3(relu(proj3(x)));
    const Variable five = conv5(relu(proj5(x)));
    const Variable pool = projp(pool_.first({&x}));
    return relu(concat_.first({&one, &three, &five, &pool}));
}

void Inception::visit(Visitor& visitor) {
    visitor("conv1", conv1)("conv3", conv3)("conv5", conv5);
    visitor("proj3", proj3)("proj5", proj5)("projp", projp);
}

}  // namespace catena::links
