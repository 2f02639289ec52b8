// Tests of texts: tokens, vocabularies, batches for language models.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <sys/resource.h>
#include <zlib.h>

#include <algorithm>
#include <numeric>
#include <set>

using namespace catena;

namespace {

std::vector<std::string> tokens_of(const std::string& text, Tokens tokens) {
    std::vector<std::string> all;
    tokenize(text, tokens, [&](std::string_view token) { all.emplace_back(token); });
    return all;
}
using Words = std::vector<std::string>;
using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("what a text is cut into") {
    const std::string text = "It's  3,5 <unk>\n\t«no» <b>\n";
    CHECK(tokens_of(text, Tokens::words) ==
          Words{"It's", "3", ",", "5", "<unk>", "<eos>", "«no»", "<b>", "<eos>"});
    CHECK(tokens_of(text, Tokens::spaces) ==
          Words{"It's", "3,5", "<unk>", "<eos>", "«no»", "<b>", "<eos>"});
    CHECK(tokens_of("aü\n€😀", Tokens::characters) == Words{"a", "ü", "\n", "€", "😀"});
    CHECK(tokens_of("a<b>c <B> <x", Tokens::words) ==
          Words{"a", "<b>", "c", "<", "B", ">", "<", "x"});
    CHECK(tokens_of("", Tokens::words).empty());
    for (const auto tokens : {Tokens::words, Tokens::spaces, Tokens::characters})
        CHECK(tokens_from_string(to_string(tokens)) == tokens);
    CHECK_THROWS_AS((void)tokens_from_string("letters"), InvalidError);
}

TEST_CASE("a vocabulary: the most frequent first") {
    const auto v = Vocabulary::of("b a b c\nb a\n", Tokens::words);
    CHECK(v.size() == 5);
    CHECK(v.word(0) == "b");
    CHECK(v.word(1) == "<eos>");  // equal counts: in byte order
    CHECK(v.word(2) == "a");
    CHECK(v.word(4) == "<unk>");
    CHECK(v.encode("a x b\n") == Ids{2, 4, 0, 1});
    CHECK(v.missing("y a x b <unk> y\n") == std::vector<std::string>{"y", "x", "y"});
    CHECK(v.missing("").empty());
    CHECK(v.decode(std::vector{2, 4, 0, 1}) == "a <unk> b\n");
    CHECK_THROWS_AS((void)v.word(5), InvalidError);
    CHECK_THROWS_AS((void)v.word(-1), InvalidError);
    CHECK(Vocabulary::of("b a b c\nb a\n", Tokens::words, 2).size() == 4);
    const auto two = Vocabulary::of("b a b c\nb a\n", Tokens::words, 1, 2);
    CHECK(two.size() == 2);
    CHECK(two.word(1) == "<unk>");
    CHECK(Vocabulary::of("<unk> a <unk>", Tokens::words).unknown_id() == 0);
    CHECK(Vocabulary::of("", Tokens::words).size() == 1);
    CHECK_THROWS_AS((void)Vocabulary().id("a"), InvalidError);
}

TEST_CASE("a vocabulary without a word for what it does not know") {
    const auto v = Vocabulary::of("b a b c\nb a\n", Tokens::words, {.unknown = false});
    CHECK(v.size() == 4);
    CHECK_FALSE(v.contains(Vocabulary::unknown));
    CHECK(v.encode("a b\n") == Ids{2, 0, 1});
    CHECK(v.missing("a x") == std::vector<std::string>{"x"});
    CHECK_THROWS_WITH_AS((void)v.encode("a x b"),
                         "[Vocabulary] word: expected one of its 4, got 'x' (it has no <unk>)",
                         InvalidError);
    CHECK_THROWS_AS((void)v.unknown_id(), InvalidError);
    CHECK(Vocabulary::of("a b", Tokens::words, {.most = 1, .unknown = false}).size() == 1);
    CHECK(Vocabulary::of("a b b", Tokens::words, {.min_count = 2}).size() == 2);
    CHECK(Vocabulary::of("", Tokens::words, {.unknown = false}).size() == 0);
    // A text that contains <unk> keeps it as an ordinary word.
    CHECK(Vocabulary::of("a <unk>", Tokens::words, {.unknown = false}).contains("<unk>"));
    const TemporaryFolder folder;
    struct State : Visitable {
        Vocabulary vocabulary;
        void visit(Visitor& visitor) override { visitor("vocabulary", vocabulary); }
    } state;
    state.vocabulary = v;
    save_snapshot(folder.path / "a.npz", state);
    CHECK(Vocabulary::load(folder.path / "a.npz").encode("a b\n") == Ids{2, 0, 1});
}

TEST_CASE("bytes: the vocabulary has all, and a code point may be cut") {
    const Vocabulary bytes = Vocabulary::of("ab", Tokens::bytes, 9);
    CHECK(bytes.size() == 256);
    const std::vector<std::int32_t> ids{0x61, 0xc3, 0xa9, 0x0a};
    CHECK(bytes.encode("a\u00e9\n") == ids);
    CHECK(bytes.decode(ids) == "a\u00e9\n");
    CHECK(bytes.decode(std::span(ids).first(2)) == "a\xc3");
    CHECK(bytes.id("<0x0a>") == 10);
    CHECK(bytes.missing("a\u00e9").empty());
    CHECK(tokens_from_string("bytes") == Tokens::bytes);
}

TEST_CASE("words get the spaces that people set") {
    const std::string text = "Well, (he said): no!\nYes.\n";
    const auto v = Vocabulary::of(text, Tokens::words);
    CHECK(v.decode(v.encode(text)) == text);
    const auto c = Vocabulary::of(text, Tokens::characters);
    CHECK(c.decode(c.encode(text)) == text);
}

TEST_CASE("a vocabulary comes back from a snapshot") {
    const TemporaryFolder folder;
    struct State : Visitable {
        Vocabulary vocabulary;
        void visit(Visitor& v) override { v("vocabulary", vocabulary); }
    };
    for (const char* name : {"a.npz", "a.safetensors"}) {
        for (const auto tokens : {Tokens::words, Tokens::characters}) {
            State state;
            state.vocabulary = Vocabulary::of("a\\n \\ b ü\n\\\\n", tokens);
            save_snapshot(folder.path / name, state);
            const auto again = Vocabulary::load(folder.path / name);
            REQUIRE(again.size() == state.vocabulary.size());
            CHECK(again.tokens() == tokens);
            for (std::int64_t i = 0; i < again.size(); ++i)
                CHECK(again.word(i) == state.vocabulary.word(i));
            load_snapshot(folder.path / name, state);
            State other;
            other.vocabulary = Vocabulary::of("b", tokens);
            contains(error_of<DataError>([&] { load_snapshot(folder.path / name, other); }),
                     "vocabulary/words: expected ");
        }
    }
    links::Linear none(1, 1);
    save_npz(folder.path / "none.npz", none);
    contains(error_of<DataError>([&] { (void)Vocabulary::load(folder.path / "none.npz"); }),
             "expected texts vocabulary/tokens and vocabulary/words, got none");
}

TEST_CASE("what is UTF-8") {
    for (const char* text : {"", "a", "\xc3\xbc", "\xe6\x97\xa5", "\xf0\x9f\x98\x80"})
        CHECK(is_utf8(text));
    for (const char* text : {"\xe9", "a\xff", "\xc0\x80", "\xed\xa0\x80", "\xf0\x9f\x98"})
        CHECK_FALSE(is_utf8(text));
}

TEST_CASE("text files") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.txt";
    write_file(file, "a\r\nb\rc\xc3\xbc\n");
    CHECK(read_text(file) == "a\nb\rc\xc3\xbc\n");
    write_file(file, "\xef\xbb\xbfone\n\xef\xbb\xbf");  // only the first is a byte order mark
    CHECK(read_text(file) == "one\n\xef\xbb\xbf");
    write_file(file, "");
    CHECK(read_text(file).empty());
    for (const char* wrong : {"\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                              "\xe2\x82", "\x80", "\xf0\x80\x80\x80"}) {
        CAPTURE(wrong);
        write_file(file, std::string("line\n") + wrong);
        contains(error_of<DataError>([&] { (void)read_text(file); }), "in line 2");
    }
    contains(error_of<DataError>([&] { (void)read_text(folder.path / "none"); }),
             "expected a file, got none: there is no such file");
    contains(error_of<DataError>([&] { (void)read_text(folder.path); }), "expected");
}

TEST_CASE("a text in pieces has the same tokens") {
    const std::string text =
        "One <unk> two,<eos> a<b>c <<x> <ab\n  three\t3.5 'quoted' \xc3\xbc\xe2\x82\xac\n\nend";
    for (const auto tokens : {Tokens::words, Tokens::spaces, Tokens::characters}) {
        std::vector<std::string> whole;
        tokenize(text, tokens, [&](std::string_view token) { whole.emplace_back(token); });
        const auto vocabulary = Vocabulary::of(text, tokens);
        for (std::size_t length = 1; length < text.size(); ++length) {
            CAPTURE(length);
            const TextPieces pieces = [&](const auto& take) {
                for (std::size_t at = 0; at < text.size();) {
                    std::size_t n = std::min(length, text.size() - at);
                    while (!is_utf8(std::string_view(text).substr(at, n))) ++n;
                    take(std::string_view(text).substr(at, n));
                    at += n;
                }
            };
            std::vector<std::string> found;
            tokenize(pieces, tokens, [&](std::string_view token) { found.emplace_back(token); });
            CHECK(found == whole);
            CHECK(Vocabulary::of(pieces, tokens).encode(pieces) == vocabulary.encode(text));
            std::string part;
            part_of(pieces, 4, 12)([&](std::string_view piece) { part += piece; });
            CHECK(part == text.substr(4, 8));
        }
    }
}

TEST_CASE("a text file of many pieces") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.txt";
    // Line ends and multibyte characters before, across and after the boundary of a piece.
    for (const std::size_t before : {1048570U, 1048573U, 1048574U, 1048575U, 1048576U}) {
        CAPTURE(before);
        const std::string start(before, 'a');
        write_file(file, start + "\r\n\xe2\x82\xac\r" + start + "\n");
        CHECK(read_text(file) == start + "\n\xe2\x82\xac\r" + start + "\n");
        write_file(file, start + "\n\xe2\x82");
        contains(error_of<DataError>([&] { (void)read_text(file); }),
                 "got byte 0xe2 in line 2 (at " + std::to_string(before + 1) + ")");
    }
}

TEST_CASE("a text of any length takes the memory of its tokens") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.gz";
    constexpr std::size_t mebibytes = 128;
    gzFile out = gzopen(file.c_str(), "wb1");
    const std::string line = "a b" + std::string((std::size_t{1} << 20) - 4, ' ') + "\n";
    for (std::size_t i = 0; i < mebibytes; ++i) gzwrite(out, line.data(), 1 << 20);
    gzclose(out);
    CHECK(std::filesystem::file_size(file) < 4'000'000);
    const auto peak = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return usage.ru_maxrss;  // KiB
    };
    const auto before = peak();
    const auto vocabulary = Vocabulary::of(text_pieces(file), Tokens::words);
    CHECK(vocabulary.size() == 4);
    CHECK(vocabulary.encode(text_pieces(file)).size() == 3 * mebibytes);
    CHECK(peak() - before < 32 * 1024);
}

TEST_CASE("a token without end is refused") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.txt";
    write_file(file, std::string(std::size_t{1} << 25, 'x'));
    const TextPieces endless = [](const auto& take) {
        const std::string piece(std::size_t{1} << 20, 'x');
        for (int i = 0; i < 1000; ++i) take(piece);
    };
    const std::string expected = "[tokenize] token: expected at most 16777216 bytes, got more, ";
    for (const auto tokens : {Tokens::words, Tokens::spaces}) {
        contains(error_of<DataError>([&] { (void)Vocabulary::of(endless, tokens); }), expected);
        const std::string error =
            error_of<DataError>([&] { (void)Vocabulary::of(text_pieces(file), tokens); });
        contains(error, expected);
        contains(error, "', in " + file.string());
    }
    CHECK(Vocabulary::of(text_pieces(file), Tokens::characters).size() == 2);
}

TEST_CASE("a text that is too long to be held is refused before it is") {
    const TemporaryFolder folder;
    const auto part = folder.path / "part.gz", file = folder.path / "a.gz";
    gzFile out = gzopen(part.c_str(), "wb1");
    const std::string lines(std::size_t{1} << 24, '\n');
    for (int i = 0; i < 4; ++i) gzwrite(out, lines.data(), 1 << 24);
    gzclose(out);
    std::string members;  // concatenated members of one gzip file
    for (int i = 0; i < 33; ++i) members += read_file(part);
    write_file(file, members);
    contains(error_of<DataError>([&] { (void)read_text(file); }),
             "expected at most 2147483648 bytes, got more, in " + file.string());
}

TEST_CASE("a text of more tokens than there may be is refused at the first of them") {
    const std::string piece(std::size_t{1} << 20, '\n');
    int pieces = 0;
    const TextPieces text = [&](const auto& take) {
        for (; pieces < 256; ++pieces)
            take(piece);  // 2^28 tokens; they are counted before any is stored
        take("\n");
    };
    const auto vocabulary = Vocabulary::of("\n", Tokens::words);
    contains(error_of<DataError>([&] { (void)vocabulary.encode(text); }),
             "[Vocabulary] text: expected at most 268435456 tokens, got more");
    CHECK(pieces == 256);
}

TEST_CASE("behind the end of a part nothing is read") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.txt";
    const std::string mebibyte(std::size_t{1} << 20, 'a');
    write_file(file, mebibyte + mebibyte + "\xff");
    contains(error_of<DataError>([&] { (void)read_text(file); }), "got byte 0xff");
    const auto part = [&](std::uint64_t begin, std::uint64_t end) {
        std::string text;
        part_of(part_of(text_pieces(file), 1, end), begin - 1,
                end - 1)([&](std::string_view piece) { text += piece; });
        return text;
    };
    CHECK(part(10, 13) == "aaa");
    CHECK(part(mebibyte.size() - 1, mebibyte.size() + 1) == "aa");
    CHECK(part(7, 7).empty());
    int taken = 0;
    const TextPieces pieces = [&](const auto& take) {
        for (; taken < 4; ++taken) take("ab");
    };
    std::string text;
    part_of(pieces, 1, 4)([&](std::string_view piece) { text += piece; });
    CHECK(text == "bab");
    CHECK(taken == 1);  // the second piece reaches the part's end
}

TEST_CASE("running text: streams side by side") {
    Ids text(23);
    std::iota(text.begin(), text.end(), 0);
    RunningText reader(text, 2, 4);  // streams of 11 pairs, from 0 and from 11
    CHECK(reader.size() == 22);
    std::vector<std::int32_t> first, second;
    for (int piece = 0; piece < 3; ++piece) {
        CHECK(reader.position() == piece * 8);
        const TextBatch batch = reader.next();
        CHECK(batch.begins == (piece == 0));
        const auto x = batch.x.to_vector<std::int32_t>(), t = batch.t.to_vector<std::int32_t>();
        CHECK(batch.rows == std::vector<std::int64_t>(piece < 2 ? 4 : 3, 2));
        for (std::size_t i = 0; i < x.size(); ++i) {
            CHECK(t[i] == x[i] + 1);
            (i % 2 == 0 ? first : second).push_back(x[i]);
        }
    }
    CHECK(first == Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    CHECK(second == Ids{11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21});
    CHECK(reader.epoch() == 1);
    CHECK(reader.next().begins);
    CHECK_THROWS_AS(RunningText(text, 0, 4), ShapeError);
    CHECK_THROWS_AS(RunningText(text, 2, 0), ShapeError);
    CHECK_THROWS_AS(RunningText(text, 23, 4), ShapeError);
    CHECK_THROWS_AS(RunningText({}, 1, 1), ShapeError);
}

TEST_CASE("windows in random order: each token at most once in an epoch, with its successor") {
    std::vector<std::int32_t> tokens(50);
    std::iota(tokens.begin(), tokens.end(), 0);
    RandomWindows reader(tokens, 3, 6, 5);
    CHECK(reader.size() == 42);  // 7 windows
    std::set<std::vector<std::int32_t>> orders;
    for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
        std::vector<std::int32_t> all;
        for (const std::int64_t rows : {3, 3, 1}) {
            CHECK(reader.position() == std::ssize(all));
            const TextBatch batch = reader.next();
            CHECK(batch.begins);
            CHECK(batch.rows == std::vector<std::int64_t>(6, rows));
            const auto x = batch.x.to_vector<std::int32_t>(), t = batch.t.to_vector<std::int32_t>();
            for (std::size_t i = 0; i < x.size(); ++i) CHECK(t[i] == x[i] + 1);
            CHECK(batch.by_text(batch.x).shape() == Shape{rows, 6});
            CHECK(batch.by_text(batch.x).to_vector<std::int32_t>()[1] == x[0] + 1);
            const auto row = static_cast<std::size_t>(rows);
            for (std::size_t i = row; i < x.size(); ++i) CHECK(x[i] == x[i - row] + 1);
            all.insert(all.end(), x.begin(), x.end());
        }
        CHECK(reader.epoch() == epoch + 1);
        CHECK(std::set<std::int32_t>(all.begin(), all.end()).size() == 42);
        orders.insert(all);
    }
    CHECK(orders.size() == 4);
    CHECK(RandomWindows(tokens, 100, 49).next().size() == 49);
    CHECK_THROWS_WITH_AS(
        RandomWindows(tokens, 1, 50),
        "[RandomWindows] tokens: expected at least 51, one more than steps, got 50", ShapeError);
    CHECK_THROWS_AS(RandomWindows(tokens, 0, 5), ShapeError);
    CHECK_THROWS_AS(RandomWindows(tokens, 1, 0), ShapeError);
}

TEST_CASE("sentences: each token once in an epoch, the longest first") {
    const std::int32_t end = 0;
    const Ids text{1, 2, 3, 0, 4, 0, 0, 5, 6, 0, 7, 8, 9, 10, 11, 0, 12, 13};
    Sentences reader(text, end, 2, 4, 7);
    CHECK(reader.size() == 17 + 1);  // skips the empty sentence, appends an end to the last
    std::multiset<std::pair<int, int>> seen, seen_again;
    const auto read = [&](std::multiset<std::pair<int, int>>& pairs) {
        const std::int64_t epoch = reader.epoch();
        std::int64_t tokens = 0;
        while (reader.epoch() == epoch) {
            const TextBatch batch = reader.next();
            CHECK(batch.begins);
            CHECK(std::ranges::is_sorted(batch.rows, std::greater()));
            CHECK(std::accumulate(batch.rows.begin(), batch.rows.end(), std::int64_t{0}) ==
                  batch.size());
            const auto x = batch.x.to_vector<std::int32_t>(), t = batch.t.to_vector<std::int32_t>();
            for (std::size_t i = 0; i < x.size(); ++i) pairs.emplace(x[i], t[i]);
            tokens += batch.size();
        }
        CHECK(tokens == reader.size());
    };
    read(seen);
    read(seen_again);
    CHECK(seen == seen_again);
    const std::multiset<std::pair<int, int>> expected{
        {0, 1}, {1, 2}, {2, 3}, {3, 0},  {0, 4},   {4, 0},  {0, 5},  {5, 6},   {6, 0},
        {0, 7}, {7, 8}, {8, 9}, {9, 10}, {10, 11}, {11, 0}, {0, 12}, {12, 13}, {13, 0}};
    CHECK(seen == expected);
    CHECK_THROWS_AS(Sentences({}, end, 1, 1), ShapeError);
    CHECK_THROWS_AS(Sentences(text, end, 0, 1), ShapeError);
    CHECK_THROWS_AS(Sentences(text, end, 1, 0), ShapeError);
}

TEST_CASE("readers go on from their state") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    Ids text(200);
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int32_t>(i * i % 13);
    const auto check = [&](auto make) {
        auto a = make();
        for (int i = 0; i < 11; ++i) (void)a.next();
        save_npz(file, a);
        auto b = make();
        (void)b.next();
        load_npz(file, b);
        for (int i = 0; i < 30; ++i) {
            const TextBatch x = a.next(), y = b.next();
            CHECK(x.x.template to_vector<std::int32_t>() == y.x.template to_vector<std::int32_t>());
            CHECK(x.rows == y.rows);
            CHECK(x.begins == y.begins);
        }
        CHECK(a.epoch() == b.epoch());
    };
    check([&] { return RunningText(text, 3, 5); });
    check([&] { return RandomWindows(text, 4, 6, 5); });
    check([&] { return Sentences(text, 0, 4, 9, 5); });
    Sentences a(text, 0, 4, 9, 5), b(text, 0, 4, 8, 5);
    save_npz(file, a);
    contains(error_of<DataError>([&] { load_npz(file, b); }), "longest: expected 8, got 9");
}
