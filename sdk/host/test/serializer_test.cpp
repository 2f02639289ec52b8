// Tests of saving and loading: round trips, the format, failures that change nothing.
#include <catena/array_file.hpp>
#include <catena/data_error.hpp>
#include <catena/links.hpp>
#include <catena/random.hpp>
#include <catena/serializer.hpp>

#include "saved_state.hpp"
#include "temporary.hpp"

#include <unistd.h>
#include <fstream>

using namespace catena;

TEST_CASE("everything comes back, into the same variables") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    All a;
    save_npz(file, a);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
    All b;
    const Variable w = b.l.W;
    b.half.data().fill(0);
    b.brain.data().fill(0);
    b.scalar.data().fill(0);
    b.flags.fill(0);
    b.ids.fill(0);
    b.count = 0;
    b.big = 0;
    b.rate = 0;
    load_npz(file, b);
    CHECK(w.data().to_vector<float>() == a.l.W.data().to_vector<float>());
    CHECK(b.half.data().to_vector<float>() == std::vector<float>{1, 1});
    CHECK(b.brain.data().to_vector<float>() == std::vector<float>{0.5F, 0.5F});
    CHECK(b.scalar.data().item<double>() == 1.25);
    CHECK(b.flags.to_vector<float>() == std::vector<float>{1, 0, 1});
    CHECK(b.ids.to_vector<std::int64_t>() == std::vector<std::int64_t>{-1, 1LL << 40});
    CHECK(b.count == 5);
    CHECK(b.big == ~0ULL);
    CHECK(b.rate == 0.1);

    save_npz(folder.path / "b.npz", b);
    CHECK(read_file(file) == read_file(folder.path / "b.npz"));
}

TEST_CASE("members are what NumPy writes") {
    const TemporaryFolder folder;
    links::Linear linear(2, 3);
    linear.W.set_data(Array::from({1.F, 2.F, 3.F, 4.F, 5.F, 6.F}, {3, 2}));
    save_npz(folder.path / "a.npz", linear);
    const std::string content = read_file(folder.path / "a.npz");
    contains(content, "W.npy");
    const auto start = content.find("\x93NUMPY");
    REQUIRE(start != content.npos);
    const std::string member = content.substr(start, 128 + 24);
    CHECK(member.substr(6, 4) == std::string("\1\0\x76\0", 4));
    const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
    CHECK(member.substr(10, dict.size()) == dict);
    CHECK(member.find_first_not_of(' ', 10 + dict.size()) == 127);
    CHECK(member[127] == '\n');
    CHECK(member.substr(128, 8) == std::string("\0\0\x80\x3f\0\0\0\x40", 8));
}

TEST_CASE("what does not fit changes nothing, and all of it is named") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    struct Pair : Link {
        links::Linear a{2, 2};
        Parameter c{Array::zeros({3})};
        std::string name = "c";
        std::int64_t t = 0;
        void visit(Visitor& v) override { v("a", a)(name, c)("t", t); }
    };
    Pair saved;
    saved.a.W.data().fill(9);
    saved.t = 4;
    save_npz(file, saved);
    Pair target;
    target.a.b.set_data(Array::zeros({2}, Dtype::float64));
    target.a.W.set_data(Array::zeros({2, 3}));
    target.name = "d";
    const auto text = error_of<DataError>([&] { load_npz(file, target); });
    contains(text, file.string());
    contains(text, "a/W: expected float32 (2, 3), got float32 (2, 2)");
    contains(text, "a/b: expected float64 (2,), got float32 (2,)");
    contains(text, "d: missing");
    contains(text, "c: not expected");
    CHECK(target.t == 0);
    CHECK(target.a.W.data().to_vector<float>() == std::vector<float>(6, 0));
}

TEST_CASE("files that are not snapshots are refused") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    links::Linear linear(20, 30);
    const auto refused = [&](const std::string& part) {
        const auto before = linear.W.data().to_vector<float>();
        contains(error_of<DataError>([&] { load_npz(file, linear); }), part);
        CHECK(linear.W.data().to_vector<float>() == before);
    };
    refused("expected a file, got none: there is no such file");
    write_file(file, "text");
    refused("expected a zip archive of arrays");
    save_npz(file, linear);
    const std::string whole = read_file(file);
    write_file(file, whole.substr(0, whole.size() / 2));
    refused("expected a zip archive of arrays");
    std::string damaged = whole;
    damaged[whole.find("NUMPY") + 200] ^= 1;
    write_file(file, damaged);
    refused("got");
    // Any damaged byte gives a DataError or the same values, never a crash.
    for (std::size_t i = 0; i < whole.size(); i += 37) {
        damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
        write_file(file, damaged);
        try {
            load_npz(file, linear);
        } catch (const DataError&) {
        }
    }
    contains(error_of<DataError>([&] { save_npz(folder.path / "no" / "a.npz", linear); }), "a.npz");
}

TEST_CASE("a text of any length comes back") {
    const TemporaryFolder folder;
    struct Named : Visitable {
        std::string text = std::string(1'000'000, 'x');
        void visit(Visitor& v) override { v.require("text", text); }
    } named;
    for (const char* name : {"a.npz", "a.safetensors"}) {
        save_snapshot(folder.path / name, named);
        load_snapshot(folder.path / name, named);
        CHECK(load_texts(folder.path / name).at("text") == named.text);
    }
}

TEST_CASE("a number outside its bounds changes nothing") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    struct Place : Visitable {
        std::int64_t first = 1, place = 2;
        void visit(Visitor& v) override { v("first", first).within("place", place, 0, 4); }
    } place;
    for (const std::int64_t far : {-1LL, 5LL, -1'000'000'000LL}) {
        place.place = far;
        place.first = 7;
        save_npz(file, place);
        Place other;
        contains(error_of<DataError>([&] { load_npz(file, other); }),
                 "place: expected 0 to 4, got " + std::to_string(far));
        CHECK(other.first == 1);
    }
    place.place = 4;
    save_npz(file, place);
    load_npz(file, place);
}

TEST_CASE("required texts and numbers must be the same") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    struct Named : Visitable {
        std::string text;
        std::int64_t number = 3;
        explicit Named(std::string t) : text(std::move(t)) {}
        void visit(Visitor& v) override { v.require("text", text).require("number", number); }
    };
    for (const std::string& text : {std::string(), std::string("adam"), std::string(50, 'x')}) {
        Named same(text);
        save_npz(file, same);
        load_npz(file, same);
        Named other(text + "y");
        contains(error_of<DataError>([&] { load_npz(file, other); }),
                 "text: expected " + text + "y, got " + text);
    }
    struct Number : Visitable {
        std::int64_t number = 4;
        void visit(Visitor& v) override { v.require("text", number).require("number", number); }
    } number;
    const auto text = error_of<DataError>([&] { load_npz(file, number); });
    contains(text, "text: expected int64 (), got a text");
    contains(text, "number: expected 4, got 3");
    save_npz(file, number);
    Named named("adam");
    contains(error_of<DataError>([&] { load_npz(file, named); }),
             "text: expected adam, got no text");
}

TEST_CASE("long texts are told from a little before where they part") {
    const TemporaryFolder folder;
    struct Named : Visitable {
        std::string text;
        explicit Named(std::string t) : text(std::move(t)) {}
        void visit(Visitor& v) override { v.require("text", text); }
    };
    const std::string same(5000, 'x');
    save_npz(folder.path / "a.npz", Named(same + "ab" + same));
    Named other(same + "cd" + same);
    const auto text = error_of<DataError>([&] { load_npz(folder.path / "a.npz", other); });
    contains(text, "text: expected ...xxxxxxxxxxxxxxxxxxxxcdx");
    contains(text, "x..., got ...xxxxxxxxxxxxxxxxxxxxabx");
    CHECK(text.size() < 500);
}

TEST_CASE("what a killed run left over goes with the next save") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    char host[256] = {};
    REQUIRE(gethostname(host, sizeof host - 1) == 0);
    const std::string stem = file.string() + ".tmp-" + host + "-";
    // Process ids are below 2^22, so no such process exists.
    const std::vector<std::string> dead{stem + "99999999-0", stem + "99999999-17"};
    const std::vector<std::string> other{stem + "1-0", stem + "x-0", stem + "99999999",
                                         file.string() + ".tmp-" + host + "x-99999999-0",
                                         file.string() + "b.tmp-" + host + "-99999999-0"};
    for (const auto& names : {dead, other}) {
        for (const auto& name : names) std::ofstream(name) << "left over";
    }
    links::Linear linear(1, 1);
    save_npz(file, linear);
    for (const auto& name : dead) CHECK(!std::filesystem::exists(name));
    for (const auto& name : other) CHECK(std::filesystem::exists(name));
}

TEST_CASE("whether a file can be written is told before") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    require_writable(file);
    CHECK(std::filesystem::is_empty(folder.path));
    write_file(file, "old");
    require_writable(file);
    CHECK(read_file(file) == "old");
    contains(error_of<DataError>([&] { require_writable(folder.path); }), "got a folder");
    contains(error_of<DataError>([&] { require_writable("/dev/null"); }), "got no ordinary file");
    contains(error_of<DataError>([&] { require_writable(folder.path / "no" / "a.npz"); }),
             "expected a file that can be written, got No such file");
}

TEST_CASE("a stream of random numbers goes on from its saved state") {
    const TemporaryFolder folder;
    seed(3);
    RandomStream stream(Device::current());
    std::vector<double> skipped(7);
    fill_uniform(skipped, 0, 1);
    save_npz(folder.path / "r.npz", stream);
    std::vector<double> a(5);
    fill_uniform(a, 0, 1);
    seed(4);
    load_npz(folder.path / "r.npz", stream);
    std::vector<double> b(5);
    fill_uniform(b, 0, 1);
    CHECK(a == b);
}

namespace {

// Elements [begin, end) of an array x of shape (size,), and a whole number.
struct Divided : Visitable {
    Array own;
    std::int64_t begin = 0, size = 0;
    std::string name = "x";
    Divided(std::int64_t first, std::int64_t last, std::int64_t all) : begin(first), size(all) {
        std::vector<float> values;
        for (std::int64_t i = first; i < last; ++i) values.push_back(static_cast<float>(i));
        if (first < last) own = Array::from(values, {last - first});
    }
    void visit(Visitor& v) override { v.part(name, own, begin, {size}); }
};

}  // namespace

TEST_CASE("parts are loaded from a snapshot with the whole array") {
    const TemporaryFolder folder;
    struct Whole : Visitable {
        Array x = Array::from({0.F, 1.F, 2.F, 3.F, 4.F}, {5});
        void visit(Visitor& v) override { v("x", x); }
    } whole;
    for (const char* file : {"a.npz", "a.safetensors"}) {
        save_snapshot(folder.path / file, whole);
        Divided part(2, 4, 5), none(0, 0, 5);
        part.own.fill(9);
        load_snapshot(folder.path / file, part);
        CHECK(part.own.to_vector<float>() == std::vector<float>{2, 3});
        load_snapshot(folder.path / file, none);
        save_snapshot(folder.path / file, part, {{"x", whole.x}});
        CHECK(load_arrays(folder.path / file).at("x").to_vector<float>() ==
              whole.x.to_vector<float>());
    }
}

TEST_CASE("parts must have each element once, and fit") {
    const TemporaryFolder folder;
    const std::vector<std::filesystem::path> files{folder.path / "0.safetensors",
                                                   folder.path / "1.safetensors"};
    const auto load = [&](const Divided& a, const Divided& b, Divided& target) {
        save_part(files[0], a, 0, 2);
        save_part(files[1], b, 1, 2);
        load_parts(files, 0, target);
    };
    Divided all(0, 6, 6), middle(1, 4, 6);
    all.own.fill(9);
    middle.own.fill(9);
    load({0, 3, 6}, {3, 6, 6}, all);
    CHECK(all.own.to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
    load({0, 3, 6}, {3, 6, 6}, middle);
    CHECK(middle.own.to_vector<float>() == std::vector<float>{1, 2, 3});
    const auto refused = [&](const Divided& a, const Divided& b, const char* text) {
        contains(error_of<DataError>([&] { load(a, b, all); }), text);
    };
    refused({0, 3, 6}, {2, 5, 6}, "each of 6 elements once");  // as many bytes as the array has
    refused({0, 3, 6}, {4, 6, 6}, "each of 6 elements once");
    refused({0, 3, 6}, {0, 3, 6}, "each of 6 elements once");
    refused({0, 3, 6}, {3, 6, 7}, "parts of one array");
    refused({0, 3, 6}, {3, 7, 6}, "a part of an array with its place");
    const std::int64_t huge = std::int64_t{1} << 62;  // its elements would not fit in memory
    refused({0, 3, huge}, {3, 6, huge}, "each of");
    contains(error_of<InvalidError>([&] { load_parts({}, 0, all); }), "expected one or more");
    Divided named(0, 3, 6);
    named.name = "a@1";
    contains(error_of<InvalidError>([&] { save_part(files[0], named, 0, 1); }), "a@1");
}
