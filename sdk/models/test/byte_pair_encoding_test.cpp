// BytePairEncoding gives the ids of the package tokenizers; damaged files are errors.
#include <catena/data_error.hpp>
#include <catena/models/byte_pair_encoding.hpp>
#include <catena/write_file.hpp>

#include <algorithm>

#include "temporary.hpp"

#include <nlohmann/json.hpp>

using namespace catena;
using catena::models::BytePairEncoding;
using nlohmann::json;

namespace {

using Ids = std::vector<std::int32_t>;

const json& data() {
    static const json values = json::parse(read_file(DATA));
    return values;
}
const char* const names[] = {"gpt2", "prefix", "llama3"};

BytePairEncoding load(const json& tokenizer) {
    const TemporaryFolder folder;
    write_file(folder.path / "tokenizer.json", tokenizer.dump());
    return BytePairEncoding::load(folder.path / "tokenizer.json");
}

}  // namespace

TEST_CASE("ids are those of the package tokenizers, and give the text back") {
    for (const char* name : names) {
        const BytePairEncoding encoding = load(data().at(name).at("tokenizer"));
        CHECK(encoding.size() == data().at(name).at("tokenizer").at("model").at("vocab").size());
        for (const json& one : data().at(name).at("cases")) {
            const auto text = one.at("text").get<std::string>();
            CAPTURE(std::string(name));
            CAPTURE(text);
            CHECK(encoding.encode(text) == one.at("ids").get<Ids>());
            const std::string decoded = encoding.decode(encoding.encode(text));
            if (name != names[1]) CHECK(decoded == text);
            CHECK(encoding.decode(encoding.encode(text, false)).ends_with(text));
        }
    }
}

TEST_CASE("other sections of tokenizer.json give the ids of the package tokenizers") {
    int sections = 0;
    for (const auto& [name, about] : data().items()) {
        if (!about.contains("sections")) continue;
        ++sections;
        json tokenizer = data().at("gpt2").at("tokenizer");
        tokenizer.update(about.at("sections"));
        const BytePairEncoding encoding = load(tokenizer);
        for (const json& one : about.at("cases")) {
            const auto text = one.at("text").get<std::string>();
            CAPTURE(name);
            CAPTURE(text);
            CHECK(encoding.encode(text) == one.at("ids").get<Ids>());
        }
    }
    CHECK(sections == 6);
}

TEST_CASE("added tokens take spaces, or are whole words, as in the package tokenizers") {
    const json& added = data().at("added");
    const BytePairEncoding encoding = load(added.at("tokenizer"));
    for (const json& one : added.at("cases")) {
        const auto text = one.at("text").get<std::string>();
        CAPTURE(text);
        CHECK(encoding.encode(text) == one.at("ids").get<Ids>());
    }
    const auto begin = encoding.beginning();
    CHECK(Ids(begin.begin(), begin.end()) == Ids{encoding.special_id("<left>"), 0});
    CHECK(encoding.special_id("<wide>") == 406);
    CHECK(encoding.special_id("<wid") == -1);
    CHECK(encoding.special_id("") == -1);
}

TEST_CASE("tokenizer_config.json decides on the token before a text") {
    const TemporaryFolder folder;
    const auto beginning = [&](const json& tokenizer, const json& config) {
        write_file(folder.path / "tokenizer.json", tokenizer.dump());
        write_file(folder.path / "tokenizer_config.json", config.dump());
        const BytePairEncoding encoding = BytePairEncoding::load(folder.path);
        const auto again = BytePairEncoding::parse(encoding.json());  // as from a snapshot
        CHECK(again.encode("a<|endoftext|>b") == encoding.encode("a<|endoftext|>b"));
        const auto ids = again.beginning();
        CHECK(std::ranges::equal(ids, encoding.beginning()));
        return Ids(ids.begin(), ids.end());
    };
    const json &plain = data().at("gpt2").at("tokenizer"),
               &added = data().at("added").at("tokenizer");
    CHECK(beginning(plain, json::object()).empty());
    CHECK(beginning(added, json::object()).size() == 2);
    CHECK(beginning(added, {{"add_bos_token", false}}).empty());
    CHECK(beginning(plain, {{"add_bos_token", true}, {"bos_token", "<|endof|>"}}) == Ids{1});
    CHECK(beginning(added, {{"add_bos_token", true}, {"bos_token", {{"content", "<left>"}}}}) ==
          Ids{400});
    CHECK_THROWS_AS(beginning(plain, {{"add_bos_token", true}}), DataError);
    CHECK_THROWS_AS(beginning(plain, {{"add_bos_token", "yes"}}), DataError);
    CHECK_THROWS_AS(beginning(plain, {{"add_bos_token", true}, {"bos_token", "<none>"}}),
                    DataError);
}

TEST_CASE("vocab.json and merges.txt of GPT-2") {
    const json& model = data().at("gpt2").at("tokenizer").at("model");
    const TemporaryFolder folder;
    write_file(folder.path / "vocab.json", model.at("vocab").dump());
    std::string merges = "#version: 0.2\n";
    for (const json& merge : model.at("merges"))
        merges += merge.is_string()
                      ? merge.get<std::string>() + "\n"
                      : merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
    write_file(folder.path / "merges.txt", merges);
    const BytePairEncoding encoding = BytePairEncoding::load(folder.path);
    for (const json& one : data().at("gpt2").at("cases")) {
        const auto text = one.at("text").get<std::string>();
        if (text.find("<|endof|>") != text.npos)
            continue;  // a special token of tokenizer.json only
        CHECK(encoding.encode(text) == one.at("ids").get<Ids>());
    }
    CHECK(encoding.special_id("<|endoftext|>") == 0);
    CHECK(encoding.special_id("<|begin|>") == -1);
    const auto again = BytePairEncoding::parse(encoding.json());
    CHECK(again.encode("It's here, <|endoftext|>") == encoding.encode("It's here, <|endoftext|>"));
    CHECK(again.json() == encoding.json());
}

TEST_CASE("special tokens may be ordinary text") {
    const BytePairEncoding encoding = load(data().at("gpt2").at("tokenizer"));
    CHECK(encoding.encode("<|endoftext|>") == Ids{0});
    const Ids ids = encoding.encode("<|endoftext|>", false);
    CHECK(ids.size() > 3);
    CHECK(encoding.decode(ids) == "<|endoftext|>");
}

TEST_CASE("a long word takes no quadratic time") {
    const BytePairEncoding encoding = load(data().at("gpt2").at("tokenizer"));
    const std::string word(1'000'000, 'e');
    CHECK(encoding.decode(encoding.encode(word)) == word);
}

TEST_CASE("a pattern repeats a group over a long word") {
    json own = data().at("gpt2").at("tokenizer");
    const json split = {
        {"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", "(?:[a-z]|[0-9])+"}}}};
    const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    own["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
    const std::string word(50'000, 'e');
    const BytePairEncoding encoding = load(own);
    CHECK(encoding.decode(encoding.encode(word)) == word);
}

TEST_CASE("what is wrong with a text or an id") {
    const BytePairEncoding encoding = load(data().at("gpt2").at("tokenizer"));
    CHECK_THROWS_WITH_AS(encoding.encode("\xff"),
                         "[tokenizer] text: expected UTF-8, got other bytes", InvalidError);
    CHECK_THROWS_WITH_AS(encoding.decode(Ids{-1}), "[tokenizer] id: expected 0 or more, got -1",
                         InvalidError);
}

TEST_CASE("bytes without a token are dropped, and ids without a token have no text") {
    json few = data().at("gpt2").at("tokenizer");
    few["model"]["vocab"] = {{"a", 0}};
    few["model"]["merges"] = json::array();
    few["added_tokens"] = json::array();
    CHECK(load(few).encode("abba") == Ids{0, 0});
    CHECK(load(few).encode("bb").empty());
    few["model"]["vocab"] = {{"a", 0}, {"aa", 1}, {"?", 5}};
    few["model"]["merges"] = {"a a"};
    CHECK(load(few).encode("abba") == Ids{1});
    few["model"]["unk_token"] = "?";
    CHECK(load(few).encode("abba") == Ids{0, 5, 5, 0});
    few["model"]["fuse_unk"] = true;
    CHECK(load(few).encode("abba") == Ids{0, 5, 0});
    CHECK(load(few).decode(Ids{0, 3, 1, 1 << 30}) == "aaa");
}

TEST_CASE("many added tokens") {
    json many = data().at("gpt2").at("tokenizer");
    const std::string start(60, '<');  // a search token by token would take hours
    std::string text;
    for (int i = 0; i < 100'000; ++i) {
        const std::string token = start + std::to_string(i) + ">";
        many["added_tokens"].push_back({{"content", token}, {"id", 1000 + i}});
        text += token + "a";
    }
    const BytePairEncoding encoding = load(many);
    const Ids ids = encoding.encode(text);
    CHECK(ids.size() == 200'000);
    CHECK(ids[199'998] == 100'999);
    CHECK(encoding.decode(ids) == text);
}

TEST_CASE("what is wrong with a file") {
    const TemporaryFolder folder;
    CHECK_THROWS_AS(BytePairEncoding::load(folder.path / "none.json"), DataError);
    CHECK_THROWS_AS(BytePairEncoding::load(folder.path), DataError);
    const json good = data().at("gpt2").at("tokenizer");
    const auto fails = [&](const char* pointer, const json& value, const std::string& text) {
        json bad = good;
        bad[json::json_pointer(pointer)] = value;
        CAPTURE(std::string(pointer));
        std::string got;
        try {
            (void)load(bad);
        } catch (const DataError& error) {
            got = error.what();
        }
        CAPTURE(got);
        CHECK(got.find(text) != got.npos);
    };
    fails("/model/type", "WordPiece", "model: expected BPE on bytes, got WordPiece");
    fails("/model/dropout", 0.5, "dropout: expected none, got 0.5");
    fails("/model/end_of_word_suffix", "</w>", "end_of_word_suffix: expected none, got \"</w>\"");
    fails("/model/unk_token", "none", "unk_token: expected integers as ids, got null");
    fails("/normalizer", {{"type", "Lowercase"}},
          "normalizer: expected NFC, NFD, NFKC or NFKD, got {\"type\":\"Lowercase\"}");
    fails("/pre_tokenizer", {{"type", "Whitespace"}},
          "pre_tokenizer: expected ByteLevel as the last one, got {\"type\":\"Whitespace\"}");
    fails("/pre_tokenizer", {{"type", "Metaspace"}}, "pre_tokenizer: expected ByteLevel, Char");
    fails(
        "/pre_tokenizer",
        {{"type", "Sequence"}, {"pretokenizers", {{{"type", "ByteLevel"}}, {{"type", "Digits"}}}}},
        "pre_tokenizer: expected ByteLevel as the last one, got {\"type\":\"Digits\"}");
    for (const char* regex : {"(?m:.)", "[a&&b]", "[a[bc]]", "[\\W]"})
        fails("/pre_tokenizer",
              {{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", regex}}}},
              "pre_tokenizer: expected a regular expression that PCRE2 has too");
    fails("/pre_tokenizer",
          {{"type", "Split"}, {"behavior", "Joined"}, {"pattern", {{"Regex", "a"}}}},
          "pre_tokenizer: expected a behavior such as Isolated");
    fails("/pre_tokenizer",
          {{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", "("}}}},
          "pre_tokenizer: expected a regular expression of PCRE2, got '('");
    fails("/added_tokens/0/lstrip", "no", "expected the format of a tokenizer");
    fails("/post_processor", {{"type", "Unknown"}}, "post_processor: expected ByteLevel, Template");
    // 2^32 + 5 is not 5.
    const auto large = json::parse("4294967301"), larger = json::parse("18446744073709551621");
    for (const json& id : {large, json(5.5), json(-1), json(std::uint64_t{1} << 63), larger}) {
        fails("/added_tokens/0/id", id, "added_tokens: expected i");
        fails("/model/vocab/e", id, "vocab: expected i");
        fails("/post_processor", {{"type", "BertProcessing"}, {"cls", {"x", id}}},
              "post_processor: expected i");
        fails("/post_processor",
              {{"type", "TemplateProcessing"},
               {"single", {{{"SpecialToken", {{"id", "x"}}}}}},
               {"special_tokens", {{"x", {{"ids", json::array({id})}}}}}},
              "post_processor: expected i");
    }
    fails("/post_processor", {{"type", "BertProcessing"}, {"cls", {"x", 400}}},
          "post_processor: expected ids below 400, got 400");
    fails("/model/merges/0", "e", "merges: expected");
    fails("/model/merges/0", "e q", "merges: expected pairs of tokens whose union is a token");
    fails("/model/merges/0", 3, "expected the format of a tokenizer");
    fails("/model/vocab/e", -1, "vocab: expected ids from 0 to");
    fails("/model/vocab/e", "x", "vocab: expected integers as ids");
    fails("/model/vocab", json::array(), "vocab: expected an object");
    write_file(folder.path / "tokenizer.json", "{\"model\":");
    CHECK_THROWS_AS(BytePairEncoding::load(folder.path), DataError);
}
