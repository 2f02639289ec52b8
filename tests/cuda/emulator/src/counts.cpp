// Collects the kernels, and the other work of devices, that were executed.
#include "counts.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

namespace catena_emulator {
namespace {

using catena_machine::Launch;
using catena_machine::Profile;

// The launches of a kernel, and what the largest did.
struct Executed {
    std::uint64_t launches = 0;
    std::uint64_t lanes = 0;
    std::string counts;
};

std::string text_of(const Launch& launch, const Profile& p) {
    const auto number = [](std::uint64_t n) { return std::to_string(n); };
    const auto triple = [&](catena_machine::Extent e) {
        return "[" + number(e.x) + ", " + number(e.y) + ", " + number(e.z) + "]";
    };
    std::string text =
        ", \"grid\": " + triple(launch.grid) + ", \"block\": " + triple(launch.block) +
        ", \"shared\": " + number(launch.kernel->shared_bytes() + launch.dynamic_shared_bytes) +
        ", \"accesses\": " + number(p.accesses) + ", \"coalesced\": " + number(p.coalesced) +
        ", \"sectors\": " + number(p.sectors) + ", \"touched\": " + number(p.touched.size()) +
        ", \"read\": " + number(p.read) + ", \"written\": " + number(p.written) +
        ", \"conflicts\": " + number(p.conflicts) + ", \"barriers\": " + number(p.barriers) +
        ", \"instructions\": {";
    const char* comma = "";
    for (const auto& [name, count] : p.by_name(*launch.kernel)) {
        if (count.warps == 0) continue;
        text += comma +
                ("\"" + name + "\": [" + number(count.warps) + ", " + number(count.lanes) + "]");
        comma = ", ";
    }
    return text + "}";
}

// Writes a line of JSON for each kernel when the process ends.
struct Report {
    std::mutex mutex;
    std::map<std::string, Executed> kernels;
    std::string folder;
    bool profiles = false;

    Report() {
        if (const char* const name = std::getenv("CATENA_EMULATOR_COVERAGE"); name != nullptr)
            folder = name;
        if (!folder.empty()) std::filesystem::create_directories(folder);
        profiles = !folder.empty() && std::getenv("CATENA_EMULATOR_PROFILE") != nullptr;
    }
    void write() {
        if (folder.empty()) return;
        const std::lock_guard lock(mutex);
        const std::string path = folder + "/" + std::to_string(getpid()) + ".jsonl";
        std::FILE* const file = std::fopen(path.c_str(), "a");
        if (file == nullptr) return;
        for (const auto& [name, executed] : kernels)
            std::fprintf(file, "{\"kernel\": \"%s\", \"launches\": %llu%s}\n", name.c_str(),
                         static_cast<unsigned long long>(executed.launches),
                         executed.counts.c_str());
        std::fclose(file);
    }
};

Report& report();

Report& report() {
    // Not destroyed, because threads of streams may still run.
    static auto* const all = [] {
        std::atexit([] { report().write(); });
        return new Report;
    }();
    return *all;
}
// The folder shows that the emulator was loaded, even if no kernel runs.
[[maybe_unused]] const Report& at_start = report();

}  // namespace

catena_machine::Fault run_and_count(Launch& launch) {
    if (report().folder.empty()) return catena_machine::run(launch);
    Profile profile;
    if (report().profiles && launch.threads == 1) launch.profile = &profile;
    catena_machine::Fault fault = catena_machine::run(launch);
    const std::lock_guard lock(report().mutex);
    Executed& executed = report().kernels[launch.kernel->name()];
    ++executed.launches;
    std::uint64_t lanes = 0;
    for (const Profile::Count& c : profile.instructions) lanes += c.lanes;
    if (lanes > executed.lanes) {
        executed.lanes = lanes;
        executed.counts = text_of(launch, profile);
    }
    return fault;
}

void count(const char* work) {
    if (report().folder.empty()) return;
    const std::lock_guard lock(report().mutex);
    ++report().kernels[work].launches;
}

}  // namespace catena_emulator
