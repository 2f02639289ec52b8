// What rank 0 tells the others: failures that need a process of its own to happen.
#include "hub.hpp"

#include <doctest/doctest.h>

using namespace catena_nccl;

namespace {

struct Told {
    int rank;
    Message message;
};

Message started(int rank, const std::string& text, Route route = collective) {
    Message m = {.kind = Kind::started, .route = route};
    m.head = "rank " + std::to_string(rank) + ": [" + text + "] w";
    m.text = text;
    return m;
}

class Three {
public:
    std::vector<Told> told;
    Hub hub{3,
            [this](int rank, const Message& m) {
                told.push_back({rank, m});
            },
            [] { return std::string("id"); }};
    // The text of the failure that a rank was told, or empty.
    std::string failure(int rank) const {
        for (const Told& t : told)
            if (t.rank == rank && t.message.kind == Kind::failed) return t.message.text;
        return {};
    }
};

}  // namespace

TEST_CASE("a rank whose connection ends without a farewell makes all others fail") {
    Three three;
    three.hub.handle(0, started(0, "barrier"));
    three.hub.gone(1);
    CHECK(three.failure(0) == "rank 0: [barrier] w: expected rank 1, got the end of its process");
    CHECK(three.failure(2) == "rank 2: [group]: expected rank 1, got the end of its process");
    CHECK(three.failure(1).empty());
}

TEST_CASE("a rank that has left is no failure until others wait for it") {
    Three three;
    for (int r = 0; r < 3; ++r) three.hub.handle(r, started(r, "barrier"));
    three.hub.handle(1, {.kind = Kind::left});
    three.hub.gone(1);
    CHECK(three.failure(0).empty());
    three.hub.handle(2, started(2, "bcast"));
    CHECK(three.failure(2) == "rank 2: [bcast] w: expected rank 1, got the end of its membership");
}

TEST_CASE("a rank may leave while others still have to start what it has started") {
    Three three;
    three.hub.handle(1, started(1, "barrier"));
    three.hub.handle(1, {.kind = Kind::left});
    three.hub.handle(0, started(0, "barrier"));
    three.hub.handle(2, started(2, "barrier"));
    CHECK(three.failure(0).empty());
    CHECK(three.told.size() == 2);
    CHECK(three.told[0].message.kind == Kind::agreed);
    CHECK(three.told[0].message.a == 1);
}

TEST_CASE("each pair of ranks has an order of its own") {
    Three three;
    three.hub.handle(0, started(0, "x", {0, 1}));
    three.hub.handle(2, started(2, "y", {1, 2}));
    three.hub.handle(1, started(1, "y", {1, 2}));
    CHECK(three.told.size() == 2);
    three.hub.handle(1, started(1, "x", {0, 1}));
    CHECK(three.told.size() == 4);
    CHECK(three.failure(0).empty());
}

TEST_CASE("an operation that all have started, and that is still running") {
    Three three;
    for (int r = 0; r < 3; ++r) three.hub.handle(r, started(r, "barrier"));
    Message late = {.kind = Kind::late, .a = 0};
    late.head = "rank 2: [barrier] w";
    late.text = "3 seconds";
    three.hub.handle(2, late);
    for (int r = 0; r < 3; ++r)
        CHECK(three.failure(r) ==
              "rank 2: [barrier] w: expected its end within 3 seconds, got an operation that all "
              "ranks started and that still runs");
}
