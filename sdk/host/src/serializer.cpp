// Serializer: from visited values to .npz members, and back in two passes: check all, then write.
#include "npy.hpp"
#include "npz.hpp"
#include "stored.hpp"

#include <catena/data_error.hpp>
#include <catena/serializer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <type_traits>

namespace catena {
namespace {

template <class T>
constexpr const char* descr_of_number = std::is_same_v<T, double>          ? "<f8"
                                        : std::is_same_v<T, std::uint64_t> ? "<u8"
                                                                           : "<i8";

class Writer final : public Visitor {
public:
    Npz result;

private:
    void parameter(const std::string& path, Variable& value) override { put(path, value.data()); }
    void array(const std::string& path, Array& value) override { put(path, value); }
    void integer(const std::string& path, std::int64_t& value) override { put(path, value); }
    void integer(const std::string& path, std::uint64_t& value) override { put(path, value); }
    void real(const std::string& path, double& value) override { put(path, value); }
    void required(const std::string& path, std::int64_t value) override { put(path, value); }
    void required(const std::string& path, std::string_view value) override {
        add(path, from_text(value));
    }

    template <class T>
    void put(const std::string& path, T value) {
        NpyArray npy{descr_of_number<T>, {}, std::vector<std::byte>(sizeof value)};
        std::memcpy(npy.bytes.data(), &value, sizeof value);
        add(path, std::move(npy));
    }
    void put(const std::string& path, const Array& value) { add(path, to_npy(value)); }
    void add(const std::string& path, NpyArray npy) {
        if (!result.emplace(path, std::move(npy)).second) {
            throw InvalidError(fmt::format("[save] names: expected each once, got {} twice", path));
        }
    }
};

// First pass: compares, and brings what will be written to its device.
class Checker final : public Visitor {
public:
    explicit Checker(const Npz& file) : file_(file) {}

    std::string problems() const {
        std::string text = problems_;
        for (const std::string& path : missing()) text += fmt::format("\n  {}: missing", path);
        for (const auto& [path, npy] : file_) {
            if (!seen_.contains(path)) text += fmt::format("\n  {}: not expected", path);
        }
        return text;
    }
    std::map<std::string, Array> staged;

private:
    void parameter(const std::string& path, Variable& value) override { check(path, value.data()); }
    void array(const std::string& path, Array& value) override { check(path, value); }
    void integer(const std::string& path, std::int64_t&) override { find(path, "<i8", {}); }
    void integer(const std::string& path, std::uint64_t&) override { find(path, "<u8", {}); }
    void integer_within(const std::string& path, std::int64_t& /*value*/, std::int64_t low,
                        std::int64_t high) override {
        const NpyArray* npy = find(path, "<i8", {});
        std::int64_t got = low;
        if (npy) std::memcpy(&got, npy->bytes.data(), sizeof got);
        if (got < low || got > high)
            problems_ += fmt::format("\n  {}: expected {} to {}, got {}", path, low, high, got);
    }
    void real(const std::string& path, double&) override { find(path, "<f8", {}); }
    void required(const std::string& path, std::int64_t value) override {
        const NpyArray* npy = find(path, "<i8", {});
        std::int64_t got = value;
        if (npy) std::memcpy(&got, npy->bytes.data(), sizeof got);
        compare(path, value, got);
    }
    void required(const std::string& path, std::string_view value) override {
        const NpyArray* npy = find(path);
        if (!npy) return;
        std::string got;
        compare(path, value, is_text(*npy) ? std::string_view(got = text_of(*npy)) : "no text");
    }

    void required_or_converted(const std::string& path, std::string_view value,
                               const std::string& array, Convert convert) override {
        if (file_.contains(path)) return required(path, value);
        // Arrays with several names are staged under one of them.
        const auto found = staged.find(array);
        if (found != staged.end()) found->second = convert(found->second);
    }

    void compare(const std::string& path, std::int64_t value, std::int64_t got) {
        if (got != value) problems_ += fmt::format("\n  {}: expected {}, got {}", path, value, got);
    }
    void compare(const std::string& path, std::string_view value, std::string_view got) {
        if (got == value) return;
        // Long texts from a little before where they part.
        constexpr std::size_t most = 60, before = 20;
        const auto parting =
            static_cast<std::size_t>(std::ranges::mismatch(value, got).in1 - value.begin());
        const std::size_t from =
            std::max(value.size(), got.size()) <= most || parting <= before ? 0 : parting - before;
        const auto shown = [&](std::string_view text) {
            return fmt::format("{}{}{}", from > 0 ? "..." : "", text.substr(from, most),
                               text.size() > from + most ? "..." : "");
        };
        problems_ += fmt::format("\n  {}: expected {}, got {}", path, shown(value), shown(got));
    }

    // Values with several names are saved under each; one of them is enough, more must agree.
    struct Shared {
        std::string path;  // in the file, else the first of the names
        bool found = false;
        const NpyArray* npy = nullptr;
    };

    void check(const std::string& path, const Array& value) {
        Shared& shared = shared_.try_emplace(value.body(), Shared{path}).first->second;
        if (!file_.contains(path)) return;
        const NpyArray* npy = find(path, descr_of(value.dtype()), value.shape());
        if (npy && shared.npy && npy->bytes != shared.npy->bytes) {
            problems_ += fmt::format("\n  {}: expected the same values as {}, got others", path,
                                     shared.path);
        }
        if (npy && !shared.npy) {
            staged[path] = to_array(*npy, value.dtype(), value.device());
            shared = {path, true, npy};
        }
        shared.found = true;
    }
    std::set<std::string> missing() const {
        std::set<std::string> paths;
        for (const auto& [body, shared] : shared_) {
            if (!shared.found) paths.insert(shared.path);
        }
        return paths;
    }

    const NpyArray* find(const std::string& path) {
        seen_.insert(path);
        const auto found = file_.find(path);
        if (found != file_.end()) return &found->second;
        problems_ += fmt::format("\n  {}: missing", path);
        return nullptr;
    }
    const NpyArray* find(const std::string& path, const std::string& descr, const Shape& shape) {
        const NpyArray* npy = find(path);
        if (!npy || (npy->descr == descr && std::ranges::equal(npy->shape, shape))) return npy;
        problems_ += fmt::format(
            "\n  {}: expected {} {}, got {} {}", path, descr, to_string(shape), npy->descr,
            shape_to_string(npy->shape.data(), static_cast<int>(npy->shape.size())));
        return nullptr;
    }

    const Npz& file_;
    std::set<std::string> seen_;
    std::map<const ArrayBody*, Shared> shared_;
    std::string problems_;
};

// Second pass: all of it fits.
class Assigner final : public Visitor {
public:
    Assigner(const Npz& file, const std::map<std::string, Array>& staged)
        : file_(file), staged_(staged) {}

private:
    void parameter(const std::string& path, Variable& value) override { write(path, value.data()); }
    void array(const std::string& path, Array& value) override { write(path, value); }
    void integer(const std::string& path, std::int64_t& value) override { assign(path, value); }
    void integer(const std::string& path, std::uint64_t& value) override { assign(path, value); }
    void real(const std::string& path, double& value) override { assign(path, value); }

    void write(const std::string& path, const Array& value) {
        const auto found = staged_.find(path);
        if (found != staged_.end()) value.copy_from(found->second);  // else by another name
    }
    template <class T>
    void assign(const std::string& path, T& value) {
        std::memcpy(&value, file_.at(path).bytes.data(), sizeof value);
    }

    const Npz& file_;
    const std::map<std::string, Array>& staged_;
};

using Read = Npz (*)(const std::filesystem::path&, std::string_view);
using Write = void (*)(const std::filesystem::path&, const Npz&);

void save(Write write, const std::filesystem::path& file, const Visitable& object) {
    Writer writer;
    // Sound: the writer reads only.
    const_cast<Visitable&>(object).visit(writer);
    write(file, writer.result);
}

void load(Read read, const std::filesystem::path& file, Visitable& object, std::string_view path) {
    Npz arrays;
    for (auto& [name, array] : read(file, path))
        arrays[name.substr(path.size())] = std::move(array);
    if (arrays.empty() && !path.empty()) {
        throw DataError(fmt::format("[load] {}: expected names that begin with '{}', got none",
                                    file.string(), path));
    }
    Checker checker(arrays);
    object.visit(checker);
    if (const std::string problems = checker.problems(); !problems.empty()) {
        throw DataError(
            fmt::format("[load] {}: expected what was saved of the same structure, "
                        "got:{}",
                        file.string(), problems));
    }
    Assigner assigner(arrays, checker.staged);
    object.visit(assigner);
}

}  // namespace

void save_npz(const std::filesystem::path& file, const Visitable& object) {
    save(write_npz, file, object);
}
void save_safetensors(const std::filesystem::path& file, const Visitable& object) {
    save(write_safetensors, file, object);
}
void save_snapshot(const std::filesystem::path& file, const Visitable& object) {
    save(write_stored, file, object);
}

void load_npz(const std::filesystem::path& file, Visitable& object, std::string_view path) {
    load(read_npz, file, object, path);
}
void load_safetensors(const std::filesystem::path& file, Visitable& object, std::string_view path) {
    load(read_safetensors, file, object, path);
}
void load_snapshot(const std::filesystem::path& file, Visitable& object, std::string_view path) {
    load(read_stored, file, object, path);
}

}  // namespace catena
