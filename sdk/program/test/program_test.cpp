// Program: options, devices, seeds, logs and exit codes.
#include <catena/catena.hpp>
#include <catena/trainer.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <catena_test/child.hpp>
#include <command_line.hpp>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace catena;
namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace {

bool parse(Program& program, std::vector<std::string> words) {
    words.insert(words.begin(), "test");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    return program.parse(static_cast<int>(words.size()), argv.data());
}

// The error for invalid options; "" if they are valid.
std::string refused(const std::vector<std::string>& words, bool trains = false) {
    Program program("test", "Tests.");
    if (trains) program.add_training_options();
    try {
        parse(program, words);
        return "";
    } catch (const po::error& error) {
        return error.what();
    }
}

class Folder {
public:
    Folder() { fs::create_directory(path_); }
    ~Folder() { fs::remove_all(path_); }
    fs::path operator/(const char* name) const { return path_ / name; }

private:
    fs::path path_ = fs::temp_directory_path() / fmt::format("catena-program-{}", getpid());
};

std::string text_of(const fs::path& file) {
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

TEST_CASE("options that cannot be are refused, with what was expected and what came") {
    CHECK(refused({"--seed", "7", "--threads=2", "--device", "cpu:1"}).empty());
    CHECK(refused({"--seed", "-1"}) == "--seed: expected 0 or more, got -1");
    CHECK(refused({"--threads", "0"}) == "--threads: expected 1 or more, got 0");
    CHECK(refused({"--threads", "two"}).find("threads") != std::string::npos);
    CHECK(refused({"--device", "cpu:0,cpu:1"}) == "--device: expected one device, got cpu:0,cpu:1");
    CHECK(refused({"--thread", "2"}).find("thread") != std::string::npos);  // no guessing
    CHECK(refused({"--save", "x.npz"}).find("save") != std::string::npos);  // nothing is trained
    CHECK(refused({"--save", "x.npz"}, true).empty());
    // As of --resume "$UNSET": it would start over, and replace the snapshot.
    CHECK(refused({"--save", ""}, true) == "--save: expected a value, got an empty one");
    CHECK(refused({"--resume", "", "--save", "x.npz"}, true) ==
          "--resume: expected a value, got an empty one");
    CHECK(refused({"--plugins", "a", "--plugins", ""}) ==
          "--plugins: expected a value, got an empty one");
    CHECK(refused({"--save-every", "5"}, true) ==
          "--save-every: expected --save as well, got none");
    CHECK(refused({"--save", "x.npz", "--save-every", "0"}, true) ==
          "--save-every: expected 1 or more, got 0");
    CHECK_THROWS_WITH_AS(ProgramOptions::require(false, "lr", "a number above 0", -0.5),
                         "--lr: expected a number above 0, got -0.5", po::error);
    CHECK_NOTHROW(ProgramOptions::require(true, "lr", "a number above 0", 0.5));
}

TEST_CASE("options of its own stand beside the common ones") {
    Program program("test", "Tests.");
    int steps = 10;
    std::string file;
    program.options.add_options()("steps", po::value(&steps), "how many")("file", po::value(&file));
    program.options.positional().add("file", 1);
    CHECK(parse(program, {"a file", "--steps", "3"}));
    CHECK(steps == 3);
    CHECK(file == "a file");
    CHECK(program.options.given("steps"));
    CHECK_FALSE(program.options.given("threads"));
    Program asked("test", "Tests."), version("test", "Tests.");
    CHECK_FALSE(parse(asked, {"--help"}));
    CHECK_FALSE(parse(version, {"--version"}));
}

TEST_CASE("start() makes the devices, their threads, and the numbers of the seed") {
    Program program("test", "Tests.");
    program.allow_several_devices();
    REQUIRE(parse(program, {"--device", "cpu:1,cpu:0", "--threads", "2", "--seed", "11"}));
    const Device before = Device::current();
    const Device first = program.start({"catena.relu"});
    CHECK(first.name() == "cpu:1");
    CHECK(Device::current() == before);  // it is the program that goes there
    REQUIRE(program.devices().size() == 2);
    CHECK(program.devices()[1].name() == "cpu:0");
    CHECK(program.seed() == 11);
    const Array drawn = initializers::Uniform(1)({4});
    seed(11);
    gradient_check::assert_allclose(drawn, initializers::Uniform(1)({4}), 0, 0);
}

TEST_CASE("start() says what is missing") {
    const auto start = [](const std::vector<std::string>& words) {
        Program program("test", "Tests.");
        program.add_training_options();
        REQUIRE(parse(program, words));
        program.start({"catena.relu"});
    };
    CHECK_THROWS_AS(start({"--device", "abacus:0"}), DeviceError);
    CHECK_THROWS_AS(start({"--save", "/nowhere/at/all.npz"}), DataError);
    CHECK_THROWS_AS(start({"--trace=/nowhere/at/all.json"}), DataError);
    CHECK_THROWS_AS(start({"--log-file", "/nowhere/at/all.log"}), DataError);
    CHECK_THROWS_AS(start({"--graph=picture.bmp"}), DataError);
    Program program("test", "Tests.");
    REQUIRE(parse(program, {}));
    CHECK_THROWS_AS(program.start({"org.example.nothing"}), PluginError);
}

TEST_CASE("lines go to the log as well, with their times; a run that goes on adds to it") {
    const Folder folder;
    for (const char* line : {"one", "two"}) {
        Program program("test", "Tests.");
        REQUIRE(parse(program, {"--log-file", (folder / "the log").string()}));
        program.start();
        program.print(line);
    }
    const std::string log = text_of(folder / "the log");
    CHECK(log.size() == 2 * std::string("2026-01-01T00:00:00Z  one\n").size());
    CHECK(log.find("Z  one\n") != std::string::npos);
    CHECK(log.find("Z  two\n") != std::string::npos);
}

TEST_CASE("a log that cannot be written is an error") {
    const int code = run_program("test", [] {
        Program program("test", "Tests.");
        REQUIRE(parse(program, {"--log-file", "/dev/full"}));
        program.start();
        CHECK_THROWS_WITH_AS(
            program.print("one"),
            "[Program] /dev/full: expected to write a line, got No space left on device",
            DataError);
        return program.finish();
    });
    CHECK(code == 0);
}

#if !defined(__SANITIZE_THREAD__)  // a forked process may not start threads there
TEST_CASE("a snapshot that takes too long after SIGTERM is dropped: the file keeps the last one") {
    struct Slow : links::Linear {
        using links::Linear::Linear;
        void visit(Visitor& v) override {
            links::Linear::visit(v);
            if (!slow) return;
            std::raise(SIGTERM);
            std::this_thread::sleep_for(std::chrono::hours(1));
        }
        bool slow = false;
    };
    const Folder folder;
    const fs::path file = folder / "s.npz";
    links::Linear last(2, 3);
    save_snapshot(file, last);
    const std::string before = text_of(file);
    const int end = catena_test::end_of([&] {
        Program program("test", "Tests.");
        program.add_training_options();
        parse(program, {"--save", file.string()});
        program.start();
        Slow net(2, 3);
        net.slow = true;
        program.snapshots.save(1, net);
        return 0;
    });
    CHECK(end == -SIGTERM);
    CHECK(text_of(file) == before);
}
#endif

TEST_CASE("what was profiled is written at the end") {
    const Folder folder;
    Program program("test", "Tests.");
    REQUIRE(parse(program, {"--trace=" + (folder / "t.json").string()}));
    program.start();
    functions::relu(Array::zeros({3}));
    CHECK(program.finish() == 0);
    CHECK(text_of(folder / "t.json").find("catena.relu") != std::string::npos);
}

TEST_CASE("an interrupt is asked for, saved, and told by the exit code") {
    const Folder folder;
    setenv("CATENA_TEST_GRACE", "0", 1);  // SIGTERM then gives unlimited time
    Program program("test", "Tests.");
    unsetenv("CATENA_TEST_GRACE");
    program.add_training_options();
    REQUIRE(parse(program, {"--save", (folder / "s.npz").string(), "--save-every", "2"}));
    program.start();
    links::Linear net(2, 3);
    program.snapshots.save_after_step(1, net);
    CHECK_FALSE(fs::exists(folder / "s.npz"));
    program.snapshots.save_after_step(2, net);
    CHECK(fs::exists(folder / "s.npz"));
    fs::remove(folder / "s.npz");
    CHECK_FALSE(program.interrupted());
    std::raise(SIGTERM);
    CHECK(program.interrupted());
    CHECK(program.stop("in epoch 1", 3, net) == 128 + SIGTERM);
    CHECK(fs::exists(folder / "s.npz"));
}

TEST_CASE("without a word about snapshots nothing is saved, drawn or read") {
    Program program("test", "Tests.");
    program.add_training_options();
    REQUIRE(parse(program, {}));
    links::Linear net(2, 3);
    CHECK_NOTHROW(program.snapshots.resume(net));
    CHECK_NOTHROW(program.snapshots.save(1, net));
    CHECK_FALSE(program.reports.drawing(net));
}

TEST_CASE("work without a state worth saving ends at an interrupt") {
    const int code = run_program("test", [] {
        Program program("test", "Tests.");
        REQUIRE(parse(program, {}));
        program.stop_if_interrupted();
        std::raise(SIGINT);
        program.stop_if_interrupted();
        FAIL("expected to be stopped");
        return 0;
    });
    CHECK(code == 128 + SIGINT);
}

TEST_CASE("an optimizer and its rate, by options") {
    Program program("test", "Tests.");
    OptimizerOptions optimizer("sgd", {{"adam", 0.002}});
    optimizer.add_to(program.options);
    REQUIRE(parse(program, {"--optimizer", "adam", "--lr-decay", "0.5", "--lr-decay-after", "2"}));
    optimizer.check(program.options);
    CHECK(optimizer.name() == "adam");
    CHECK(optimizer.rate(10)(1.5) == 0.002);
    CHECK(optimizer.rate(10)(2) == 0.001);
    CHECK(optimizer.rate(10)(3) == 0.0005);
    CHECK(optimizer.make());
    for (const auto& words :
         std::vector<std::vector<std::string>>{{"--optimizer", "best"},
                                               {"--optimizer=ada_delta", "--lr=0.1"},
                                               {"--optimizer=ada_delta", "--lr-decay=0.5"},
                                               {"--lr", "0"},
                                               {"--lr", "inf"},
                                               {"--lr-decay", "-1"},
                                               {"--lr-decay-after", "-1"},
                                               {"--lr-warmup", "-1"},
                                               {"--lr-cosine", "0"},
                                               {"--lr-cosine", "0.1", "--lr-decay", "0.5"}}) {
        Program other("test", "Tests.");
        OptimizerOptions refused("sgd");
        refused.add_to(other.options);
        REQUIRE(parse(other, words));
        CHECK_THROWS_AS(refused.check(other.options), po::error);
    }
}

TEST_CASE("a rate that warms up and follows a cosine") {
    Program program("test", "Tests.");
    OptimizerOptions optimizer("sgd");
    optimizer.add_to(program.options);
    REQUIRE(parse(program, {"--lr", "0.2", "--lr-warmup", "0.5", "--lr-cosine", "0.1"}));
    optimizer.set_default(program.options, "adam");
    optimizer.check(program.options);
    CHECK(optimizer.name() == "adam");
    const auto rate = optimizer.rate(4);
    CHECK(rate(0) < 0.001);
    CHECK(rate(0.25) == doctest::Approx(0.1).epsilon(0.02));
    CHECK(rate(2) == doctest::Approx(0.11));
    CHECK(rate(4) == doctest::Approx(0.02));
}

TEST_CASE("every optimizer is an option, with its own default rate") {
    for (const std::string_view name : optimizers::names()) {
        CAPTURE(name);
        Program program("test", "Tests.");
        OptimizerOptions optimizer("sgd", {{"adam", 0.002}});
        optimizer.add_to(program.options);
        REQUIRE(parse(program, {"--optimizer", std::string(name)}));
        optimizer.check(program.options);
        CHECK(optimizer.make());
        const auto rate = optimizers::default_rate(name);
        CHECK(static_cast<bool>(optimizer.rate(10)) == rate.has_value());
        if (rate) CHECK(optimizer.rate(10)(0) == (name == "adam" ? 0.002 : *rate));
    }
}

TEST_CASE("what cannot be is told in the log, too") {
    const Folder folder;
    const int code = run_program("test", [&]() -> int {
        Program program("test", "Tests.");
        REQUIRE(parse(program, {"--log-file", (folder / "log").string()}));
        program.start();
        require_finite(0.5);
        require_finite(std::nan(""));
        return 0;
    });
    CHECK(code == 1);
    CHECK(text_of(folder / "log").find("Z  [Program] loss: expected a finite number, got nan") !=
          std::string::npos);
}

TEST_CASE("memory that runs out is told with the options") {
    const Folder folder;
    const std::string log = (folder / "log").string();
    const auto told = [&](auto error) {
        fs::remove(log);
        CHECK(run_program("test", [&]() -> int {
                  Program program("test", "Tests.");
                  REQUIRE(parse(program, {"--log-file", log}));
                  program.start();
                  throw error;
              }) == 1);
        return text_of(log);
    };
    const std::string start = "[memory] options: expected enough memory for --log-file " + log;
    for (const std::string& text : {told(std::bad_alloc()), told(std::length_error("vector"))})
        CHECK(text.find(start + ", got too little") != std::string::npos);
    CHECK(told(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)))
              .find(start + ", got no further thread") != std::string::npos);
    CHECK(told(MemoryError("[cpu:0] full")).find(start + ", got [cpu:0] full") !=
          std::string::npos);
}

TEST_CASE("a long command line is cut at a word in the message about memory") {
    const auto words_of = [](const std::vector<std::string>& words) {
        std::vector<const char*> argv = {"test"};
        for (const std::string& word : words) argv.push_back(word.c_str());
        po::options_description options;
        options.add_options()("word", po::value<std::vector<std::string>>());
        po::positional_options_description positional;
        positional.add("word", -1);
        parse_command_line(static_cast<int>(argv.size()), argv.data(), options, positional);
        const std::string text = short_of_memory("too little");
        const std::string start = "[memory] options: expected enough memory for";
        const std::string end = ", got too little";
        REQUIRE(text.starts_with(start));
        REQUIRE(text.ends_with(end));
        return text.substr(start.size(), text.size() - start.size() - end.size());
    };
    const std::string word(99, 'x'), cut = ' ' + word;
    CHECK(words_of({word, word}) == cut + cut);  // 200 characters
    CHECK(words_of({word, word, "y"}) == cut + cut + " ...");
    CHECK(words_of({word, word + 'z', "y"}) == cut + " ...");
    CHECK(words_of({word + word + word, "y"}) == cut + word + word + " ...");  // never none
    CHECK(words_of({}) == " their defaults");
}

TEST_CASE("errors become words and exit codes") {
    CHECK(run_program("test", [] { return 7; }) == 7);
    CHECK(run_program("test", []() -> int { throw po::error("--x: expected y"); }) == 2);
    CHECK(run_program("test", []() -> int { throw DataError("no file"); }) == 1);
}

TEST_CASE(
    "what is shipped is found from the library's folder, also by programs that lie elsewhere") {
    CHECK(fs::exists(shipped("digits") / "train-images-idx3-ubyte.gz"));
    const fs::path missing = shipped("nothing");
    CHECK(missing.filename() == "nothing");
    CHECK_FALSE(fs::exists(missing));
}
