// Kinds of damage.
#include "mutate.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace catena_fuzz {
namespace {

using catena::Generator;

constexpr std::size_t longest = 1 << 16;

// Numbers that readers trip over.
constexpr std::array<std::uint64_t, 14> odd_numbers{
    0,      1,          0x7f,       0x80,       0xff,        0x7fff,     0xffff,
    0x8000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 1ull << 62, ~0ull};

void change(std::string& text, const std::string& other, Generator& random) {
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random.below(n)); };
    const std::size_t size = text.size();
    if (size == 0) {
        text = other;
        return;
    }
    const std::size_t at = below(size);
    const std::size_t length = 1 + below(std::min<std::size_t>(size - at, 1 + below(64)));
    switch (below(9)) {
        case 0: text[at] = static_cast<char>(text[at] ^ 1 << below(8)); break;
        case 1: text[at] = static_cast<char>(below(256)); break;
        case 2: {  // a number of 1, 2, 4 or 8 bytes, in either order
            const std::uint64_t number = odd_numbers[below(odd_numbers.size())];
            const std::size_t bytes = std::size_t{1} << below(4);
            const bool big = below(2) == 0;
            for (std::size_t i = 0; i < bytes && at + i < size; ++i)
                text[at + i] = static_cast<char>(number >> 8 * (big ? bytes - 1 - i : i));
            break;
        }
        case 3: text.erase(at, length); break;
        case 4: text.insert(at, text.substr(below(size), length)); break;
        case 5: text.resize(at); break;
        case 6: {
            const std::size_t from = below(std::max<std::size_t>(other.size(), 1));
            text.replace(at, length, other, from, 1 + below(64));
            break;
        }
        case 7: text.insert(at, std::string(length, static_cast<char>(below(256)))); break;
        default: {  // a digit, as texts have them
            const auto digit = text.find_first_of("0123456789", at);
            if (digit == text.npos) break;
            constexpr std::array<const char*, 6> digits{"0",           "-1",   "9",
                                                        "99999999999", "1e99", "4294967296"};
            text.replace(digit, 1, digits[below(digits.size())]);
        }
    }
}

}  // namespace

std::string mutate(const std::vector<std::string>& inputs, Generator& random) {
    std::string text = inputs[random.below(inputs.size())];
    const std::uint64_t changes = std::uint64_t{1} << random.below(5);
    for (std::uint64_t i = 0; i < changes; ++i)
        change(text, inputs[random.below(inputs.size())], random);
    text.resize(std::min(text.size(), longest));
    return text;
}

}  // namespace catena_fuzz
