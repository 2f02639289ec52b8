// Tests a folder of bad plugins: each is refused with its reason, and the good ones are loaded.
#include "folder.hpp"

#include <catena/abi/plugin.h>
#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/diagnostics/kernels.hpp>
#include <catena/loader/plugins.hpp>

#include <doctest/doctest.h>

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

namespace fs = std::filesystem;

namespace {

std::string refusal(const fs::path& file) {
    try {
        catena::load_plugin(file);
    } catch (const catena::PluginError& error) {
        const std::string text = error.what();
        const std::string prefix = "[plugin] " + file.string() + ": refused: ";
        CHECK(text.substr(0, prefix.size()) == prefix);
        return text.substr(std::min(text.size(), prefix.size()));
    }
    return "loaded";
}

const fs::path modules = MODULES;

// Returns the reasons why a host refuses the modules in the folder, by file name: those in the rows
// of the sources, "// NAME fails: REASON".
std::map<std::string, std::string> reasons(const std::string& folder) {
    const std::pair<std::string, std::string> words[] = {
        {"FOLDER", folder},
        {"MANIFEST", std::to_string(sizeof(catena_manifest))},
        {"TABLE", std::to_string(sizeof(catena_plugin))},
        {"THIS", std::to_string(CATENA_ABI_MINOR)},
        {"NEXT", std::to_string(CATENA_ABI_MINOR + 1)},
        {"RULE",
         "two or more words with dots between them, each a lower-case letter and then lower-case "
         "letters, digits, _ and -, as in org.example.thing"}};
    std::map<std::string, std::string> found;
    for (const char* source : {"modules.c", "modules.cpp"}) {
        std::ifstream in(fs::path(SOURCES) / source);
        for (std::string line; std::getline(in, line);) {
            const std::size_t at = line.find(" fails: ");
            if (line.rfind("// ", 0) != 0 || at == line.npos) continue;
            std::string reason = line.substr(at + std::strlen(" fails: "));
            if (reason == "nothing") continue;
            for (const auto& [word, text] : words)
                if (const std::size_t found_at = reason.find(word); found_at != reason.npos)
                    reason.replace(found_at, word.size(), text);
            found[line.substr(3, at - 3) + ".catena"] = reason;
        }
    }
    return found;
}

}  // namespace

TEST_CASE("good plugins load between bad ones; each bad one has its reason") {
    catena::disable_default_plugins();
    const Folder folder;
    fs::copy(modules, folder.path());
    folder.write("empty.catena", "");
    folder.write("text.catena", std::string(2000, 'x'));
    folder.write("notes.txt", "not looked at");
    fs::create_directory(folder / "folder.catena");
    fs::create_symlink("/nowhere/at/all", folder / "gone.catena");
    REQUIRE(mkfifo((folder / "pipe.catena").c_str(), 0600) == 0);
    const std::string good = bytes_of(modules / "z_good.catena");
    folder.write("cut.catena", good.substr(0, good.size() / 2));

    catena::load_plugins(folder.path());
    const catena::PluginReport report = catena::plugin_report();
    REQUIRE(report.searched.size() == 1);
    CHECK(report.searched[0].path == folder.path());
    CHECK(report.searched[0].from == "program");
    REQUIRE(report.loaded.size() == 2);
    CHECK(report.loaded[0].id == "org.example.a");
    CHECK(report.loaded[0].version == "1.2");
    CHECK(report.loaded[0].vendor == "nobody");
    CHECK(report.loaded[0].path == folder / "a_good.catena");
    CHECK(report.loaded[0].n_functions == 1);
    CHECK(report.loaded[0].n_kernels == 1);
    CHECK(report.loaded[1].id == "org.example.z");

    const std::string a = (folder / "a_good.catena").string();
    std::map<std::string, std::string> left = reasons(folder.path());
    left["cut.catena"] = "the file is truncated: ...";
    left["empty.catena"] = "not a shared library: it is too short";
    left["folder.catena"] = left["pipe.catena"] = "it is no regular file";
    left["gone.catena"] = "there is no such file";
    left["text.catena"] = "not a shared library: it does not begin as an ELF file";
    for (const catena::RefusedPlugin& refused : report.refused) {
        const std::string name = refused.path.filename().string();
        INFO(name << ": " << refused.reason);
        REQUIRE(left.count(name) == 1);
        std::string expected = left[name], reason = refused.reason;
        if (expected.ends_with("...")) {
            expected.resize(expected.size() - 3);
            reason.resize(expected.size());
        }
        CHECK(reason == expected);
        left.erase(name);
        if (name == "undefined_symbol.catena") {
            CHECK(refused.reason.find("undefined symbol: function_of_a_missing_library") !=
                  std::string::npos);
            CHECK(refused.reason.find(refused.path.string() + ": ") != std::string::npos);
            CHECK(refused.reason.find("/proc/") == std::string::npos);
        }
    }
    CHECK(left.empty());

    // Nothing of a refused plugin remains registered.
    CHECK(catena::function_names() == std::vector<std::string>{"test.a", "test.z"});
    CHECK(catena::kernels_of("test.a").size() == 1);

    const std::string text = to_string(report);
    CHECK(text.find("looked in " + folder.path().string() + "\n") == 0);
    CHECK(text.find("loaded org.example.a 1.2 from " + a) != std::string::npos);
    CHECK(text.find("throws.catena: its entry threw an exception: thrown on purpose") !=
          std::string::npos);

    // Loading the folder again does not load plugins twice.
    catena::load_plugins(folder.path());
    CHECK(catena::plugin_report().loaded.size() == 2);
    catena::load_plugin(folder / "z_good.catena");
    CHECK(catena::plugin_report().loaded.size() == 2);
    CHECK(refusal(folder / "init_fails.catena") == "its init() failed: no licence");
    CHECK(catena::function_names() == std::vector<std::string>{"test.a", "test.z"});
}

TEST_CASE("one file asked for by name: refused with path and reason") {
    CHECK(refusal(modules / "wrong_major.catena") == "ABI major: expected 1, got 2");
    CHECK(refusal("/nowhere/none.catena") == "there is no such file");
    CHECK(refusal(modules / "throws.catena") == "its entry threw an exception: thrown on purpose");
    CHECK(refusal("/") == "it is no regular file");
}

TEST_CASE("a folder that is named is there") {
    CHECK_THROWS_WITH_AS(catena::load_plugins("/nowhere/at/all"),
                         "[plugins] expected a folder, got '/nowhere/at/all': No such file or "
                         "directory",
                         catena::PluginError);
    const std::string file = (modules / "z_good.catena").string();
    CHECK_THROWS_WITH_AS(
        catena::load_plugins(file),
        ("[plugins] expected a folder, got '" + file + "': Not a directory").c_str(),
        catena::PluginError);
}

TEST_CASE("a manifest is read without running the plugin") {
    const catena::LoadedPlugin info = catena::read_manifest(modules / "throws.catena");
    CHECK(info.id == "org.example.throws");
    CHECK(info.version == "1.2");
    CHECK(info.devices.empty());
    CHECK_THROWS_WITH_AS(catena::read_manifest(modules / "no_id.catena"),
                         (modules / "no_id.catena: its manifest has no id").string().c_str(),
                         catena::PluginError);
}

TEST_CASE("a file cut at any length is refused") {
    const Folder folder;
    const std::string good = bytes_of(modules / "z_good.catena");
    REQUIRE(good.size() > 4000);
    // Tests lengths in small steps within the headers, then in steps of 111 bytes.
    for (std::size_t length = 0; length < good.size(); length += length < 700 ? 7 : 111) {
        const std::string reason = refusal(folder.write("cut.catena", good.substr(0, length)));
        INFO(length << ": " << reason);
        CHECK((reason.find("the file is truncated: ") == 0 ||
               reason == "not a shared library: it is too short"));
    }
    CHECK(refusal(folder.write("cut.catena", good.substr(0, good.size() - 1)))
              .find("the file is truncated: ") == 0);
}

TEST_CASE("damaged headers are refused") {
    const Folder folder;
    const std::string good = bytes_of(modules / "z_good.catena");
    Elf64_Ehdr header;
    std::memcpy(&header, good.data(), sizeof(header));
    const auto spoilt = [&](const auto& spoil) {
        Elf64_Ehdr h = header;
        spoil(h);
        std::string bytes = good;
        std::memcpy(bytes.data(), &h, sizeof(h));
        return refusal(folder.write("spoilt.catena", bytes));
    };
    const std::string kind = "not a 64-bit little-endian shared library";
    CHECK(spoilt([](auto& h) { h.e_ident[EI_CLASS] = ELFCLASS32; }) == kind);
    CHECK(spoilt([](auto& h) { h.e_ident[EI_DATA] = ELFDATA2MSB; }) == kind);
    CHECK(spoilt([](auto& h) { h.e_type = ET_REL; }) == kind);
    const std::string table = "its section table is damaged";
    CHECK(spoilt([](auto& h) { h.e_shnum = 0; }) == table);
    CHECK(spoilt([](auto& h) { h.e_shentsize = 1; }) == table);
    CHECK(spoilt([](auto& h) { h.e_shstrndx = 0xffff; }) == table);
    CHECK(spoilt([](auto& h) { h.e_shoff = ~std::uint64_t{0}; }).find("the file is truncated") ==
          0);
    CHECK(spoilt([](auto& h) { h.e_shoff += 1'000'000; }).find("the file is truncated") == 0);
    CHECK(spoilt([](auto& h) {
              h.e_phoff = ~std::uint64_t{0} - 8;
          }).find("the file is truncated") == 0);
    CHECK(spoilt([](auto& h) { h.e_phnum = 60'000; }).find("the file is truncated") == 0);
    const std::string names = "its section table is damaged: a name at ";
    CHECK(spoilt([](auto& h) { h.e_shstrndx = 0; }).find(names) == 0);

    // Makes each section header in turn point far past the end of the file.
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        std::string bytes = good;
        Elf64_Shdr section;
        char* place = bytes.data() + header.e_shoff + i * sizeof(section);
        std::memcpy(&section, place, sizeof(section));
        section.sh_offset = ~std::uint64_t{0} - 4;
        section.sh_name = ~std::uint32_t{0};
        std::memcpy(place, &section, sizeof(section));
        const std::string reason = refusal(folder.write("spoilt.catena", bytes));
        INFO(i << ": " << reason);
        // Only names and the manifest are read; with other damage, the plugin is already loaded.
        CHECK((reason.find("the file is truncated") == 0 || reason.find(names) == 0 ||
               reason.find("id org.example.z is already loaded") == 0 ||
               reason.find("the system's loader refuses it") == 0));
    }
}
