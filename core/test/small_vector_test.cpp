// Tests of SmallVector: elements in the object and in the pool, moves, no leaks, no double frees.
#include <catena/core/memory.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

using catena::SmallVector;

namespace {

using Counted = std::shared_ptr<int>;
using Vector = SmallVector<Counted, 2>;

std::vector<int> elements_of(const Vector& vector) {
    std::vector<int> result;
    for (const Counted& value : vector) result.push_back(*value);
    return result;
}
Vector up_to(int n) {
    Vector vector;
    for (int i = 0; i < n; ++i) vector.push_back(std::make_shared<int>(i));
    return vector;
}
std::vector<int> range(int n) {
    std::vector<int> result(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) result[static_cast<std::size_t>(i)] = i;
    return result;
}

}  // namespace

TEST_CASE("a small vector moves, from its own room and from the pool") {
    for (const int from : {0, 1, 2, 3, 9}) {
        for (const int to : {0, 2, 3, 8}) {
            Vector source = up_to(from), other = up_to(to);
            other = std::move(source);
            CHECK(elements_of(other) == range(from));
            CHECK(source.empty());  // NOLINT: empty after a move, and good for more
            source.push_back(std::make_shared<int>(7));
            CHECK(elements_of(source) == std::vector<int>{7});

            const Vector last(std::move(other));
            CHECK(elements_of(last) == range(from));
        }
    }
}

TEST_CASE("a small vector frees what it drops") {
    const Counted one = std::make_shared<int>(1);
    {
        Vector vector(5, one);
        CHECK(one.use_count() == 6);
        vector.resize(2);
        CHECK(one.use_count() == 3);
        vector.resize(4);
        CHECK(vector[3] == nullptr);
        vector.pop_back();
        vector.pop_back();
        vector.append(&one, &one + 1);
        CHECK(one.use_count() == 4);
        vector.assign({one});
        CHECK(one.use_count() == 2);
    }
    CHECK(one.use_count() == 1);
}

TEST_CASE("a small vector takes an element of its own while it grows") {
    SmallVector<std::string, 1> words{"a text that is too long for a string's own room"};
    for (int i = 0; i < 6; ++i) words.push_back(words[0]);
    CHECK(words.size() == 7);
    for (const auto& word : words) CHECK(word == words[0]);
}

TEST_CASE("new elements of a small vector of numbers are zero") {
    SmallVector<int, 2> numbers(7);
    for (const int number : numbers) CHECK(number == 0);
    numbers.resize_for_overwrite(3);
    CHECK(numbers.size() == 3);
}
