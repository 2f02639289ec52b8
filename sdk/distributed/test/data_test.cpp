// Tests of data sets, minibatches and evaluations that are divided over ranks.
#include "ranks.hpp"

#include "temporary.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>

using namespace catena;
using namespace catena::distributed;

namespace {

Dataset examples(std::int64_t n) {
    std::vector<float> x(static_cast<std::size_t>(2 * n));
    std::vector<std::int32_t> t(static_cast<std::size_t>(n));
    std::iota(x.begin(), x.end(), 0.F);
    std::iota(t.begin(), t.end(), 0);
    return {{Array::from(std::span<const float>(x), {n, 2}),
             Array::from(std::span<const std::int32_t>(t), {n})}};
}

std::vector<int> labels_of(const std::vector<Array>& batch) {
    const auto x = batch[0].to_vector<int>(), t = batch[1].to_vector<int>();
    for (std::size_t i = 0; i < t.size(); ++i) CHECK(x[2 * i] == 2 * t[i]);
    return t;
}

struct Part {
    std::vector<int> items;
    double weight;
};

// The next minibatch of `ranks` readers, by parts.
template <class Reader, class Items>
std::vector<Part> next_of(std::vector<Reader>& ranks, const Items& items) {
    std::vector<Part> parts;
    for (Reader& reader : ranks) {
        const Share share = reader.share();
        const std::int64_t own = share.parts ? share.parts / share.size : 1;
        for (std::int64_t k = 0; k < own; ++k) {
            const std::vector<int> next = items(reader.next());
            parts.push_back({next, reader.weight()});
        }
    }
    return parts;
}

template <class Reader>
std::vector<Reader> shared(const Reader& reader, std::int64_t size, std::int64_t parts = 0) {
    std::vector<Reader> ranks(static_cast<std::size_t>(size), reader);
    for (std::int64_t r = 0; r < size; ++r)
        ranks[static_cast<std::size_t>(r)].set_share({r, size, parts});
    return ranks;
}

// Readers with a Share return, together, what one reader returns; weights are the parts' shares.
template <class Reader, class Items>
void compare(const Reader& reader, std::int64_t size, std::int64_t parts, const Items& items) {
    CAPTURE(size);
    CAPTURE(parts);
    Reader whole = reader;
    std::vector<Reader> ranks = shared(reader, size, parts);
    for (int step = 0; step < 12; ++step) {
        std::vector<int> expected = items(whole.next()), got;
        CHECK(whole.weight() == 1);
        double weights = 0;
        const std::vector<Part> all = next_of(ranks, items);
        const auto n = static_cast<double>(all.size());
        for (const Part& part : all) {
            got.insert(got.end(), part.items.begin(), part.items.end());
            CHECK(part.weight == doctest::Approx(static_cast<double>(part.items.size()) * n /
                                                 static_cast<double>(expected.size())));
            weights += part.weight / n;
        }
        CHECK(weights == doctest::Approx(1));
        std::ranges::sort(expected);  // text is ordered by step, then by row
        std::ranges::sort(got);
        CHECK(got == expected);
        for (const Reader& rank : ranks) {
            CHECK(rank.epoch() == whole.epoch());
            CHECK(rank.position() == whole.position());
        }
    }
}

// Numbers each token by where it is.
std::vector<int> tokens_of(const TextBatch& batch) {
    const auto x = batch.x.to_vector<int>(), t = batch.t.to_vector<int>();
    std::int64_t tokens = 0;
    for (const std::int64_t rows : batch.rows) tokens += rows;
    CHECK(tokens == batch.size());
    for (std::size_t i = 0; i < t.size(); ++i) CHECK(((t[i] == x[i] + 1) || x[i] == -1));
    return t;
}

std::vector<std::int32_t> text(int n) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(n));
    std::iota(tokens.begin(), tokens.end(), 0);
    return tokens;
}

}  // namespace

TEST_CASE("minibatches divided into shares, equal and unequal, also into several for each rank") {
    for (const std::int64_t batch_size : {1, 3, 8})
        for (std::int64_t size = 1; size <= 4; ++size)
            for (const std::int64_t parts : {std::int64_t{0}, size, 2 * size, 3 * size})
                compare(Minibatches(examples(19), batch_size, 5), size, parts, labels_of);
    // In order, each rank gets contiguous examples.
    std::vector<Minibatches> two = shared(Minibatches(examples(5), 5, 0, false), 2);
    CHECK(labels_of(two[0].next()) == std::vector{0, 1});
    CHECK(labels_of(two[1].next()) == std::vector{2, 3, 4});
    CHECK(two[1].weight() == doctest::Approx(6.0 / 5));
    // An empty part has the shape and the dtype of the others.
    std::vector<Minibatches> four = shared(Minibatches(examples(2), 2), 4);
    const auto none = four[0].next();
    CHECK(none[0].shape() == Shape{0, 2});
    CHECK(none[1].dtype() == Dtype::int32);
    CHECK(four[0].weight() == 0);
}

TEST_CASE("shares of running text, windows and sentences") {
    for (std::int64_t size = 1; size <= 4; ++size) {
        compare(RunningText(text(50), 3, 4), size, 0, tokens_of);
        for (const std::int64_t parts : {std::int64_t{0}, 2 * size}) {
            compare(RandomWindows(text(60), 5, 3, 7), size, parts, tokens_of);
            std::vector<std::int32_t> tokens = text(70);
            for (const std::size_t end : {9U, 13U, 14U, 30U, 31U, 33U, 50U, 69U}) tokens[end] = -1;
            const Sentences sentences(tokens, -1, 3, 8, 1);
            CAPTURE(size);
            Sentences whole = sentences;
            std::vector<Sentences> ranks = shared(sentences, size, parts);
            for (int step = 0; step < 8; ++step) {
                const std::int64_t expected = whole.next().size();
                std::int64_t got = 0;
                double weights = 0;
                for (Sentences& rank : ranks)
                    for (std::int64_t k = 0; k < (parts ? 2 : 1); ++k) {
                        const TextBatch batch = rank.next();
                        got += batch.size();
                        weights += rank.weight();
                        CHECK(std::ranges::is_sorted(batch.rows, std::greater()));
                        if (batch.rows.empty())
                            CHECK(batch.by_text(batch.x).shape() == Shape{0, 0});
                    }
                CHECK(got == expected);
                CHECK(weights == doctest::Approx(static_cast<double>(parts ? parts : size)));
                for (const Sentences& rank : ranks) CHECK(rank.position() == whole.position());
            }
        }
    }
    std::vector<RunningText> ranks = shared(RunningText(text(50), 4, 4), 2, 4);
    CHECK_THROWS_WITH_AS((void)ranks[0].next(),
                         "[RunningText] share: expected a part for each of 2 processes, got 4",
                         InvalidError);
}

TEST_CASE("a snapshot can be continued with another number of ranks") {
    const auto file = std::filesystem::temp_directory_path() /
                      ("catena-share-" + std::to_string(getpid()) + ".npz");
    std::vector<Minibatches> three = shared(Minibatches(examples(40), 6, 5), 3, 6);
    for (int i = 0; i < 9; ++i) next_of(three, labels_of);
    save_npz(file, three[1]);
    std::vector<Minibatches> two = shared(Minibatches(examples(40), 6, 0), 2);
    for (Minibatches& each : two) load_npz(file, each);
    std::filesystem::remove(file);
    for (int i = 0; i < 5; ++i) {
        std::vector<int> a, b;
        for (const Part& part : next_of(three, labels_of))
            a.insert(a.end(), part.items.begin(), part.items.end());
        for (const Part& part : next_of(two, labels_of))
            b.insert(b.end(), part.items.begin(), part.items.end());
        CHECK(a == b);
    }
    (void)three[0].next();
    CHECK_THROWS_WITH_AS(
        save_npz(file, three[0]),
        "[Minibatches] state: expected all 2 parts of the minibatch to be taken, got 1",
        InvalidError);
    CHECK_THROWS_WITH_AS(three[0].set_share({0, 2}),
                         "[Share] state: expected all 2 parts of the minibatch to be taken, got 1",
                         InvalidError);
    CHECK_THROWS_WITH_AS(two[0].set_share({2, 2}),
                         "[Share] rank: expected 0 to size - 1, got 2 of 2", InvalidError);
    CHECK_THROWS_WITH_AS(two[0].set_share({0, 2, 3}),
                         "[Share] parts: expected a multiple of size 2, got 3", InvalidError);
}

TEST_CASE("weights make the mean gradient that of the whole minibatch") {
    const Dataset data{{numbers({7, 3}, 1), numbers({7}, 2)}};
    const Array start = numbers({1, 3}, 3);
    const auto gradient = [&](const std::vector<Array>& batch) {
        const Variable W(start);
        const Variable y = F::linear(as_variable(batch[0]), W);
        const Variable d = F::reshape(y, {batch[0].shape()[0]}) - as_variable(batch[1]);
        F::mean(d * d).backward();
        return W.grad();
    };
    Minibatches whole(data, 7);
    const Array expected = gradient(whole.next());
    for (const std::int64_t parts : {3, 9}) {
        Array sum = Array::zeros({1, 3}, Dtype::float64);
        for (Minibatches& rank : shared(Minibatches(data, 7), 3, parts))
            for (std::int64_t k = 0; k < parts / 3; ++k) {
                const auto batch = rank.next();
                if (rank.weight() > 0)
                    sum = sum + gradient(batch) * (rank.weight() / static_cast<double>(parts));
            }
        check_close(sum, expected);
    }
}

TEST_CASE("scatter_dataset divides the root's examples") {
    for (int n = 1; n <= 4; ++n)
        for (const bool shuffle : {false, true}) {
            CAPTURE(n);
            std::vector<std::vector<int>> parts(static_cast<std::size_t>(n));
            run_ranks(
                n,
                [&](const Communicator& comm) {
                    const int root = n - 1;
                    const Dataset own = scatter_dataset(
                        comm, comm.rank() == root ? examples(10) : Dataset{}, shuffle, 3, root);
                    CHECK(own.size() == part_of(10, comm.rank(), n).size());
                    CHECK(own.arrays[0].dtype() == Dtype::float32);
                    parts[static_cast<std::size_t>(comm.rank())] = labels_of(own.arrays);
                },
                {}, 20);
            std::vector<int> all;
            for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
            CHECK(std::ranges::is_sorted(all) != shuffle);
            std::ranges::sort(all);
            CHECK(all == examples(10).arrays[1].to_vector<int>());
        }
}

TEST_CASE("scatter_dataset sends large arrays in pieces, and fewer examples than ranks") {
    // Rows of 3 MB: a message has one row for each rank.
    const Array rows = Array::zeros({7, 3'000'000}, Dtype::uint8);
    for (std::int64_t r = 0; r < 7; ++r)
        rows.view(r * 3'000'000, {3'000'000}).fill(static_cast<double>(r + 1));
    const Dataset large{{rows, Array::from({0, 1, 2, 3, 4, 5, 6}, {7})}};
    run_ranks(
        3,
        [&](const Communicator& comm) {
            const Dataset own = scatter_dataset(comm, comm.rank() == 0 ? large : Dataset{});
            const Range range = part_of(7, comm.rank(), 3);
            REQUIRE(own.size() == range.size());
            bool equal = true;
            const auto bytes = own.arrays[0].host<const std::uint8_t>();
            for (std::size_t i = 0; i < bytes.size(); ++i)
                equal = equal &&
                        bytes[i] == static_cast<std::uint8_t>(
                                        range.begin + static_cast<std::int64_t>(i / 3'000'000) + 1);
            CHECK(equal);
            CHECK(own.arrays[1].to_vector<int>()[0] == range.begin);

            const Dataset few = scatter_dataset(comm, comm.rank() == 0 ? examples(2) : Dataset{});
            CHECK(few.arrays[0].shape() == Shape{comm.rank() == 0 ? 0 : 1, 2});
        },
        {}, 20);
    CHECK_THROWS_WITH_AS(
        on_ranks(
            2,
            [](const Communicator& comm) { return scatter_dataset(comm, Dataset{}).arrays.at(0); }),
        doctest::Contains("[Dataset] arrays: expected at least one, got none"), Error);
    CHECK_THROWS_WITH_AS(scatter_dataset(Communicator(), examples(2), false, 0, 1),
                         "[scatter_dataset] root: expected a rank below 1, got 1", InvalidError);
}

TEST_CASE("an evaluation by several ranks has the means of one by a single process") {
    const links::Linear model(2, 3);
    const Dataset data = examples(11);
    const auto measure = [&](std::span<const Array> batch) {
        const Variable y = model(as_variable(batch[0]) * 0.1);
        return std::vector{F::mean(y * y).data(), F::max(y).data()};
    };
    const Summary expected = Evaluator(data, 1, {"mean", "largest"}, measure)();
    const Summary by_four = Evaluator(data, 4, {"mean", "largest"}, measure)();
    CHECK(by_four.mean("mean") == doctest::Approx(expected.mean("mean")));
    for (int n = 1; n <= 4; ++n)
        run_ranks(
            n,
            [&](const Communicator& comm) {
                const Share share{comm.rank(), comm.size()};
                Summary result = Evaluator(data, n, {"mean", "largest"}, measure, {}, share)();
                allreduce(comm, result);
                CHECK(result.weight() == 11);
                CHECK(result.mean("mean") == doctest::Approx(expected.mean("mean")).epsilon(1e-6));
                CHECK(result.mean("largest") ==
                      doctest::Approx(expected.mean("largest")).epsilon(1e-6));
                // With fewer examples than ranks, some ranks add nothing.
                Summary few = Evaluator(examples(1), n, {"mean", "largest"}, measure, {}, share)();
                allreduce(comm, few);
                CHECK(few.weight() == 1);
                CHECK(few.mean("mean") > 0);
            },
            {}, 20);
}

TEST_CASE("summaries with other names are refused") {
    const std::string text = error_of<InvalidError>([] {
        run_ranks(2, [](const Communicator& comm) {
            Summary summary =
                comm.rank() == 0 ? Summary{"loss", "accuracy"} : Summary{"accuracy", "loss"};
            summary.add({Array::full({}, 1), Array::full({}, 2)}, 1);
            allreduce(comm, summary);
        });
    });
    CHECK(text.find("[allreduce] rank 1: expected the values of rank 0") != text.npos);
}

TEST_CASE("bcast_data sends numbers too") {
    struct Counting : Chain {
        links::BatchNormalization bn{3};
        std::int64_t n = 0;
        std::uint64_t big = 0;
        double rate = 0;
        void visit(Visitor& v) override { v("bn", bn)("n", n)("big", big)("rate", rate); }
    };
    run_ranks(3, [](const Communicator& comm) {
        Counting net;
        net.n = -5 - comm.rank();
        net.big = ~std::uint64_t{0} - static_cast<std::uint64_t>(comm.rank());
        net.rate = 0.1 + comm.rank();
        bcast_data(comm, net);
        CHECK(net.n == -5);
        CHECK(net.big == ~std::uint64_t{0});
        CHECK(net.rate == 0.1);
    });
}
