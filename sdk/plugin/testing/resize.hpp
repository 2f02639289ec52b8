// Other calls derived from an example: smaller, empty, larger, malformed.
#pragma once

#include <functional>

#include "testing/sample.hpp"

namespace catena::testing::detail {

struct Resize {
    std::int64_t from;
    std::int64_t to;
    bool multiples = false;   // extents that are multiples of `from` keep their ratio
    bool attributes = false;  // lists of integers, too
};
// Every extent of that size, wherever it stands: equal extents are taken to be the same thing.
Example resize_all(Example e, const Resize& r);
// First extents of the inputs in a set.
Example resize_first(Example e, std::uint64_t inputs, const Resize& r);

// Sets of inputs whose first extents are equal, larger sets first.
std::vector<std::uint64_t> equal_firsts(const Example& e);
std::int64_t first_extent(const Example& e, std::uint64_t inputs);
std::int64_t elements(const Example& e);  // of the largest input

// How often each enlarge() of the process doubled an extent. Time decides, so that a repetition has to
// be given the numbers.
struct Doublings {
    std::vector<int> given;  // of the first ones
    std::vector<int> done;
    bool cut = false;              // time ended the last one
    void (*told)(bool) = nullptr;  // after each one
};
extern Doublings doublings;

// A larger call, as far as it stays quick: the extent doubles from `from` to `to` for as long as a
// call takes little time. make(extent) gives nothing where the call is refused.
std::optional<Sample> enlarge(std::int64_t from, std::int64_t to,
                              const std::function<std::optional<Sample>(std::int64_t)>& make);
// A call with longer first extents, up to `most` and to inputs of `total` elements, if there is one
// for which accepted() gives a sample.
std::optional<Sample> longer_first(
    const Example& e, std::int64_t total, std::int64_t most,
    const std::function<std::optional<Sample>(const Example&)>& accepted);

// Shapes with one extent changed.
std::vector<Example> wrong_shapes(const Example& e);
// One axis more or less.
std::vector<Example> wrong_ranks(const Example& e);

}  // namespace catena::testing::detail
