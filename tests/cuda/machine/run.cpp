// Runs grids: blocks one after the other or on several OS threads, the warps of a block in turn from
// barrier to barrier. The lanes of a warp that are at the same instruction form a group and execute it
// together. The group that is furthest behind runs first, so groups meet again where their paths join.
#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "checks.hpp"

namespace catena_machine {

namespace {

const std::unordered_map<std::string, Entry>& entries() {
    static const auto* const all = [] {
        struct Filled final : Table {
            std::unordered_map<std::string, Entry> map;
            void add(const char* name, Type type, Handler run,
                     std::initializer_list<Type> types) override {
                std::string text = name;
                if (const std::size_t at = text.find('$'); at != std::string::npos)
                    text.replace(at, 1, name_of(type));
                map[text] = {run, types};
            }
        };
        auto* const table = new Filled;
        const bool wide = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
        (wide ? avx2::fill : baseline::fill)(*table);
        return &table->map;
    }();
    return *all;
}

struct Group {
    std::int32_t pc;
    std::uint32_t lanes;
};

struct Stuck {
    std::int32_t pc;
    int lane;
    std::string why;
};

enum class Pause { barrier, ended };

struct Runner : Warp {
    Pause run();

private:
    std::uint32_t holding(const Instruction& in) const;  // lanes for which the predicate holds
    void regroup();
    bool next();  // false: all lanes have ended
    void block_here();
    void join_blocked();
    std::uint32_t complete(const Instruction& in);
    [[noreturn]] void stuck();

    std::uint32_t group_ = 0;  // lanes that run
    std::int32_t limit_ = 0;   // the lowest instruction of the groups that wait for their turn
    std::vector<Group> ready_, blocked_;
    bool progress_ = false;  // since blocked groups were tried

    friend struct Worker;
};

std::uint32_t Runner::holding(const Instruction& in) const {
    const unsigned char* const p = at<unsigned char>(in.predicate);
    std::uint32_t lanes = 0;
    for (int i = 0; i < 4; ++i) {  // gathers the lowest bits of 8 bytes
        std::uint64_t eight;
        std::memcpy(&eight, p + i * 8, 8);
        eight &= 0x0101010101010101;
        lanes |= static_cast<std::uint32_t>((eight * 0x0102040810204080) >> 56) << i * 8;
    }
    return in.negated ? ~lanes : lanes;
}

void Runner::regroup() {
    if (group_ != 0) ready_.push_back({pc, group_});
    const auto first = std::min_element(ready_.begin(), ready_.end(),
                                        [](const Group& a, const Group& b) { return a.pc < b.pc; });
    pc = first->pc;
    group_ = 0;
    limit_ = INT_MAX;
    std::size_t kept = 0;
    for (const Group& g : ready_) {
        if (g.pc == pc) {
            group_ |= g.lanes;
        } else {
            limit_ = std::min(limit_, g.pc);
            ready_[kept++] = g;
        }
    }
    ready_.resize(kept);
}

bool Runner::next() {
    group_ = 0;
    if (ready_.empty()) {
        if (blocked_.empty()) return false;
        if (!progress_) stuck();
        progress_ = false;
        ready_.swap(blocked_);
    }
    regroup();
    return true;
}

void Runner::block_here() {
    blocked_.push_back({pc, group_});
    next();
}

void Runner::join_blocked() {
    for (std::size_t i = 0; i < blocked_.size();) {
        if (blocked_[i].pc == pc) {
            group_ |= blocked_[i].lanes;
            blocked_.erase(blocked_.begin() + static_cast<std::ptrdiff_t>(i));
            progress_ = true;
        } else {
            ++i;
        }
    }
}

void Runner::stuck() {
    const Group& g = blocked_.front();
    const Instruction& in = block->code->instructions[static_cast<std::size_t>(g.pc)];
    int lane = __builtin_ctz(g.lanes);
    std::string why = "waits for lanes that do not come: ";
    if (in.control == Control::barrier) {
        why = "barrier in divergent code: ";
    } else {
        const std::uint32_t* const masks = at<std::uint32_t>(in.at[5]);
        std::uint32_t rest = g.lanes;
        while ((masks[lane] & ~g.lanes) == 0 && (rest &= rest - 1) != 0) lane = __builtin_ctz(rest);
        const std::uint32_t missing = masks[lane] & ~g.lanes;
        why += "its mask names lane " + std::to_string(__builtin_ctz(missing)) +
               ((missing & ~live) != 0 ? ", which has ended; " : "; ");
    }
    char text[80];
    std::snprintf(text, sizeof text, "lanes %08x are here, %08x have not ended", g.lanes, live);
    throw Stuck{g.pc, lane, why + text};
}

// Returns the lanes that are here with all those that their masks name. Each must name itself.
std::uint32_t Runner::complete(const Instruction& in) {
    const std::uint32_t* const masks = at<std::uint32_t>(in.at[5]);
    std::uint32_t lanes = 0;
    for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        if ((masks[lane] >> lane & 1) == 0)
            throw_stopped(lane, "executes it, but its mask does not name it");
        if ((masks[lane] & ~active) != 0) continue;
        lanes |= 1u << lane;
        for (std::uint32_t others = masks[lane]; others != 0; others &= others - 1)
            if (const int other = __builtin_ctz(others); masks[other] != masks[lane])
                throw_stopped(other, "its mask differs from that of a lane that it names");
    }
    return lanes;
}

Pause Runner::run() {
    const Instruction* const code = block->code->instructions.data();
    Profile* const profile = block->launch->profile;
    for (;;) {
        const Instruction& in = code[pc];
        active = in.predicate == no_slot ? group_ : group_ & holding(in);
        if (profile != nullptr && active != 0 && in.control < Control::barrier)
            count(*this, in, *profile);
        if (active == 0) {
            ++pc;
        } else if (in.control == Control::none) {
            in.run(*this, in);
            ++pc;
        } else if (in.control == Control::branch) {
            if (active != group_) {
                ready_.push_back({pc + 1, group_ & ~active});
                group_ = active;
                pc = in.target;
                regroup();
            } else {
                pc = in.target;
            }
        } else if (in.control == Control::exit) {
            live &= ~active;
            group_ &= ~active;
            progress_ = true;
            if (group_ != 0) ++pc;
            else if (!next()) return Pause::ended;
        } else {
            if (active != group_) {  // the others go on behind it
                ready_.push_back({pc + 1, group_ & ~active});
                group_ = active;
                limit_ = std::min(limit_, pc + 1);
            }
            join_blocked();
            active = group_;
            if (in.control == Control::barrier) {
                if (group_ == live) {
                    if (profile != nullptr) count(*this, in, *profile);
                    ++pc;
                    return Pause::barrier;
                }
                block_here();
            } else if (const std::uint32_t lanes = complete(in); lanes == 0) {
                block_here();
            } else {
                if (lanes != group_) blocked_.push_back({pc, group_ & ~lanes});
                active = group_ = lanes;
                if (profile != nullptr) count(*this, in, *profile);
                // Lanes with different masks take part in different operations.
                for (std::uint32_t rest = group_; rest != 0; rest &= ~active) {
                    active = at<std::uint32_t>(in.at[5])[__builtin_ctz(rest)];
                    in.run(*this, in);
                }
                if (in.at[0] == no_slot) ++barriers;  // bar.warp.sync
                progress_ = true;
                ++pc;
            }
        }
        if (pc >= limit_) regroup();
    }
}

// An OS thread's memory for blocks, kept from launch to launch.
struct Worker {
    Block block;
    std::vector<Runner> warps;
    std::vector<unsigned char> registers;

    void run(const Launch& launch, std::uint64_t number);

private:
    void prepare(const Launch& launch, std::uint64_t number);
    void set_special(Runner& warp, Slot slot, Special special, Extent size) const;
};

void Worker::set_special(Runner& warp, Slot slot, Special special, Extent size) const {
    std::uint32_t* const to = warp.at<std::uint32_t>(slot);
    const Launch& launch = *block.launch;
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        const std::uint32_t thread = warp.first_thread + lane;
        const auto value = [&]() -> std::uint64_t {
            switch (special) {
                case Special::tid_x: return thread % size.x;
                case Special::tid_y: return thread / size.x % size.y;
                case Special::tid_z: return thread / size.x / size.y;
                case Special::ntid_x: return size.x;
                case Special::ntid_y: return size.y;
                case Special::ntid_z: return size.z;
                case Special::ctaid_x: return block.index.x;
                case Special::ctaid_y: return block.index.y;
                case Special::ctaid_z: return block.index.z;
                case Special::nctaid_x: return launch.grid.x;
                case Special::nctaid_y: return launch.grid.y;
                case Special::nctaid_z: return launch.grid.z;
                case Special::laneid: return lane;
                case Special::warpid: return warp.first_thread / 32;
                case Special::nwarpid: return warps.size();
                case Special::dynamic_smem: return launch.dynamic_shared_bytes;
                case Special::total_smem:
                    return launch.dynamic_shared_bytes + block.code->shared_bytes;
                case Special::lanemask_eq: return 1u << lane;
                case Special::lanemask_le: return (2ull << lane) - 1;
                case Special::lanemask_lt: return (1u << lane) - 1;
                case Special::lanemask_ge: return ~((1u << lane) - 1);
                case Special::lanemask_gt: return ~((2ull << lane) - 1);
            }
            return 0;
        }();
        to[lane] = static_cast<std::uint32_t>(value);
    }
}

void Worker::prepare(const Launch& launch, std::uint64_t number) {
    const Code& code = *launch.kernel->code;
    const std::uint32_t threads = launch.block.x * launch.block.y * launch.block.z;
    block.begin(launch, number, threads);
    const std::size_t n_warps = (threads + 31) / 32;
    warps.resize(n_warps);
    if (registers.size() < n_warps * code.register_bytes)
        registers.resize(n_warps * code.register_bytes);
    for (std::uint32_t i = 0; i < n_warps; ++i) {
        Runner& warp = warps[i];
        const std::uint32_t first = i * 32;
        warp.bases[0] = registers.data() + i * code.register_bytes;
        warp.bases[1] = const_cast<unsigned char*>(code.constants.data());
        warp.first_thread = first;
        warp.live = threads - first >= 32 ? all_lanes : (1u << (threads - first)) - 1;
        warp.group_ = warp.live;
        warp.pc = 0;
        warp.limit_ = INT_MAX;
        warp.barriers = 0;
        warp.block = &block;
        warp.ready_.clear();
        warp.blocked_.clear();
        warp.progress_ = false;
        for (const auto& [slot, special] : code.specials)
            set_special(warp, slot, special, launch.block);
    }
}

void Worker::run(const Launch& launch, std::uint64_t number) {
    prepare(launch, number);
    Runner* running = nullptr;
    const auto fail = [&](int error, std::int32_t pc, int lane, const std::string& why) {
        throw Fault{error, block.describe(*running, pc, lane) + ": " + why};
    };
    try {
        std::vector<Runner*> waiting;
        for (Runner& warp : warps) waiting.push_back(&warp);
        if (launch.reversed) std::reverse(waiting.begin(), waiting.end());
        for (;;) {
            std::size_t at_barrier = 0, lanes = 0;
            for (Runner* const warp : waiting) {
                running = warp;
                if (warp->live == 0 || warp->run() == Pause::ended) continue;
                ++at_barrier;
                lanes += static_cast<std::size_t>(__builtin_popcount(warp->live));
            }
            if (at_barrier == 0) return;
            if (lanes != block.threads) {
                for (Runner& warp : warps)
                    if (warp.live != 0) running = &warp;
                fail(launch_failure, running->pc - 1, __builtin_ctz(running->live),
                     "barrier: expected all " + std::to_string(block.threads) +
                         " threads of the block, got " + std::to_string(lanes) + ", while " +
                         std::to_string(block.threads - lanes) + " have ended");
            }
            ++block.barriers;
            if (launch.profile != nullptr) ++launch.profile->barriers;
        }
    } catch (const Stopped& s) {
        fail(s.error, running->pc, s.lane, s.why);
    } catch (const Stuck& s) {
        fail(launch_failure, s.pc, s.lane, s.why);
    }
}

std::string demangled(const std::string& name) {
    int status = 0;
    char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    std::string result = text != nullptr ? text : name;
    std::free(text);
    return result;
}

}  // namespace

const Entry* find_entry(const std::string& name) {
    const auto found = entries().find(name);
    return found == entries().end() ? nullptr : &found->second;
}

void throw_stopped(int lane, const char* why) { throw Stopped{launch_failure, lane, why}; }

std::string describe(const Code& code, std::uint32_t pc) {
    const Origin& o = code.origins[pc];
    std::string text;
    for (const char c : o.text)
        if (c > ' ' || (!text.empty() && text.back() != ' ')) text += c > ' ' ? c : ' ';
    const auto name = [&](Source at) {
        const bool known = at.file < code.files->size() && !(*code.files)[at.file].empty();
        return known ? (*code.files)[at.file] + ":" + std::to_string(at.line) + ", " : "";
    };
    std::string place = name(o.source);
    if (o.caller.file != 0) place += "called at " + name(o.caller);
    place += "line " + std::to_string(o.line) + " of the PTX";
    return "kernel " + demangled(code.name) + ", '" + text + "' (" + place + ")";
}

std::string Block::describe(const Warp& warp, std::int32_t pc, int lane) const {
    const auto triple = [](std::uint64_t x, std::uint64_t y, std::uint64_t z) {
        return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
    };
    const std::uint64_t thread = warp.first_thread + static_cast<std::uint32_t>(lane);
    const Extent size = launch->block;
    return catena_machine::describe(*code, static_cast<std::uint32_t>(pc)) + ", block " +
           triple(index.x, index.y, index.z) + ", thread " +
           triple(thread % size.x, thread / size.x % size.y, thread / size.x / size.y);
}

Fault run(const Launch& launch) {
    const std::uint64_t blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    if (launch.profile != nullptr)
        launch.profile->instructions.resize(launch.kernel->code->instructions.size());
    const auto pieces =
        std::min<std::uint64_t>(blocks, static_cast<std::uint64_t>(std::max(launch.threads, 1)));
    std::atomic<bool> stop = false;
    std::mutex mutex;
    Fault fault;
    const auto work = [&](std::uint64_t piece) {
        static thread_local Worker worker;
        for (std::uint64_t i = piece; i < blocks && !stop; i += pieces) try {
                worker.run(launch, launch.reversed ? blocks - 1 - i : i);
            } catch (Fault& f) {
                const std::lock_guard lock(mutex);
                if (!stop.exchange(true)) fault = std::move(f);
            }
    };
    std::vector<std::thread> helpers;
    for (std::uint64_t piece = 1; piece < pieces; ++piece) helpers.emplace_back(work, piece);
    work(0);
    for (std::thread& helper : helpers) helper.join();
    return fault;
}

}  // namespace catena_machine
