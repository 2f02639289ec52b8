// Checkpoints: a folder for each step, with a file of each rank.
#include <catena/data_error.hpp>
#include <catena/distributed/checkpoints.hpp>
#include <catena/fail.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace fs = std::filesystem;

namespace catena::distributed {
namespace {

constexpr std::string_view prefix = "step-";
constexpr const char* mark = "complete";

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

// Calls body on rank 0; if it fails, all ranks throw.
template <class Body>
void on_first(const Communicator& comm, const Body& body) {
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

// Throws the problem of the first rank that has one on all ranks.
void check_all(const Communicator& comm, const std::string& problem) {
    const std::vector<std::string> all = comm.allgather_text(problem);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (!all[rank].empty())
            throw DataError(all.size() == 1 ? all[rank]
                                            : fmt::format("{} (rank {})", all[rank], rank));
}

}  // namespace

Checkpoints::Checkpoints(Communicator communicator, fs::path folder, CheckpointOptions options)
    : comm_(std::move(communicator)), folder_(std::move(folder)), options_(std::move(options)) {
    if (options_.keep < 1)
        fail<InvalidError>("[Checkpoints] keep: expected at least 1, got {}", options_.keep);
    on_first(comm_, [&] {
        std::error_code error;
        fs::create_directories(folder_, error);
        if (error)
            fail<DataError>("[Checkpoints] {}: expected a folder that can be written, got {}",
                            folder_.string(), error.message());
    });
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
        if (const auto step = step_of(entry.path()); step && fs::exists(entry.path() / mark))
            result.push_back(*step);
    std::ranges::sort(result);
    return result;
}

void Checkpoints::save(std::int64_t step, const Visitable& state) const {
    const fs::path folder = folder_of(step);
    on_first(comm_, [&] {
        if (fs::exists(folder / mark)) fs::remove(folder / mark);
        fs::remove_all(folder);  // of a run that did not complete it
        fs::create_directories(folder);
    });
    std::string problem;
    try {
        if (!fs::exists(folder))
            fail<DataError>("[Checkpoints] {}: expected a folder that all ranks share, got none",
                            folder.string());
        save_part(file_of(folder, comm_.rank(), comm_.size()), state, comm_.rank(), comm_.size(),
                  options_.is_local);
    } catch (const std::exception& error) {
        problem = error.what();
    }
    check_all(comm_, problem);
    on_first(comm_, [&] {
        write_file(folder / mark, fmt::format("{}\n", comm_.size()));
        std::vector<std::int64_t> kept = steps();
        kept.erase(kept.begin(),
                   kept.end() - std::min<std::ptrdiff_t>(std::ssize(kept), options_.keep));
        std::error_code ignored;  // another program may hold a file; the next save tries again
        for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
            const auto other = step_of(entry.path());
            if (!other || *other == step) continue;
            const bool complete = fs::exists(entry.path() / mark);
            if (complete ? *other >= kept.front() : *other > step) continue;
            fs::remove(entry.path() / mark, ignored);
            fs::remove_all(entry.path(), ignored);
        }
    });
}

void Checkpoints::join(std::int64_t step, const fs::path& file) const {
    on_first(comm_, [&] {
        join_parts(files_of(step, comm_.size()), 0, file);
        fs::remove_all(folder_of(step));
        fs::remove(folder_);  // if it is empty
    });
}

std::optional<std::int64_t> Checkpoints::resume(Visitable& state) const {
    std::string found;  // "step ranks"
    on_first(comm_, [&] {
        const std::vector<std::int64_t> all = steps();
        if (all.empty()) return;
        int size = 0;
        std::ifstream(folder_of(all.back()) / mark) >> size;
        if (size < 1)
            fail<DataError>("[Checkpoints] {}: expected a number of ranks, got none",
                            (folder_of(all.back()) / mark).string());
        found = fmt::format("{} {}", all.back(), size);
    });
    found = comm_.bcast_text(found);
    if (found.empty()) return {};
    std::int64_t step = 0;
    int size = 0;
    std::istringstream(found) >> step >> size;
    std::string problem;
    try {
        load_parts(files_of(step, size), comm_.rank(), state, options_.is_local);
    } catch (const std::exception& error) {
        problem = error.what();
    }
    check_all(comm_, problem);
    return step;
}

}  // namespace catena::distributed
