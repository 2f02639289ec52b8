// Tests of the steps of loading: hashes, file checks, replaced files, lock files; names of loaded plugins.
#include "../bad_plugins/folder.hpp"
#include "plugin_file.hpp"

#include <catena/core/device.hpp>
#include <catena/core/error.hpp>
#include <catena/core/tables.hpp>
#include <catena/plugin_lock.hpp>

#include <doctest/doctest.h>

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

using namespace catena;
namespace fs = std::filesystem;

namespace {

const fs::path modules = MODULES;

template <class Body>
std::string refusal(const Body& body) {
    try {
        body();
    } catch (const PluginError& error) {
        return error.what();
    }
    return "fine";
}

bool begins(const std::string& text, const std::string& with) { return text.starts_with(with); }

// Waits until a file written now gets a later time than `file`: file systems have coarse clocks.
void wait_for_the_clock(const fs::path& file) {
    const auto time_of = [](const fs::path& path) {
        struct stat status {};
        REQUIRE(stat(path.c_str(), &status) == 0);
        return std::pair(status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
    };
    const fs::path probe = file.string() + ".time";
    do {
        std::ofstream(probe) << 'x';
    } while (time_of(probe) <= time_of(file));
    fs::remove(probe);
}

}  // namespace

TEST_CASE("the hash of a file is its SHA-256") {
    const Folder folder;
    const auto hash_of = [&](const std::string& text) {
        return plugin_sha256(folder.write("file", text));
    };
    CHECK(hash_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(hash_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(hash_of(std::string(1'000'000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("a file that was changed after it was opened is noticed") {
    const Folder folder;
    const fs::path path = folder.write("a.catena", "one");
    const TrustedFile file(path);
    CHECK(refusal([&] { file.check_unchanged(); }) == "fine");
    const std::string changed = "it was replaced or changed after it was checked";
    wait_for_the_clock(path);
    SUBCASE("another file of that name") {
        fs::rename(folder.write("new", "two"), path);
        CHECK(refusal([&] { file.check_unchanged(); }) == changed);
    }
    SUBCASE("written over in place, with its old time") {
        const auto time = fs::last_write_time(path);
        std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).write("x", 1);
        fs::last_write_time(path, time);
        CHECK(refusal([&] { file.check_unchanged(); }) == changed);
    }
    SUBCASE("removed") {
        fs::remove(path);
        CHECK(refusal([&] { file.check_unchanged(); }) == changed);
    }
}

TEST_CASE("a loaded plugin has the name of its file for debuggers and profilers; a replaced file") {
    const Folder folder;
    const fs::path path = folder.write("slip.catena", bytes_of(modules / "slip.catena"));
    fs::create_symlink(path, folder / "link.catena");
    disable_default_plugins();
    load_plugin(folder / "link.catena");
    const auto tables = plugin_tables();
    REQUIRE(!tables.empty());
    Dl_info info{};  // the list of libraries that gdb reads
    REQUIRE(dladdr(tables.back().table, &info) != 0);
    CHECK(info.dli_fname == path);
    std::istringstream maps(bytes_of("/proc/self/maps"));  // read by perf
    std::string code;
    for (std::string line; std::getline(maps, line);)
        if (line.ends_with(path.string()) && line.find(" r-xp ") != line.npos) code = line;
    CHECK(code != "");

    // Loading it again does nothing, or is an error if the file is another one.
    const auto functions = function_names();
    CHECK(refusal([&] { load_plugin(path); }) == "fine");
    wait_for_the_clock(path);
    fs::rename(folder.write("new", bytes_of(path)), path);
    for (const fs::path& name : {path, folder / "link.catena"})
        CHECK(begins(refusal([&] { load_plugin(name); }),
                     "[plugin] " + name.string() +
                         ": refused: the file was replaced or changed after "
                         "org.example.slip"));
    CHECK(function_names() == functions);
}

TEST_CASE("paths: links are followed, circles and folders refused") {
    const Folder folder;
    const std::string good = bytes_of(modules / "good.catena");
    folder.write("a.catena", good);
    fs::create_directory(folder / "sub");
    fs::create_symlink("../a.catena", folder / "sub/b.catena");
    fs::create_directory_symlink(folder / "sub", folder / "link");
    const TrustedFile file(folder / "link/./b.catena");
    CHECK(file.path() == folder / "a.catena");
    fs::create_symlink("c.catena", folder / "c.catena");
    const auto open = [&](const char* name) {
        return refusal([&] { TrustedFile(folder / name); });
    };
    CHECK(open("c.catena") == (folder / "c.catena").string() + ": links in a circle");
    CHECK(open("sub") == "it is no regular file");
    CHECK(refusal([] { TrustedFile(""); }) == "it is no regular file");
    CHECK(refusal([] { load_plugin(""); }) == "[plugin] : refused: it is no regular file");
    CHECK(open("none.catena") == "there is no such file");
    CHECK(open("a.catena/x") == "there is no such file");
    CHECK(open("sub/../../../../../../../../../../../nowhere/x") == "there is no such file");
}

TEST_CASE("the system's plugins are beside the library") {
    CHECK(own_folder() == fs::canonical(LOADER).parent_path());
}

TEST_CASE("lock files: what is wrong is said with its line") {
    const Folder folder;
    const std::string sum(64, 'a'), name = (folder / "l").string();
    const auto read = [&](const std::string& text) {
        const fs::path file = folder.write("l", text);
        return refusal([&] { read_lock(file); });
    };
    const std::string expected = ": expected ID VERSION SHA256 (64 digits 0-9a-f), got '";
    CHECK(read("") == "fine");
    CHECK(read("# a comment\n\n a 1 " + sum + " # another\r\n") == "fine");
    CHECK(read("a 1 " + sum) == "fine");
    CHECK(read("\na 1\n") == "lock " + name + ", line 2" + expected + "a 1'");
    CHECK(begins(read("a 1 " + sum + " x"), "lock " + name + ", line 1" + expected));
    CHECK(begins(read("a 1 " + sum + "\n# b\nb 1 " + sum.substr(1)), "lock " + name + ", line 3"));
    CHECK(begins(read("a 1 " + std::string(64, 'A')), "lock " + name + ", line 1"));
    CHECK(begins(read(std::string(5000, '\0')), "lock " + name + ", line 1"));
    // The error quotes at most 200 bytes of a line, and never splits a character.
    CHECK(read(std::string(5000, 'x')) ==
          "lock " + name + ", line 1" + expected + std::string(200, 'x') + "...'");
    CHECK(read(std::string(199, 'x') + "\u00e9") ==
          "lock " + name + ", line 1" + expected + std::string(199, 'x') + "...'");
    CHECK(read(std::string(198, 'x') + "\u00e9") ==
          "lock " + name + ", line 1" + expected + std::string(198, 'x') + "\u00e9'");
    CHECK(refusal([&] { read_lock(folder / "none"); }) ==
          "lock " + (folder / "none").string() + ": there is no such file");
    REQUIRE(chmod((folder / "l").c_str(), 0646) == 0);
    CHECK(begins(refusal([&] { read_lock(folder / "l"); }),
                 "lock " + name + ": mode of the file " + name + ": expected "));
}

TEST_CASE("lock files: id, version and hash have to fit one line") {
    const Folder folder;
    const std::string a(64, 'a'), b(64, 'b');
    const fs::path file = folder.write("l", "x 1 " + a + "\nx 2 " + b + "\nodd%20id - " + a + "\n");
    const auto lock = read_lock(file);
    const auto check = [&](const char* id, const char* version, const std::string& sum) {
        LoadedPlugin plugin;
        plugin.id = id;
        plugin.version = version;
        plugin.sha256 = sum;
        return refusal([&] { check_lock(file, lock, plugin); });
    };
    CHECK(check("x", "1", a) == "fine");
    CHECK(check("x", "2", b) == "fine");
    CHECK(check("odd id", "", a) == "fine");
    CHECK(check("y", "1", a) == "lock " + file.string() + ": expected a line for y, got none");
    CHECK(check("x", "2", a) == "lock " + file.string() + ", line 2: expected x 2 with SHA-256 " +
                                    b + ", got 2 with " + a);
    CHECK(check("x", "3", a) == "lock " + file.string() + ", line 1: expected x 1 with SHA-256 " +
                                    a + ", got 3 with " + a);
}

TEST_CASE("a lock holds for a file by any name") {
    const Folder folder;
    const fs::path path = folder.write("good.catena", bytes_of(modules / "good.catena"));
    const fs::path lock = folder.write("catena.plugins.lock", "# none\n");
    const TrustedFile file(path);
    const fs::path name = "/proc/self/fd/" + std::to_string(file.fd());
    setenv("CATENA_PLUGIN_LOCK", "", 1);
    disable_default_plugins();
    CHECK(refusal([&] { load_plugin(name); }) ==
          "[plugin] " + name.string() + ": refused: lock " + lock.string() +
              ": expected a line for org.example.good, got none");
    unsetenv("CATENA_PLUGIN_LOCK");
}

TEST_CASE("the program's word goes before the environment's") {
    const Folder folder;
    const std::string good = bytes_of(modules / "good.catena");
    const fs::path path = folder.write("good.catena", good);
    setenv("CATENA_PLUGIN_LOCK", "off", 1);
    disable_default_plugins();
    set_plugin_lock(PluginLockMode::strict);
    CHECK(begins(refusal([&] { load_plugin(path); }),
                 "[plugin] " + path.string() + ": refused: lock "));
    const fs::path lock = folder / "of.lock";
    write_plugin_lock(lock, std::vector{read_hashed_manifest(path)});
    CHECK(bytes_of(lock) ==
          "# The plugins that may be loaded: id, version, SHA-256.\n"
          "org.example.good 1.2 " +
              plugin_sha256(path) + "\n");
    set_plugin_lock(PluginLockMode::strict, lock);
    load_plugin(path);
    const LoadedPlugin loaded = plugin_report().loaded.back();
    CHECK(loaded.sha256 == plugin_sha256(path));
    CHECK(loaded.path == path);
    unsetenv("CATENA_PLUGIN_LOCK");
}

TEST_CASE("what CATENA_PLUGINS=off refuses is reported and audited") {
    const Folder folder;
    const fs::path path = folder.write("good.catena", bytes_of(modules / "good.catena"));
    const fs::path audit = folder / "audit";
    setenv("CATENA_PLUGINS", "off", 1);
    setenv("CATENA_PLUGIN_AUDIT", audit.c_str(), 1);
    const std::string reason = "plugins are switched off: CATENA_PLUGINS=off";
    const std::size_t before = plugin_report().refused.size();
    CHECK(refusal([&] { load_plugin(path); }) ==
          "[plugin] " + path.string() + ": refused: " + reason);
    unsetenv("CATENA_PLUGINS");
    unsetenv("CATENA_PLUGIN_AUDIT");
    const auto refused = plugin_report().refused;
    REQUIRE(refused.size() == before + 1);
    CHECK(refused.back().path == path);
    CHECK(refused.back().reason == reason);
    const std::string line = bytes_of(audit);
    CHECK(line.find(" refused id=- version=- sha256=- owner=" + std::to_string(geteuid()) +
                    " mode=0644 path=" + path.string() + " reason=" + reason + "\n") != line.npos);
}

TEST_CASE("a plugin that is named is loaded, though its devices are not there") {
    disable_default_plugins();
    set_plugin_lock(PluginLockMode::off);
    load_plugin(modules / "dry.catena");
    load_plugin(modules / "bound.catena");
    const PluginReport report = plugin_report();
    CHECK(report.loaded.back().id == "org.example.bound");
    CHECK(report.idle.empty());
    const std::vector<BackendInfo> backends = Device::backends();
    REQUIRE(backends.size() == 1);
    CHECK(backends[0].name == "dry");
    CHECK(backends[0].doc == "a bed without a river");
    CHECK(backends[0].plugin == "org.example.dry");
    CHECK(backends[0].devices == 0);
    CHECK(backends[0].reason == "the driver is not there");
    CHECK_FALSE(backends[0].host_memory);
    CHECK_FALSE(backends[0].async);
    PluginReport idle;
    idle.idle.push_back({report.loaded.back(), "dry has no device"});
    idle.backends = backends;
    CHECK(to_string(idle) ==
          "not loaded org.example.bound: " + (modules / "bound.catena").string() +
              ": dry has no device\ndry: no device (the driver is not there)"
              "\nno plugin is loaded");
    CHECK(Device::list().empty());
    std::string text;
    try {
        Device::current();
    } catch (const DeviceError& error) {
        text = error.what();
    }
    CHECK(text.find("\ndry: no device (the driver is not there)") != text.npos);
}
