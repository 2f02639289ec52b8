// Checkpoints: a folder for each step, with a file of each rank.
#include <catena/cuda/device.hpp>
#include <catena/data_error.hpp>
#include <catena/distributed/checkpoints.hpp>
#include <catena/fail.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <mutex>
#include <sstream>

namespace fs = std::filesystem;

namespace catena::distributed {
namespace {

constexpr std::string_view prefix = "step-";
constexpr const char* mark = "complete";
constexpr const char* unpublished = ".new";  // a folder that is being written

// The step in the name of a folder, or nullopt.
std::optional<std::int64_t> step_of(const fs::path& folder) {
    const std::string name = folder.filename().string();
    if (!name.starts_with(prefix)) return {};
    std::int64_t step = 0;
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, step);
    if (error != std::errc() || rest != end) return {};
    return step;
}

fs::path file_of(const fs::path& folder, int rank, int size) {
    return folder / fmt::format("rank-{}-of-{}.safetensors", rank, size);
}

// The number of ranks of a checkpoint; 0 unless complete: the mark has it and the files' sizes.
int ranks_of(const fs::path& folder) {
    std::ifstream text(folder / mark);
    int size = 0;
    text >> size;
    for (int rank = 0; rank < size; ++rank) {
        std::uintmax_t bytes = 0;
        std::error_code error;
        if (!(text >> bytes) || fs::file_size(file_of(folder, rank, size), error) != bytes)
            return 0;
    }
    return std::max(size, 0);
}

// Gives a complete checkpoint its name, which an earlier one of the same step has until now.
void publish(const fs::path& folder) {
    const fs::path final = fs::path(folder).replace_extension();
    fs::remove(final / mark);
    fs::remove_all(final);
    fs::rename(folder, final);
}

// Publishes, or removes, what a run wrote that was killed.
void clean_up(const fs::path& folder) {
    std::vector<fs::path> left;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == unpublished && step_of(entry.path().stem()))
            left.push_back(entry.path());
    for (const fs::path& each : left) {
        if (ranks_of(each) > 0) publish(each);
        else fs::remove_all(each);
    }
}

// Calls body on rank 0; if it fails, all ranks throw.
template <class Body>
void on_first(const Communicator& comm, const Body& body) {
    if (comm.size() == 1) return body();
    std::string problem;
    if (comm.rank() == 0) {
        try {
            body();
        } catch (const std::exception& error) {
            problem = error.what();
        }
    }
    problem = comm.bcast_text(problem);
    if (!problem.empty()) throw DataError(problem);
}

// Calls body on all ranks; if it fails on some, all throw the problem of the first of them.
template <class Body>
void on_all(const Communicator& comm, const Body& body) {
    std::string problem;
    try {
        body();
    } catch (const std::exception& error) {
        problem = error.what();
    }
    const std::vector<std::string> all = comm.allgather_text(problem);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (!all[rank].empty())
            throw DataError(all.size() == 1 ? all[rank]
                                            : fmt::format("{} (rank {})", all[rank], rank));
}

// A lock on a file, which the system releases when the process ends.
class FileLock {
public:
    // Throws DataError if another process has it. Does nothing if the file system has no locks.
    explicit FileLock(const fs::path& file)
        : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) {
        if (fd_ < 0 || flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
        ::close(fd_);
        fail<DataError>(
            "[Checkpoints] {}: expected a folder that no other run uses, got one that another run "
            "uses: wait for its end, or take another folder",
            file.parent_path().string());
    }
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;
    ~FileLock() {
        if (fd_ >= 0) ::close(fd_);
    }
    bool is_of_this_process() const { return pid_ == getpid(); }  // not of one that forked it

private:
    int fd_;
    pid_t pid_ = getpid();
};

// The lock of a folder, which all objects of this process share.
std::shared_ptr<const void> lock_of(const fs::path& folder) {
    static std::mutex mutex;
    static std::map<fs::path, std::weak_ptr<const FileLock>> locks;
    const std::lock_guard guard(mutex);
    std::weak_ptr<const FileLock>& known = locks[fs::canonical(folder)];
    std::shared_ptr<const FileLock> lock = known.lock();
    if (!lock || !lock->is_of_this_process())
        known = lock = std::make_shared<const FileLock>(folder / "lock");
    return lock;
}

}  // namespace

Checkpoints::Checkpoints(Communicator communicator, fs::path folder, CheckpointOptions options)
    : comm_(std::move(communicator)), folder_(std::move(folder)), options_(std::move(options)) {
    if (options_.keep < 1)
        fail<InvalidError>("[Checkpoints] keep: expected at least 1, got {}", options_.keep);
    const fs::path probe = folder_ / "probe";
    on_first(comm_, [&] {
        std::error_code error;
        fs::create_directories(folder_, error);
        if (error)
            fail<DataError>("[Checkpoints] {}: expected a folder that can be written, got {}",
                            folder_.string(), error.message());
        lock_ = lock_of(folder_);
        write_file(probe, "");
    });
    on_all(comm_, [&] {
        if (!fs::exists(probe))
            fail<DataError>("[Checkpoints] {}: expected a folder that all ranks share, got none",
                            folder_.string());
    });
    if (comm_.rank() == 0) fs::remove(probe);
}

fs::path Checkpoints::folder_of(std::int64_t step) const {
    return folder_ / fmt::format("{}{}", prefix, step);
}

std::vector<fs::path> Checkpoints::files_of(std::int64_t step, int size) const {
    std::vector<fs::path> files;
    for (int rank = 0; rank < size; ++rank) files.push_back(file_of(folder_of(step), rank, size));
    return files;
}

std::vector<std::int64_t> Checkpoints::steps() const {
    std::vector<std::int64_t> result;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error))
        if (const auto step = step_of(entry.path()); step && ranks_of(entry.path()) > 0)
            result.push_back(*step);
    std::ranges::sort(result);
    return result;
}

void Checkpoints::save(std::int64_t step, const Visitable& state) const {
    const fs::path folder = folder_of(step) += unpublished;
    on_first(comm_, [&] {
        clean_up(folder_);
        fs::create_directory(folder);
    });
    on_all(comm_, [&] {
        save_part(file_of(folder, comm_.rank(), comm_.size()), state, comm_.rank(), comm_.size(),
                  options_.is_local);
    });
    on_first(comm_, [&] {
        std::string text = fmt::format("{}\n", comm_.size());
        for (int rank = 0; rank < comm_.size(); ++rank)
            text += fmt::format("{}\n", fs::file_size(file_of(folder, rank, comm_.size())));
        write_file(folder / mark, text);
        publish(folder);
        std::vector<std::int64_t> kept = steps();
        kept.erase(kept.begin(),
                   kept.end() - std::min<std::ptrdiff_t>(std::ssize(kept), options_.keep));
        std::error_code ignored;  // another program may hold a file; the next save tries again
        for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
            const auto other = step_of(entry.path());
            if (!other || *other == step) continue;
            const bool complete = ranks_of(entry.path()) > 0;
            if (complete ? *other >= kept.front() : *other > step) continue;
            fs::remove(entry.path() / mark, ignored);
            fs::remove_all(entry.path(), ignored);
        }
    });
}

std::optional<std::int64_t> Checkpoints::resume(Visitable& state) const {
    std::string found;  // "step ranks"
    on_first(comm_, [&] {
        clean_up(folder_);
        const std::vector<std::int64_t> all = steps();
        if (!all.empty()) found = fmt::format("{} {}", all.back(), ranks_of(folder_of(all.back())));
    });
    found = comm_.bcast_text(found);
    if (found.empty()) return {};
    std::int64_t step = 0;
    int size = 0;
    std::istringstream(found) >> step >> size;
    on_all(comm_,
           [&] { load_parts(files_of(step, size), comm_.rank(), state, options_.is_local); });
    return step;
}

// ---- snapshots

namespace {

class Parts final : public Visitor {
public:
    explicit Parts(const Visitable& state) { const_cast<Visitable&>(state).visit(*this); }
    struct Part {
        Array own;
        std::int64_t begin;
        Shape whole;
    };
    std::map<std::string, Part> by_name;  // in the same order on all ranks

private:
    void array_part(const std::string& path, Array& part, std::int64_t begin,
                    const Shape& whole) override {
        if (whole.size() > 0) by_name[path] = {part, begin, whole};
    }
};

// Gathers an array on rank 0; on others, returns an empty handle. `lines` has one of each rank.
Array gather(const Communicator& comm, const std::string& name, const Parts::Part& part,
             std::span<std::istringstream> lines) {
    std::vector<std::int64_t> begins, counts;
    std::string dtype;
    std::int64_t total = 0;
    for (std::istringstream& line : lines) {
        std::string own, path;
        line >> begins.emplace_back() >> counts.emplace_back() >> own >> std::ws;
        std::getline(line, path);
        if (path != name)
            fail<InvalidError>("[save] parts: expected {} on all ranks, got '{}' on rank {}", name,
                               path, begins.size() - 1);
        if (counts.back() > 0) dtype = own;
        total += counts.back();
    }
    if (total != part.whole.size())
        fail<InvalidError>("[save] {}: expected parts of {} elements in all, got {}", name,
                           part.whole.size(), total);
    const bool receives = comm.rank() == 0;
    const Dtype type = dtype_from_name(dtype);
    const Array own =
        part.own ? part.own.to(cuda::host()).reshape({-1}) : Array::zeros({0}, type, cuda::host());
    const Array pieces = receives ? Array::empty({total}, type, cuda::host()) : Array();
    comm.gather(own, pieces, 0, counts, {.label = name}).wait();
    if (!receives) return {};
    const Array whole = Array::empty(part.whole, type, cuda::host());
    std::int64_t begin = 0;
    for (std::size_t r = 0; r < counts.size(); begin += counts[r++])
        whole.view(begins[r], {counts[r]}).copy_from(pieces.view(begin, {counts[r]}));
    return whole;
}

}  // namespace

void save_snapshot(const Communicator& comm, const fs::path& file, const Visitable& state) {
    const Parts parts(state);
    std::string own;  // "begin size dtype name"
    for (const auto& [name, part] : parts.by_name)
        own += fmt::format("{} {} {} {}\n", part.begin, part.own ? part.own.size() : 0,
                           part.own ? catena::name(part.own.dtype()) : "none", name);
    std::vector<std::istringstream> lines;
    for (const std::string& text : comm.allgather_text(own)) lines.emplace_back(text);
    std::map<std::string, Array> wholes;
    for (const auto& [name, part] : parts.by_name) wholes[name] = gather(comm, name, part, lines);
    on_first(comm, [&] { catena::save_snapshot(file, state, wholes); });
}

}  // namespace catena::distributed
