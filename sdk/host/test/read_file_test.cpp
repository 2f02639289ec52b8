// Files of another kind than expected: messages name the file, what it is, and what to do.
#include "temporary.hpp"

#include <catena/catena.hpp>
#include <catena/read_file.hpp>

#include <sys/stat.h>

using namespace catena;
namespace fs = std::filesystem;
using namespace std::string_literals;

namespace {

// The beginning of a local header of a zip archive, with the name of the first member.
std::string zip_with(const std::string& name) {
    std::string text = "PK\3\4"s + std::string(22, '\0');
    text += static_cast<char>(name.size());
    return text + "\0\0\0"s + name + std::string(100, 'x');
}

struct Foreign {
    const char* name;
    std::string content;
    const char* kind;
};
const Foreign foreign[] = {
    {"model.pt", zip_with("archive/data.pkl"), "a PyTorch file; in Python, safetensors"},
    {"old.pt", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9 j\xa8P\x19."s, "a PyTorch file; in Python"},
    {"model.onnx", "\x08\x08\x12\x07pytorch\x1a\x05"s, "an ONNX model; in Python"},
    {"model.gguf", "GGUF\3\0\0\0"s, "a GGUF model of llama.cpp; use the .safetensors"},
    {"a.h5", "\x89HDF\r\n\x1a\n\0"s, "an HDF5 file; load_hdf5()"},
    {"a.pkl", "\x80\x04\x95\0\0"s, "a pickle of Python objects"},
    {"a.npy", "\x93NUMPY\1\0"s, "a .npy file with one array"},
    {"pointer", "version https://git-lfs.github.com/spec/v1\n",
     "a pointer of Git LFS; 'git lfs pull'"},
    {"page", "\n<!DOCTYPE HTML>\n<html>", "a web page (HTML)"},
    {"a.txt", "{\"n_layer\": 2}\n\u00e9", "a text"},
    {"wide.txt",
     "\xff\xfe"
     "a\0"s,
     "a text in UTF-16; save it in UTF-8"},
    {"empty", "", "an empty file"},
    {"a.zip", zip_with("readme.txt"), "a zip archive of other files"},
    {"a.png", "\x89PNG\r\n\x1a\n", "a PNG image"},
};

template <class Body>
std::string refusal(const Body& body) {
    return error_of<DataError>(body);
}

}  // namespace

TEST_CASE("files of other programs are named by every reader") {
    const TemporaryFolder folder;
    links::Linear linear(2, 3);
    for (const Foreign& each : foreign) {
        const fs::path file = folder.path / each.name;
        INFO(file.string());
        write_file(file, each.content);
        CHECK(file_kind(file).starts_with(each.kind));
        const std::string got = std::string("got ") + each.kind;
        for (const auto& message : {refusal([&] { load_npz(file, linear); }),
                                    refusal([&] { load_safetensors(file, linear); }),
                                    refusal([&] { load_snapshot(file, linear); })}) {
            contains(message, file.string());
            contains(message, got);
        }
        if (!each.content.empty()) {
            const std::string message = refusal([&] { (void)read_idx(file, 3); });
            contains(message, file.string());
        }
    }
    for (const char* name : {"old.pt", "a.pkl", "a.h5"}) {
        const std::string message = refusal([&] { (void)read_text(folder.path / name); });
        contains(message, "expected text in UTF-8, got byte 0x");
        contains(message, std::string(" of a"));
    }
}

TEST_CASE("own files under another reader are named") {
    const TemporaryFolder folder;
    links::Linear linear(2, 3);
    const fs::path npz = folder.path / "a.npz", tensors = folder.path / "a.safetensors";
    save_npz(npz, linear);
    save_safetensors(tensors, linear);
    CHECK(file_kind(npz) == "an .npz archive; load_npz() reads it");
    CHECK(file_kind(tensors) == "a .safetensors file; load_safetensors() reads it");
    contains(refusal([&] { load_safetensors(npz, linear); }), "got an .npz archive; load_npz()");
    contains(refusal([&] { load_npz(tensors, linear); }), "got a .safetensors file; ");
    std::string cut = read_file(npz);
    write_file(npz, cut.substr(0, cut.size() / 2));
    contains(refusal([&] { load_npz(npz, linear); }), "got a file without a directory");
    write_file(tensors, read_file(tensors).substr(0, 20));
    contains(refusal([&] { load_safetensors(tensors, linear); }),
             "expected a header within 12 bytes");
    write_file(npz, "\x01\x00\xff binary"s);
    CHECK(file_kind(npz).empty());
}

TEST_CASE("missing files, folders, devices and pipes are refused before anything is read") {
    const TemporaryFolder folder;
    links::Linear linear(2, 3);
    const fs::path pipe = folder.path / "pipe";
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    const fs::path loop = folder.path / "loop";
    fs::create_symlink(loop, loop);
    const struct {
        fs::path file;
        std::string got;
    } cases[] = {
        {folder.path / "none.npz", "expected a file, got none: there is no such file"},
        {folder.path / "no/where.npz",
         "expected a file, got none: there is no such file, nor the folder " +
             (folder.path / "no").string()},
        {"none.npz",
         "expected a file, got none: there is no such file in " + fs::current_path().string()},
        {folder.path, "got a folder"},
        {"/dev/zero", "got a device"},  // has no end
        {pipe, "got a pipe"},           // opening it would wait for a writer
        {loop, "got a file that cannot be opened: Too many levels of symbolic links"},
    };
    for (const auto& [file, got] : cases) {
        INFO(file.string());
        for (const auto& message :
             {refusal([&] { load_npz(file, linear); }),
              refusal([&] { load_safetensors(file, linear); }),
              refusal([&] { load_snapshot(file, linear); }),
              refusal([&] { (void)load_arrays(file); }), refusal([&] { (void)read_idx(file, 3); }),
              refusal([&] { (void)read_text(file); }),
              refusal([&] { (void)read_regular("test", file, "a file"); })}) {
            contains(message, file.string());
            contains(message, got);
        }
    }
}

TEST_CASE("the content of a file, and its limit") {
    const TemporaryFolder folder;
    const fs::path file = folder.path / "a";
    const std::string content(3'000'000, 'x');
    write_file(file, content);
    CHECK(read_regular("test", file, "a text") == content);
    CHECK(read_regular("test", file, "a text", content.size()) == content);
    CHECK(refusal([&] { (void)read_regular("test", file, "a text", content.size() - 1); }) ==
          "[test] " + file.string() + ": expected a text of at most 2999999 bytes, got more");
}
