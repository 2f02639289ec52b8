// require_same(): checks that all ranks call an operation with the same arguments.
#include "same.hpp"

#include <catena/fail.hpp>

namespace catena::distributed {
namespace {

// The first line in which two texts differ, from each.
std::pair<std::string, std::string> first_difference(std::string_view a, std::string_view b) {
    while (!a.empty() || !b.empty()) {
        const std::string_view x = a.substr(0, a.find('\n')), y = b.substr(0, b.find('\n'));
        if (x != y)
            return {x.empty() ? "no more" : std::string(x), y.empty() ? "no more" : std::string(y)};
        a.remove_prefix(std::min(a.size(), x.size() + 1));
        b.remove_prefix(std::min(b.size(), y.size() + 1));
    }
    return {};
}

}  // namespace

void require_same(const Communicator& communicator, std::string_view operation,
                  const std::string& text, int root) {
    const std::string expected = communicator.bcast_text(text, root);
    if (text == expected) return;
    const auto [there, here] = first_difference(expected, text);
    const std::string message =
        fmt::format("[{}] rank {}: expected the values of rank {}, {}, got {}", operation,
                    communicator.rank(), root, there, here);
    communicator.abort(message);  // the others wait for this rank
    throw InvalidError(message);
}

}  // namespace catena::distributed
