// Tests of .safetensors files: round trips, the exact bytes, invalid files.
#include <catena/catena.hpp>

#include "saved_state.hpp"
#include "temporary.hpp"

using namespace catena;

namespace {

// Returns a file with the header and `data` bytes of data.
std::string file_of(const std::string& header, std::size_t data) {
    std::string length(8, '\0');
    for (std::size_t i = 0; i < 8; ++i)
        length[i] = static_cast<char>(header.size() >> 8 * i & 0xff);
    return length + header + std::string(data, '\1');
}

}  // namespace

TEST_CASE("everything comes back") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.safetensors";
    seed(1);
    All a;
    save_snapshot(file, a);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
    const std::string bytes = read_file(file);
    CHECK(bytes.find("\"dtype\":\"BF16\"") != bytes.npos);
    CHECK(bytes.find("__metadata__") != bytes.npos);
    seed(2);
    All b;
    b.count = 0;
    b.big = 0;
    b.rate = 0;
    b.flags.fill(0);
    b.brain.data().fill(0);
    load_safetensors(file, b);
    CHECK(b.l.W.data().to_vector<float>() == a.l.W.data().to_vector<float>());
    CHECK(b.brain.data().to_vector<float>() == std::vector<float>{0.5F, 0.5F});
    CHECK(b.flags.to_vector<float>() == std::vector<float>{1, 0, 1});
    CHECK(b.count == 5);
    CHECK(b.big == ~0ULL);
    CHECK(b.rate == 0.1);
    save_safetensors(folder.path / "b.safetensors", b);
    CHECK(read_file(folder.path / "b.safetensors") == bytes);
    links::Linear part(2, 3);
    load_snapshot(file, part, "l/");
    CHECK(part.W.data().to_vector<float>() == a.l.W.data().to_vector<float>());
    CHECK(load_texts(file).at("text") == "a \"b\" \\ \n ü");
    CHECK(load_arrays(file, {}, "l/").size() == 2);
    links::Linear other(2, 4);
    contains(error_of<DataError>([&] { load_snapshot(file, other, "l/"); }),
             "W: expected float32 (4, 2), got float32 (3, 2)");
}

TEST_CASE("texts that are not UTF-8 are refused, not changed") {
    const TemporaryFolder folder;
    struct Named : Visitable {
        void visit(Visitor& v) override { v.require("text", "caf\xe9"); }
    } named;
    contains(error_of<DataError>([&] { save_snapshot(folder.path / "a.safetensors", named); }),
             "expected names and texts in UTF-8, got others, of text");
    CHECK_FALSE(std::filesystem::exists(folder.path / "a.safetensors"));
    save_snapshot(folder.path / "a.npz", named);
    load_snapshot(folder.path / "a.npz", named);
}

TEST_CASE("files of others") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.safetensors";
    const auto refused = [&](const std::string& content, const std::string& part) {
        write_file(file, content);
        CAPTURE(content);
        contains(error_of<DataError>([&] { (void)load_arrays(file); }), part);
    };
    const std::string two = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
    write_file(file, file_of("{" + two + "}", 8));
    CHECK(load_arrays(file).at("a").shape() == Shape{2});
    refused("", "expected a .safetensors file, got an empty file");
    refused(std::string("\1\0\0", 3), "expected 8 bytes of the length of the header");
    refused(file_of("{}", 0).substr(0, 9), "expected a header within 1 bytes");
    refused(std::string(8, '\xff') + "{}", "expected a header within");
    refused(file_of("[1]", 0), "expected a header in JSON");
    refused(file_of("{" + two, 8), "expected a header in JSON");
    refused(file_of("{" + two + "}", 7), "expected 8 bytes of data, got 7");
    refused(file_of("{" + two + "}", 9), "expected 8 bytes of data, got 9");
    refused(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
            "expected data of an array at 0, got at 4");
    refused(file_of("{" + two + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})", 10),
            "expected data of an array at 8, got at 6");
    for (const char* wrong :
         {R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})",
          R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})",
          R"({"dtype":"X32","shape":[2],"data_offsets":[0,8]})",
          R"({"dtype":1,"shape":[2],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1})", R"([])"}) {
        refused(file_of(std::string(R"({"a":)") + wrong + "}", 8), "expected a with ");
    }
    refused(file_of(R"({"__metadata__":{"a":1}})", 0), "expected __metadata__ of texts");
    const auto repeated = [&](const std::string& header, const std::string& key) {
        refused(file_of(header, 8), "expected each key of the header once, got " + key + " twice");
    };
    repeated("{" + two + "," + two + "}", "a");
    repeated("{" + two + R"(,"\u0061":1})", "a");
    repeated(R"({"__metadata__":{"b":"1","b":"2"},)" + two + "}", "b");
    repeated(R"({"__metadata__":{},"__metadata__":{},)" + two + "}", "__metadata__");
    repeated(R"({"a":{"dtype":"F64","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "dtype");
    // A text and an array may have the same name: the name then means the array.
    write_file(file, file_of(R"({"__metadata__":{"a":"text","dtype":"1"},)" + two + "}", 8));
    CHECK(load_arrays(file).at("a").shape() == Shape{2});
    struct Loaded : Visitable {
        Array a = Array::zeros({2});
        void visit(Visitor& v) override { v("a", a).require("dtype", "1"); }
    } loaded;
    load_safetensors(file, loaded);
    CHECK(loaded.a.to_vector<float>()[1] > 0);
    refused(file_of(R"({"a":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}})", 4),
            "a: expected dtypes float16");
}

TEST_CASE("a deep header is refused before a tree is made of it") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.safetensors";
    for (const std::size_t depth :
         {std::size_t{64}, std::size_t{100'000}, std::size_t{10'000'000}}) {
        const std::string deep = std::string(depth, '[') + std::string(depth, ']');
        std::string objects;
        for (std::size_t i = 0; i < std::min<std::size_t>(depth, 100'000); ++i)
            objects += R"({"a":)";
        for (const std::string& header :
             {R"({"a":)" + deep + "}", R"({"__metadata__":{"a":)" + deep + "}}",
              R"({"a":{"dtype":"F32","shape":)" + deep + R"(,"data_offsets":[0,4]}})",
              "{\"a\":" + std::string(depth, '['), objects}) {
            write_file(file, file_of(header, 0));
            contains(error_of<DataError>([&] { (void)load_arrays(file); }),
                     "expected a header in JSON, at most 64 levels deep, got something else");
        }
    }
    // Brackets in strings do not count as nesting. The error quotes values that are nested less.
    write_file(file,
               file_of(R"({"__metadata__":{"a":"\"\\)" + std::string(1000, '[') + R"("}})", 0));
    CHECK(load_texts(file).at("a") == "\"\\" + std::string(1000, '['));
    write_file(file, file_of(R"({"a":[[[1]]]})", 0));
    contains(error_of<DataError>([&] { (void)load_arrays(file); }), "got [[[1]]]");
}

TEST_CASE("every damaged byte gives an error or values, never a crash") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.safetensors";
    links::Linear linear(5, 4);
    save_safetensors(file, linear);
    const std::string whole = read_file(file);
    for (std::size_t i = 0; i < whole.size(); ++i) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ 0x11);
        write_file(file, damaged);
        try {
            load_safetensors(file, linear);
        } catch (const DataError&) {
        }
        write_file(file, whole.substr(0, i));
        CHECK_THROWS_AS(load_safetensors(file, linear), DataError);
    }
}
