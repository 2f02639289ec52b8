// Unusual calls that a host may make: any attributes that the schema allows, shapes of any size,
// numbers of any value. The same seed makes the same calls.
#pragma once

#include <catena/testing/sample.hpp>

#include <random>

namespace catena::check {

// The nearest number that the dtype has; integers have no NaN.
void set_clamped(testing::Array& a, std::int64_t i, double value);

class Garbage {
public:
    explicit Garbage(std::uint64_t seed) : engine_(seed) {}

    // A call that the function accepts, with other values of most attributes.
    testing::Example attributes(const catena_function& f, const testing::Example& from);
    // With other shapes: `wild` ones may not even fit into memory.
    testing::Example shapes(const catena_function& f, const testing::Example& from, bool wild);
    catena_dtype dtype();
    // Numbers: mostly the example's, now and then any.
    testing::Array numbers(const testing::Example::Input& in, catena_dtype dtype);

    std::int64_t pick(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
    }
    bool chance(int of) { return pick(1, of) == 1; }

private:
    template <class T>
    const T& one_of(const std::vector<T>& list) {
        return list[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(list.size()) - 1))];
    }
    std::int64_t whole(const catena_attr_spec& spec);
    double real(const catena_attr_spec& spec);
    void attribute(const catena_attr_spec& spec, testing::OwnedAttrs& attrs);
    testing::Dims shape(const testing::Dims& from, bool wild);

    std::mt19937_64 engine_;
};

}  // namespace catena::check
