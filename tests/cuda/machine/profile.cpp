// Counts what kernels do.
#include <algorithm>
#include <map>

#include "checks.hpp"

namespace catena_machine {
namespace {

constexpr std::uint64_t sector = 32;

// Counts the sectors and the different words of an access of global memory.
void count_global(const Warp& w, const Instruction& in, Profile& profile) {
    std::uint64_t sectors[64];
    std::size_t n = 0;
    std::uint64_t bytes = 0, last = 0;
    for (std::uint32_t rest = w.active; rest != 0; rest &= rest - 1) {
        const std::uint64_t address = w.address(in, __builtin_ctz(rest));
        if ((address & window_mask) != 0) return;
        for (std::uint64_t s = address / sector; s <= (address + in.bytes - 1) / sector && n < 64;
             ++s)
            sectors[n++] = s;
        if (address == last) continue;  // lanes that read the same word move it once
        last = address;
        bytes += in.bytes;
        for (const Region& r : w.block->launch->regions) {
            if (r.touched == nullptr || address < r.begin || address + in.bytes > r.end) continue;
            const std::uint32_t launch = w.block->launch->number;
            for (std::uint64_t at = address; at < address + in.bytes; at += 4) {
                const Touched& t = r.touched[(at - r.begin) / 4];
                const std::uint64_t size = std::min<std::uint64_t>(in.bytes, 4);
                if (in.writes && t.write.launch != launch) profile.written += size;
                if (!in.writes && t.read.launch != launch && t.write.launch != launch)
                    profile.read += size;
            }
        }
    }
    std::sort(sectors, sectors + n);
    const auto moved = static_cast<std::uint64_t>(std::unique(sectors, sectors + n) - sectors);
    ++profile.accesses;
    for (std::uint64_t i = 0; i < moved; ++i)
        if (w.block->sectors.insert(sectors[i]).second) {
            ++profile.sectors;
            profile.touched.insert(sectors[i]);
        }
    // A start that is not aligned may cost one sector more.
    if (moved <= (bytes + sector - 1) / sector + 1) ++profile.coalesced;
}

void count_shared(const Warp& w, const Instruction& in, Profile& profile) {
    std::map<std::uint64_t, std::vector<std::uint64_t>> banks;
    for (std::uint32_t rest = w.active; rest != 0; rest &= rest - 1) {
        const std::uint64_t address = w.address(in, __builtin_ctz(rest));
        for (std::uint64_t word = address / 4; word * 4 < address + in.bytes; ++word)
            banks[word % 32].push_back(word);
    }
    std::size_t passes = 0;
    for (auto& [bank, words] : banks) {
        std::sort(words.begin(), words.end());
        passes = std::max<std::size_t>(
            passes,
            static_cast<std::size_t>(std::unique(words.begin(), words.end()) - words.begin()));
    }
    const std::size_t least =
        std::max<std::size_t>(in.bytes / 4, 1);  // wide accesses take several passes
    if (passes > least) profile.conflicts += passes - least;
}

}  // namespace

void count(const Warp& w, const Instruction& in, Profile& profile) {
    Profile::Count& c = profile.instructions[static_cast<std::size_t>(w.pc)];
    ++c.warps;
    c.lanes += static_cast<std::uint64_t>(__builtin_popcount(w.active));
    if (in.bytes == 0) return;
    if (in.space == Space::global || in.space == Space::generic) count_global(w, in, profile);
    if (in.space == Space::shared) count_shared(w, in, profile);
}

std::vector<std::pair<std::string, Profile::Count>> Profile::by_name(const Kernel& kernel) const {
    std::map<std::string, Count> sums;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
        std::string_view text = kernel.code->origins[i].text;
        if (!text.empty() && text.front() == '@')
            text.remove_prefix(std::min(text.find_first_of(" \t"), text.size()));
        text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
        Count& sum = sums[std::string(text.substr(0, text.find_first_of(" \t;")))];
        sum.warps += instructions[i].warps;
        sum.lanes += instructions[i].lanes;
    }
    return {sums.begin(), sums.end()};
}

}  // namespace catena_machine
