// Serializer: saves visited values to a file, and loads them in two passes: check, then assign.
#include "npz.hpp"

#include <catena/core/tables.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/serializer.hpp>

#include <charconv>
#include <cstring>
#include <set>

namespace catena {
namespace fs = std::filesystem;
namespace {

// A visitor that receives values as files store them: arrays, and numbers of 64 bits.
class Values : public Visitor {
    virtual void value(const std::string& path, const Array& array) = 0;
    virtual void number(const std::string& path, const char* descr, void* bits) = 0;

    void parameter(const std::string& path, Variable& v) final { value(path, v.data()); }
    void array(const std::string& path, Array& v) final { value(path, v); }
    void integer(const std::string& path, std::int64_t& v) final { number(path, "<i8", &v); }
    void integer(const std::string& path, std::uint64_t& v) final { number(path, "<u8", &v); }
    void real(const std::string& path, double& v) final { number(path, "<f8", &v); }
};
constexpr std::size_t number_bytes = 8;

// In a file of parts, "optimizer/l1/W/m@64@784x100" is a part that begins at element 64.
constexpr std::string_view local_mark = "@local";

class Writer final : public Values {
public:
    // Saves parts as they are, or else the arrays of these names.
    explicit Writer(bool parts, const std::map<std::string, Array>* wholes = nullptr)
        : wholes_(wholes), parts_(parts) {}
    Npz result;

private:
    void value(const std::string& path, const Array& array) override { add(path, to_npy(array)); }
    void number(const std::string& path, const char* descr, void* bits) override {
        const auto* bytes = static_cast<const std::byte*>(bits);
        add(path, {descr, {}, {bytes, bytes + number_bytes}});
    }
    void array_part(const std::string& path, Array& part, std::int64_t begin,
                    const Shape& whole) override {
        if (wholes_ && wholes_->contains(path)) return value(path, wholes_->at(path));
        if (!parts_) return Visitor::array_part(path, part, begin, whole);
        if (part && part.size() > 0)
            add(path, to_npy(part), fmt::format("@{}@{}", begin, fmt::join(whole, "x")));
    }
    void required(const std::string& path, std::int64_t value) override {
        number(path, "<i8", &value);
    }
    void required(const std::string& path, std::string_view value) override {
        add(path, from_text(value));
    }
    void add(const std::string& path, NpyArray npy, const std::string& place = {}) {
        if (parts_ && path.find('@') != path.npos)
            fail<InvalidError>("[save] names: expected none with '@', which marks parts, got {}",
                               path);
        if (!result.emplace(path + place, std::move(npy)).second)
            fail<InvalidError>("[save] names: expected each once, got {} twice", path);
    }
    const std::map<std::string, Array>* wholes_;
    bool parts_;
};

bool same_kind(Dtype a, Dtype b) { return is_floating(a) == is_floating(b); }

// Finds, before the file is read, which of its arrays can fit. Others are not read, to save memory.
class Expected final : public Values {
public:
    explicit Expected(bool convert) : convert_(convert) {}

    struct Want {
        std::string descr;  // "" for a text
        Shape shape;
        std::uint64_t text = 0;           // most bytes of a text
        std::int64_t begin = 0, end = 0;  // elements of an array
    };
    bool fits(const std::string& path, const NpyArray& header) const {
        return find(path, header) != nullptr;
    }
    const Want* find(const std::string& path, const NpyArray& header) const {
        const auto [begin, end] = wants_.equal_range(path);
        const auto fitting = [&](const auto& want) { return fits(want.second, header); };
        const auto found = std::find_if(begin, end, fitting);
        return found == end ? nullptr : &found->second;
    }

private:
    bool fits(const Want& want, const NpyArray& header) const {
        if (want.descr.empty()) return is_text(header) && text_size(header) <= want.text;
        if (!std::ranges::equal(header.shape, want.shape)) return false;
        const auto there = dtype_of_descr(header.descr), here = dtype_of_descr(want.descr);
        return header.descr == want.descr ||
               (convert_ && there && here && same_kind(*there, *here));
    }

    void value(const std::string& path, const Array& array) override {
        wants_.emplace(path, Want{descr_of(array.dtype()), array.shape(), 0, 0, array.size()});
    }
    void array_part(const std::string& path, Array& part, std::int64_t begin,
                    const Shape& whole) override {
        if (part)
            wants_.emplace(path,
                           Want{descr_of(part.dtype()), whole, 0, begin, begin + part.size()});
    }
    void number(const std::string& path, const char* descr, void*) override {
        wants_.emplace(path, Want{descr, {}, 0, 0, 0});
    }
    void required(const std::string& path, std::int64_t) override { number(path, "<i8", nullptr); }
    void required(const std::string& path, std::string_view value) override {
        constexpr std::uint64_t more = 1 << 20;  // so that a message can show where texts differ
        wants_.emplace(path, Want{"", {}, value.size() + more, 0, 0});
    }

    bool convert_;
    std::multimap<std::string, Want> wants_;
};

// First pass: checks the file's values, and copies the arrays to assign to their devices.
class Checker final : public Values {
public:
    // has_beside: whether the file, before renaming, has a value of this name next to this array.
    using HasBeside = std::function<bool(const std::string& array, std::string_view name)>;
    Checker(const Npz& file, const LoadOptions& options, HasBeside has_beside)
        : file_(file), options_(options), has_beside_(std::move(has_beside)) {}

    // Returns the names that did not match. Call it after the visit.
    LoadReport report() const {
        std::set<std::string> missing = missing_;
        for (const auto& [body, shared] : shared_) {
            if (!shared.found) missing.insert(shared.path);
        }
        LoadReport result;
        result.missing.assign(missing.begin(), missing.end());
        for (const auto& [path, npy] : file_) {
            if (seen_.contains(path) || (options_.rename && is_text(npy))) continue;
            result.unexpected.push_back(path);
        }
        return result;
    }
    std::string problems(const LoadReport& report) const {
        std::string text = problems_;
        if (convertible_)
            text += "\n  (only the dtype differs: LoadOptions{.convert = true} converts)";
        if (!options_.strict) return text;
        for (const std::string& path : report.missing) text += fmt::format("\n  {}: missing", path);
        for (const std::string& path : report.unexpected)
            text += fmt::format("\n  {}: not expected", path);
        if (!report.missing.empty() && !report.unexpected.empty())
            text +=
                "\n  (if it is the same under other names, LoadOptions{.rename = ...} says which; "
                "{.strict = false} loads what is there)";
        return text;
    }
    // Returns the arrays to assign. Call it once, after the visit.
    std::map<std::string, Array> take() {
        // An array with several names may be staged under only one of them.
        for (const auto& [path, convert] : conversions_) {
            const auto found = staged_.find(path);
            if (found != staged_.end()) found->second = convert(found->second);
        }
        return std::move(staged_);
    }

private:
    void value(const std::string& path, const Array& array) override { check(path, array); }
    void array_part(const std::string& path, Array& part, std::int64_t begin,
                    const Shape& whole) override {
        if (!part) return whole.size() > 0 ? void(find(path)) : void(seen_.insert(path));
        const NpyArray* npy = find(path, descr_of(part.dtype()), whole);
        if (!npy) return;
        const auto item = static_cast<std::size_t>(item_size(part.dtype()));
        const bool all = npy->bytes.size() == static_cast<std::size_t>(whole.size()) * item;
        const auto* first =  // Joined has only the elements of this part
            npy->bytes.data() + (all ? static_cast<std::size_t>(begin) * item : 0);
        const NpyArray own{npy->descr,
                           {part.size()},
                           {first, first + static_cast<std::size_t>(part.size()) * item}};
        staged_[path] = to_array(own, part.dtype(), part.device());
    }
    void number(const std::string& path, const char* descr, void*) override {
        find(path, descr, {});
    }
    void integer_within(const std::string& path, std::int64_t& /*value*/, std::int64_t low,
                        std::int64_t high) override {
        const std::int64_t got = integer_or(path, low);
        if (got < low || got > high) expect(path, fmt::format("{} to {}", low, high), got);
    }
    void required(const std::string& path, std::int64_t value) override {
        const std::int64_t got = integer_or(path, value);
        if (got != value) expect(path, value, got);
    }
    void required(const std::string& path, std::string_view value) override {
        const NpyArray* npy = find(path);
        if (!npy) return;
        std::string got = "no text";
        if (is_text(*npy))
            got = npy->bytes.empty() ? fmt::format("a text of {} bytes", text_size(*npy))
                                     : text_of(*npy);
        compare(path, value, got);
    }

    void required_or_converted(const std::string& path, std::string_view value,
                               const std::string& array, Convert conversion) override {
        if (file_.contains(path)) return required(path, value);
        // If the file has the text, skipped by the rename, the array needs no conversion.
        if (has_beside_(array, std::string_view(path).substr(path.rfind('/') + 1)))
            missing_.insert(path);
        else conversions_.emplace_back(array, conversion);
    }

    template <class Expected, class Got>
    void expect(const std::string& path, const Expected& expected, const Got& got) {
        problems_ += fmt::format("\n  {}: expected {}, got {}", path, expected, got);
    }
    // Returns the integer in the file, or value if it has none.
    std::int64_t integer_or(const std::string& path, std::int64_t value) {
        const NpyArray* npy = find(path, "<i8", {});
        if (npy) std::memcpy(&value, npy->bytes.data(), sizeof value);
        return value;
    }
    void compare(const std::string& path, std::string_view value, std::string_view got) {
        if (got == value) return;
        // Shows long texts from shortly before their first difference.
        constexpr std::size_t most = 60, before = 20;
        const auto parting =
            static_cast<std::size_t>(std::ranges::mismatch(value, got).in1 - value.begin());
        const std::size_t from =
            std::max(value.size(), got.size()) <= most || parting <= before ? 0 : parting - before;
        const auto shown = [&](std::string_view text) {
            return fmt::format("{}{}{}", from > 0 ? "..." : "", text.substr(from, most),
                               text.size() > from + most ? "..." : "");
        };
        expect(path, shown(value), shown(got));
    }

    // A value with several names is saved under each. Loading needs one; others must be equal.
    struct Shared {
        std::string path;  // the name found in the file, else the first name
        bool found = false;
        const NpyArray* npy = nullptr;
    };

    void check(const std::string& path, const Array& value) {
        Shared& shared = shared_.try_emplace(value.body(), Shared{path}).first->second;
        if (!file_.contains(path)) return;
        if (convert(path, value)) {
            if (shared.found &&
                staged_[path].to_vector<double>() != staged_.at(shared.path).to_vector<double>())
                expect(path, "the same values as " + shared.path, "others");
            shared.path = path;
            shared.found = true;
            return;
        }
        const NpyArray* npy = find(path, descr_of(value.dtype()), value.shape());
        if (npy && shared.npy && npy->bytes != shared.npy->bytes)
            expect(path, "the same values as " + shared.path, "others");
        if (npy && !shared.npy) {
            staged_[path] = to_array(*npy, value.dtype(), value.device());
            shared = {path, true, npy};
        }
        shared.found = true;
    }
    // Stages a value of this shape with another dtype of the same kind, if options_.convert is set.
    bool convert(const std::string& path, const Array& value) {
        const NpyArray& npy = file_.at(path);
        const auto dtype = dtype_of_descr(npy.descr);
        if (!dtype || !std::ranges::equal(npy.shape, value.shape())) return false;
        if (dtype == value.dtype() || !same_kind(*dtype, value.dtype())) return false;
        convertible_ = convertible_ || !options_.convert;
        if (!options_.convert) return false;
        const Array there = to_array(npy, *dtype, value.device());
        Array converted = there.astype(value.dtype());
        if (!is_floating(*dtype) &&
            converted.to_vector<std::int64_t>() != there.to_vector<std::int64_t>())
            return false;  // find() then reports both dtypes
        seen_.insert(path);
        staged_[path] = std::move(converted);
        return true;
    }

    const NpyArray* find(const std::string& path) {
        seen_.insert(path);
        const auto found = file_.find(path);
        if (found != file_.end()) return &found->second;
        missing_.insert(path);
        return nullptr;
    }
    const NpyArray* find(const std::string& path, const std::string& descr, const Shape& shape) {
        const NpyArray* npy = find(path);
        if (!npy || (npy->descr == descr && std::ranges::equal(npy->shape, shape))) return npy;
        const std::string got =
            is_text(*npy) ? "a text"
                          : fmt::format("{} {}", dtype_name(npy->descr),
                                        shape_to_string(npy->shape.data(),
                                                        static_cast<int>(npy->shape.size())));
        expect(path, fmt::format("{} {}", dtype_name(descr), to_string(shape)), got);
        return nullptr;
    }

    // Returns "float32" for "<f4"; the name in the file if catena lacks the dtype.
    static std::string dtype_name(const std::string& descr) {
        if (const auto dtype = dtype_of_descr(descr)) return std::string(name(*dtype));
        return descr.empty() ? "a dtype that catena lacks" : "'" + descr + "'";
    }

    const Npz& file_;
    const LoadOptions& options_;
    HasBeside has_beside_;
    std::map<std::string, Array> staged_;
    std::vector<std::pair<std::string, Convert>> conversions_;
    std::set<std::string> seen_;
    std::set<std::string> missing_;  // names of values other than arrays
    bool convertible_ = false;       // an array has another dtype, which could be converted
    std::map<const ArrayBody*, Shared> shared_;
    std::string problems_;
};

// Second pass: assigns the values, which all fit.
class Assigner final : public Values {
public:
    Assigner(const Npz& file, const std::map<std::string, Array>& staged)
        : file_(file), staged_(staged) {}

private:
    void value(const std::string& path, const Array& array) override {
        const auto found = staged_.find(path);
        if (found != staged_.end()) array.copy_from(found->second);  // else under another name
    }
    void array_part(const std::string& path, Array& part, std::int64_t, const Shape&) override {
        if (part) value(path, part);
    }
    void number(const std::string& path, const char*, void* bits) override {
        const auto found = file_.find(path);
        if (found != file_.end()) std::memcpy(bits, found->second.bytes.data(), number_bytes);
    }

    const Npz& file_;
    const std::map<std::string, Array>& staged_;
};

using Read = Npz (*)(const fs::path&, std::string_view, const Wanted&);
using Write = void (*)(const fs::path&, const Npz&);

void save(Write write, const fs::path& file, const Visitable& object,
          const std::map<std::string, Array>* wholes = nullptr) {
    naming_file("save", file, [&] {
        Writer writer(false, wholes);
        const_cast<Visitable&>(object).visit(writer);  // the writer only reads
        write(file, writer.result);
    });
}

// A part of an array in a file.
struct StoredPart {
    std::string path;
    std::int64_t begin = 0, end = 0;
    NpyArray whole;  // without bytes
    std::int64_t size = 1;
};

StoredPart stored_part(const std::string& name, const NpyArray& part) {
    const auto require = [&](bool right) {
        if (!right)
            fail<DataError>("[load] {}: expected a part of an array with its place, got another",
                            beginning(name));
    };
    const std::size_t at = name.find('@');
    std::vector<std::int64_t> numbers;  // where it begins, and the extents of the whole array
    for (std::size_t i = at; i != name.npos && i + 1 < name.size();
         i = name.find_first_of("@x", i + 1)) {
        const auto [end, error] =
            std::from_chars(name.data() + i + 1, name.data() + name.size(), numbers.emplace_back());
        require(error == std::errc() && numbers.back() >= 0);
    }
    require(!numbers.empty() && part.shape.size() == 1 && part.shape[0] >= 1);
    StoredPart result{name.substr(0, at), numbers[0], 0, {part.descr, {}, {}}};
    result.whole.shape.assign(numbers.begin() + 1, numbers.end());
    for (const std::int64_t extent : result.whole.shape)
        require(!__builtin_mul_overflow(result.size, extent, &result.size));
    require(part.shape[0] <= result.size && result.begin <= result.size - part.shape[0]);
    result.end = result.begin + part.shape[0];
    return result;
}

// Of the files of all processes: local values of one, and needed elements of parts.
class Joined {
public:
    Joined(std::span<const fs::path> files, std::size_t own, const Expected& expected)
        : expected_(expected) {
        if (files.empty()) throw InvalidError("[load] files: expected one or more, got none");
        for (std::size_t i = 0; i < files.size(); ++i) {
            const auto wanted = [&](const std::string& name, const NpyArray& header) {
                if (name.ends_with(local_mark))
                    return i == own && expected.fits(plain(name), header);
                if (name.find('@') == name.npos) return expected.fits(name, header);
                const auto [begin, end] = shared(stored_part(name, header));
                return begin < end;
            };
            for (auto& [name, npy] : read_stored(files[i], {}, wanted)) {
                if (name.ends_with(local_mark)) {
                    if (i == own) all.insert_or_assign(plain(name), std::move(npy));
                } else if (name.find('@') != name.npos) {
                    add(name, npy);
                } else if (!all.emplace(name, std::move(npy)).second) {
                    fail<DataError>("[load] {}: expected {} in one of the files, got it in two",
                                    files[i].string(), name);
                }
            }
        }
        for (auto& [name, places] : places_) require_each_once(name, places);
    }
    Npz all;

private:
    using Places = std::vector<std::pair<std::int64_t, std::int64_t>>;

    static std::string plain(const std::string& name) {
        return name.substr(0, name.size() - local_mark.size());
    }
    // The elements that both the part and the object have.
    std::pair<std::int64_t, std::int64_t> shared(const StoredPart& part) const {
        const auto* want = expected_.find(part.path, part.whole);
        if (!want) return {};
        return {std::max(want->begin, part.begin), std::min(want->end, part.end)};
    }
    void add(const std::string& name, const NpyArray& npy) {
        StoredPart part = stored_part(name, npy);
        const auto [begin, end] = shared(part);
        Places& places = places_[part.path];
        const auto [found, is_new] = all.try_emplace(part.path, part.whole);
        NpyArray& whole = found->second;
        if (is_new != places.empty() || whole.descr != npy.descr || whole.shape != part.whole.shape)
            fail<DataError>("[load] {}: expected parts of one array, got those of several",
                            beginning(part.path));
        places.emplace_back(part.begin, part.end);
        if (begin >= end) return;
        const std::int64_t item = std::ssize(npy.bytes) / npy.shape[0];
        const auto& want = *expected_.find(part.path, part.whole);
        if (whole.bytes.empty())
            whole.bytes.resize(static_cast<std::size_t>((want.end - want.begin) * item));
        std::copy_n(npy.bytes.begin() + (begin - part.begin) * item, (end - begin) * item,
                    whole.bytes.begin() + (begin - want.begin) * item);
    }
    void require_each_once(const std::string& name, Places& places) const {
        std::ranges::sort(places);
        std::int64_t next = 0, size = 1;
        for (const std::int64_t extent : all.at(name).shape) size *= extent;
        places.emplace_back(size, size);
        for (const auto& [begin, end] : places) {
            if (begin != next)
                fail<DataError>(
                    "[load] {}: expected parts that have each of {} elements once, got one that "
                    "ends at {} before one that begins at {}",
                    beginning(name), size, next, begin);
            next = end;
        }
    }

    const Expected& expected_;
    std::map<std::string, Places> places_;
};

// Assigns the values, or throws and changes nothing.
LoadReport assign(const std::string& what, const Npz& arrays, Visitable& object,
                  const LoadOptions& options, const Checker::HasBeside& has_beside) {
    Checker checker(arrays, options, has_beside);
    object.visit(checker);
    LoadReport report = checker.report();
    std::string problems = checker.problems(report);
    if (!problems.empty())
        fail<DataError>(
            "[load] {}: expected the saved state of an object with the same structure, got:{}",
            what, problems);
    const std::map<std::string, Array> staged = checker.take();
    Assigner assigner(arrays, staged);
    object.visit(assigner);
    return report;
}

LoadReport load(Read read, const fs::path& file, Visitable& object, const LoadOptions& options) {
    Expected expected(options.convert);
    object.visit(expected);
    std::map<std::string, std::string> names;  // from names of the object to names of the file
    const auto wanted = [&](const std::string& full, const NpyArray& header) {
        std::string name = full.substr(options.path.size());
        if (options.rename) name = options.rename(name);
        if (name.empty()) return false;
        // A text and an array of a .safetensors file may share a name; the array is used.
        if (names.try_emplace(name, full).first->second != full)
            fail<InvalidError>(
                "[load] {}: rename: expected a name for each array, got {} twice, for {} too",
                file.string(), name, full);
        return expected.fits(name, header);
    };
    Npz stored = read(file, options.path, wanted);
    const auto has_beside = [&](const std::string& array, std::string_view name) {
        const auto found = names.find(array);
        if (found == names.end()) return false;
        const std::string& full = found->second;
        return stored.contains(full.substr(0, full.find_last_of("/.") + 1).append(name));
    };
    Npz arrays;
    for (const auto& [name, full] : names) arrays.emplace(name, std::move(stored.at(full)));
    if (arrays.empty() && !options.path.empty())
        fail<DataError>("[load] {}: expected names with the prefix '{}', got none", file.string(),
                        options.path);
    return assign(file.string(), arrays, object, options, has_beside);
}

LoadOptions part(std::string_view path) { return {.path = std::string(path)}; }

}  // namespace

void save_npz(const fs::path& file, const Visitable& object) { save(write_npz, file, object); }
void save_safetensors(const fs::path& file, const Visitable& object) {
    save(write_safetensors, file, object);
}
void save_snapshot(const fs::path& file, const Visitable& object) {
    save(write_stored, file, object);
}
void save_snapshot(const fs::path& file, const Visitable& object,
                   const std::map<std::string, Array>& wholes) {
    save(write_stored, file, object, &wholes);
}

void save_part(const fs::path& file, const Visitable& object, int index, int count,
               const IsLocal& is_local) {
    Writer writer(true);
    const_cast<Visitable&>(object).visit(writer);  // the writer only reads
    Npz own;
    std::vector<std::size_t> bytes(static_cast<std::size_t>(count));
    for (auto& [name, npy] : writer.result) {
        if (name.find('@') != name.npos) {
            own.emplace(name, std::move(npy));
        } else if (is_local && is_local(name)) {
            own.emplace(name + std::string(local_mark), std::move(npy));
        } else {  // the file with the least so far
            const auto least = std::ranges::min_element(bytes);
            *least += npy.bytes.size() + 1;
            if (least - bytes.begin() == index) own.emplace(name, std::move(npy));
        }
    }
    naming_file("save", file, [&] { write_stored(file, own); });
}

void load_parts(std::span<const fs::path> files, int index, Visitable& object,
                const IsLocal& is_local) {
    Expected expected(/*convert=*/false);
    object.visit(expected);
    const Npz all = Joined(files, static_cast<std::size_t>(index), expected).all;
    const auto none = [](const std::string&, std::string_view) { return false; };
    // A rank that the saved state did not have keeps its own local values.
    if (index < std::ssize(files) || !is_local)
        return void(assign(files[0].string(), all, object, {}, none));
    const LoadReport report = assign(files[0].string(), all, object, {.strict = false}, none);
    for (const std::string& name : report.missing)
        if (!is_local(name))
            fail<DataError>("[load] {}: expected it in one of the files, got none", name);
}

void load_npz(const fs::path& file, Visitable& object, std::string_view path) {
    load_npz(file, object, part(path));
}
void load_safetensors(const fs::path& file, Visitable& object, std::string_view path) {
    load_safetensors(file, object, part(path));
}
void load_snapshot(const fs::path& file, Visitable& object, std::string_view path) {
    load_snapshot(file, object, part(path));
}

LoadReport load_npz(const fs::path& file, Visitable& object, const LoadOptions& options) {
    return naming_file("load", file, [&] { return load(read_npz, file, object, options); });
}
LoadReport load_safetensors(const fs::path& file, Visitable& object, const LoadOptions& options) {
    return naming_file("load", file, [&] { return load(read_safetensors, file, object, options); });
}
LoadReport load_snapshot(const fs::path& file, Visitable& object, const LoadOptions& options) {
    return naming_file("load", file, [&] { return load(read_stored, file, object, options); });
}

std::function<std::string(const std::string&)> renaming(std::map<std::string, std::string> names) {
    return [names = std::move(names)](const std::string& name) {
        const auto found = names.find(name);
        return found == names.end() ? name : found->second;
    };
}

}  // namespace catena
