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

TEST_CASE("what is wrong with a text or an id") {
    const BytePairEncoding encoding = load(data().at("gpt2").at("tokenizer"));
    CHECK_THROWS_WITH_AS(encoding.encode("\xff"),
                         "[tokenizer] text: expected UTF-8, got other bytes", InvalidError);
    CHECK_THROWS_WITH_AS(encoding.decode(Ids{400}),
                         "[tokenizer] id: expected one of 400 tokens, got 400", InvalidError);
    CHECK_THROWS_AS(encoding.decode(Ids{-1}), InvalidError);
    json few = data().at("gpt2").at("tokenizer");
    few["model"]["vocab"] = {{"a", 0}};
    few["model"]["merges"] = json::array();
    few["added_tokens"] = json::array();
    CHECK_THROWS_WITH_AS(load(few).encode("ab"),
                         "[tokenizer] text: expected bytes that are tokens, got 0x62",
                         InvalidError);
    CHECK(load(few).encode("aa") == Ids{0, 0});
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
    fails("/normalizer", {{"type", "NFC"}}, "normalizer: expected none, got {\"type\":\"NFC\"}");
    fails("/pre_tokenizer", {{"type", "Whitespace"}},
          "pre_tokenizer: expected ByteLevel, or Split by an isolated Regex");
    fails("/pre_tokenizer",
          {{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", "("}}}},
          "pre_tokenizer: expected a regular expression of PCRE2, got '('");
    fails("/added_tokens/0/lstrip", "no", "expected the format of a tokenizer");
    fails("/post_processor", {{"type", "Unknown"}}, "post_processor: expected ByteLevel, Template");
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
