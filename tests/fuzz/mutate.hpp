// Damage, of all kinds that files suffer.
#pragma once

#include <catena/random.hpp>

#include <string>
#include <vector>

namespace catena_fuzz {

// One of the inputs with a few changes: bits and bytes, numbers at the ends of their ranges, parts cut out,
// doubled, moved, or taken from another input.
std::string mutate(const std::vector<std::string>& inputs, catena::Generator& random);

}  // namespace catena_fuzz
