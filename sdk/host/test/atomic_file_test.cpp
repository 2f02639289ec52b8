// Tests of files written completely or not at all, also in folders that are writable for others.
#include <catena/catena.hpp>
#include <catena/loader/plugins.hpp>

#include "temporary.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <functional>

using namespace catena;
namespace fs = std::filesystem;

namespace {

struct Writer {
    const char* name;
    std::function<void(const fs::path&)> write;
    mode_t most = 0777;
};

void write_curves(const fs::path& table, const fs::path& plot) {
    Curves curves({std::string(60'000, 'a'), std::string(60'000, 'b')}, table, plot);
    curves.add({1, 2});
}

void write_graph(const fs::path& file) {
    ComputationalGraph graph;
    for (std::size_t i = 0; i < 120; ++i) {
        graph.nodes.push_back({false, std::string(1000, 'x'), 0});
        if (i > 0) graph.edges.emplace_back(i - 1, i);
    }
    graph.save(file);
}

bool can_draw() {
    try {
        ComputationalGraph::require_savable("a.svg");
        return true;
    } catch (const DataError&) {
        return false;
    }
}

// Every way to write a file, with over 100 KB of content. Image files have tests of their own.
std::vector<Writer> writers() {
    const std::map<std::string, Array> arrays{{"x", Array::zeros({100, 300}, Dtype::float32)}};
    std::vector<Writer> all = {
        {"a.txt", [](const fs::path& file) { write_file(file, std::string(120'000, 'x')); }},
        {"a.npz", [=](const fs::path& file) { save_arrays(file, arrays); }},
        {"a.safetensors", [=](const fs::path& file) { save_arrays(file, arrays); }},
        {"a.csv", [](const fs::path& file) { write_curves(file, {}); }},
        {"a.jsonl", [](const fs::path& file) { write_curves(file, {}); }},
        {"plot.svg", [](const fs::path& file) { write_curves({}, file); }},
        {"a.dot", write_graph},
        {"trace.json",
         [](const fs::path& file) {
             const Profile profile;
             const Variable x(Array::zeros({1}));
             for (int i = 0; i < 1000; ++i) (void)functions::relu(x);
             profile.write_trace(file);
         }},
        {"catena.plugins.lock",
         [](const fs::path& file) {
             LoadedPlugin plugin;
             plugin.id = std::string(120'000, 'x');
             plugin.version = "1";
             plugin.sha256 = std::string(64, '0');
             write_plugin_lock(file, std::span(&plugin, 1));
         },
         0755},
    };
    if (can_draw()) all.push_back({"graph.svg", write_graph});
    return all;
}

std::size_t files_in(const fs::path& folder) {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

mode_t mode_of(const fs::path& file) {
    struct stat status {};
    REQUIRE(stat(file.c_str(), &status) == 0);
    return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("a file keeps its mode, and a new one has that of the umask") {
    const mode_t before = umask(027);
    for (const Writer& writer : writers()) {
        CAPTURE(writer.name);
        const TemporaryFolder folder;
        const fs::path file = folder.path / writer.name;
        writer.write(file);
        CHECK(mode_of(file) == 0640);
        for (const mode_t mode : {0600U, 0644U, 0666U, 0400U}) {
            chmod(file.c_str(), mode);
            writer.write(file);
            CHECK(mode_of(file) == (mode & writer.most));
        }
        CHECK(files_in(folder.path) == 1);
    }
    umask(before);
}

TEST_CASE("the group is kept, or gets no more than others") {
    if (geteuid() != 0) return;  // only root can change a file's owner
    const TemporaryFolder folder;
    const fs::path file = folder.path / "a";
    write_file(file, "old");
    REQUIRE(chown(file.c_str(), 1234, 5678) == 0);
    chmod(file.c_str(), 0660);
    write_file(file, "new");
    struct stat status {};
    REQUIRE(stat(file.c_str(), &status) == 0);
    CHECK(status.st_uid == 1234);
    CHECK(status.st_gid == 5678);
    CHECK((status.st_mode & 0777) == 0660);
    // In a sticky folder, another user's file is replaced by a file of this user.
    chmod(folder.path.c_str(), 01777);
    write_file(file, "newer");
    REQUIRE(stat(file.c_str(), &status) == 0);
    CHECK(status.st_uid == geteuid());
    CHECK((status.st_mode & 022) == 0);
    CHECK(read_file(file) == "newer");
}

TEST_CASE("a symbolic link is refused, and what it names stays") {
    for (const Writer& writer : writers()) {
        CAPTURE(writer.name);
        const TemporaryFolder folder, other;
        const fs::path victim = other.path / "victim", file = folder.path / writer.name;
        write_file(victim, "old");
        fs::create_symlink(victim, file);
        contains(error_of<Error>([&] { writer.write(file); }),
                 file.string() + ": expected a file that can be written, got a symbolic link");
        CHECK(read_file(victim) == "old");
        CHECK(fs::is_symlink(file));
        fs::remove(victim);  // a link to a missing file is refused too
        CHECK_THROWS_AS(writer.write(file), Error);
        CHECK_FALSE(fs::exists(victim));
        CHECK(files_in(folder.path) == 1);
        contains(error_of<DataError>([&] { require_writable(file); }), "got a symbolic link");
        // Symbolic links to folders are followed.
        fs::create_directory_symlink(other.path, folder.path / "link");
        writer.write(folder.path / "link" / writer.name);
        CHECK(fs::is_regular_file(other.path / writer.name));
    }
}

TEST_CASE("nobody can guess the name of the temporary file") {
    // Creates a link for each name that a temporary file would have if a counter numbered it.
    char host[256] = {};
    REQUIRE(gethostname(host, sizeof host - 1) == 0);
    for (const Writer& writer : writers()) {
        CAPTURE(writer.name);
        const TemporaryFolder folder, other;
        const fs::path victim = other.path / "victim", file = folder.path / writer.name;
        write_file(victim, "old");
        for (int i = 0; i < 1000; ++i) {
            fs::create_symlink(victim, file.string() + ".tmp-" + host + "-" +
                                           std::to_string(getpid()) + "-" + std::to_string(i));
        }
        writer.write(file);
        CHECK(read_file(victim) == "old");
        CHECK(fs::is_regular_file(fs::symlink_status(file)));
        CHECK(files_in(folder.path) == 1001);
    }
    const TemporaryFolder folder;
    const AtomicFile first(folder.path / "a"), second(folder.path / "a");
    CHECK(first.temporary() != second.temporary());
}

TEST_CASE("a full disk leaves the old file and no temporary one") {
    rlimit limit{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    for (const Writer& writer : writers()) {
        CAPTURE(writer.name);
        const TemporaryFolder folder;
        const fs::path file = folder.path / writer.name;
        write_file(file, "old");
        const rlimit small{50'000, limit.rlim_max};
        REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
        const std::string error = error_of<Error>([&] { writer.write(file); });
        setrlimit(RLIMIT_FSIZE, &limit);
        contains(error,
                 file.string() + ": expected a file that can be written, got File too large");
        CHECK(read_file(file) == "old");
        CHECK(files_in(folder.path) == 1);
    }
    std::signal(SIGXFSZ, before);
}

TEST_CASE("names of any length, and none") {
    const TemporaryFolder folder;
    write_file(folder.path / std::string(255, 'n'), "x");
    CHECK(read_file(folder.path / std::string(255, 'n')) == "x");
    for (const fs::path& wrong :
         {fs::path(), folder.path / "", folder.path / std::string(256, 'n')})
        CHECK_THROWS_AS(require_writable(wrong), DataError);
    CHECK(files_in(folder.path) == 1);
}

TEST_CASE("memory that runs out is told with the file") {
    const fs::path file = "some.npz";
    const auto text = [&](auto error) {
        return error_of<MemoryError>(
            [&] { naming_file("load", file, [&]() -> int { throw error; }); });
    };
    CHECK(text(std::bad_alloc()) == "[load] some.npz: expected enough memory, got too little");
    CHECK(text(std::length_error("vector")) ==
          "[load] some.npz: expected enough memory, got too little");
    CHECK(text(MemoryError("[device] full")) ==
          "[load] some.npz: expected enough memory, got [device] full");
    CHECK(text(MemoryError("[read] some.npz: full")) == "[read] some.npz: full");  // has a name
    CHECK(naming_file("load", file, [] { return 3; }) == 3);
}
