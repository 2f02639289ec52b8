// Encodes and decodes texts, for tokenizers_test.py. Usage: tokenize TOKENIZER_JSON <TEXTS
// Reads an array of texts, as JSON. Writes an object with the tokens before a text, and for each text
// its ids and the hexadecimal bytes of the decoded ids.
#include <catena/models/byte_pair_encoding.hpp>

#include <cstdio>
#include <exception>
#include <iostream>

#include <nlohmann/json.hpp>

int main(int argc, char** argv) try {
    if (argc != 2) throw std::runtime_error("expected a tokenizer.json");
    const auto encoding = catena::models::BytePairEncoding::load(argv[1]);
    const auto beginning = encoding.beginning();
    nlohmann::json result{{"beginning", std::vector(beginning.begin(), beginning.end())}},
        texts = nlohmann::json::array();
    for (const auto& text : nlohmann::json::parse(std::cin)) {
        const auto ids = encoding.encode(text.get<std::string>());
        std::string hex;
        for (const char c : encoding.decode(ids)) {
            constexpr const char* digits = "0123456789abcdef";
            hex += digits[static_cast<unsigned char>(c) >> 4];
            hex += digits[static_cast<unsigned char>(c) & 15];
        }
        texts.push_back({ids, hex});
    }
    result["texts"] = texts;
    std::cout << result.dump() << "\n";
    return 0;
} catch (const std::exception& error) {
    (void)std::fprintf(stderr, "tokenize: %s\n", error.what());
    return 1;
}
