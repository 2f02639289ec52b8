// The usual accesses of memory, without the text of a report: Warp::access() and Warp::store() decide on
// all others. These functions are inlined into each instruction.
#pragma once

#include "../checks.hpp"

namespace catena_machine::MACHINE_ISA {
namespace {

// What the lanes of a warp have in common when they access memory by one instruction.
struct Quick {
    unsigned char* data = nullptr;  // of address `begin`
    std::uint64_t begin = 0, end = 0;
    Byte* states = nullptr;
    Touched* touched = nullptr;
    std::uint32_t number = 0;  // of the launch, or of the block for shared memory
    std::uint32_t over = 0;    // what has a number up to this one has ended
    std::uint32_t first_thread = 0, threads = 0;  // of the block in the grid
    Touch me;
    TouchBits bits;  // of me

    Quick(const Warp& w, const Instruction& in) {
        Block& b = *w.block;
        first_thread = b.number * b.threads;
        threads = b.threads;
        if (in.space == Space::shared) {
            data = b.shared.data();
            end = b.code->shared_bytes;
            states = b.shared_states.data();
            touched = b.shared_touched.data();
            number = b.serial;
            over = b.serial - 1;
        } else if (in.space == Space::global && !b.launch->regions.empty()) {
            const Region& r = b.launch->regions.front();
            begin = r.begin;
            end = r.end;
            data = reinterpret_cast<unsigned char*>(begin);
            states = r.states;
            touched = r.touched;
            number = b.launch->number;
            over = b.launch->over;
        }
        me.launch = number;
        me.barriers = b.barriers;
        me.warp_barriers = w.barriers;
        me.pc = static_cast<std::uint32_t>(w.pc) & 0xffffff;
        me.thread = first_thread + w.first_thread;  // of lane 0
        std::memcpy(&bits, &me, sizeof bits);
    }

    bool in_block(const Touch& t) const { return t.thread - first_thread < threads; }
    // Whether an access is over, or was by this thread, or a barrier of the block is in between.
    bool before(const Touch& t, std::uint32_t thread) const {
        if (t.launch != number) return t.launch <= over;
        if (t.thread == thread) return t.spread == 0;
        return t.barriers != me.barriers && t.spread != 3 && in_block(t);
    }

    // Whether an access cannot be in a race with one of these bytes by this thread.
    bool apart(const Touch& t, std::uint32_t thread, std::uint32_t bytes) const {
        return (t.bytes & bytes) == 0 || before(t, thread);
    }

    // Returns where n bytes, a power of two, are that the lane may access; nullptr: not known here.
    template <bool write>
    inline __attribute__((always_inline)) unsigned char* find(int lane, std::uint64_t address,
                                                              std::size_t n) const {
        const std::uint64_t at = address - begin;
        if (address < begin || end - begin < n || at > end - begin - n || (address & (n - 1)) != 0)
            return nullptr;
        if (states != nullptr) {
            const Byte* const s = states + at;
            if (!all_are(s, n, Byte::written)) {
                if (!write || !all_are(s, n, Byte::unwritten)) return nullptr;
                std::memset(states + at, static_cast<int>(Byte::written), n);
            }
        }
        if (touched != nullptr) {
            const std::uint32_t thread = me.thread + static_cast<std::uint32_t>(lane);
            const std::uint32_t bytes = n >= 4 ? 0xf : ((1u << n) - 1) << (at & 3);
            for (std::size_t i = 0; i < (n + 3) / 4; ++i) {
                Touched& t = touched[at / 4 + i];
                const TouchBits noted = at_once(write ? t.write : t.read);
                if (!apart(t.write, thread, bytes)) return nullptr;
                if (write) {
                    if (!apart(t.read, thread, bytes)) return nullptr;
                    set(t.write, noted, thread, bytes);
                } else {
                    // A reader of another stream, without an order.
                    if (t.read.launch != number && t.read.launch > over) return nullptr;
                    note_read(t.read, noted, thread, bytes);
                }
            }
        }
        return data + at;
    }

private:
    std::uint64_t low(std::uint32_t thread) const {  // of TouchBits
        return number | std::uint64_t{thread} << 32;
    }
    // Of several threads that read, the first is kept, and how far apart they are. As in note().
    void note_read(Touch& to, TouchBits noted, std::uint32_t thread, std::uint32_t bytes) const {
        const bool by_it = noted.low == low(thread) && noted.high >> TouchBits::spread_at == 0;
        if (by_it || static_cast<std::uint32_t>(noted.low) != number) {
            set(to, noted, thread, bytes);
            return;
        }
        const auto t = std::bit_cast<Touch>(noted);
        const bool same_warp = (t.thread - first_thread) / 32 == (thread - first_thread) / 32;
        const std::uint64_t apart = !in_block(t) ? 3 : same_warp ? 1 : 2;
        const bool over_here = apart != 3 && t.spread != 3 &&
                               (t.barriers != me.barriers ||
                                (t.spread < 2 && same_warp && t.warp_barriers != me.warp_barriers));
        if ((t.bytes & bytes) == 0 || over_here) {
            set(to, noted, thread, bytes);
        } else if (t.spread < apart || (bytes & ~t.bytes) != 0) {
            noted.high |= std::uint64_t{bytes} << TouchBits::bytes_at;
            if (t.spread < apart)
                noted.high = (noted.high & ~(std::uint64_t{3} << TouchBits::spread_at)) |
                             apart << TouchBits::spread_at;
            set_at_once(to, noted);
        }
    }
    void set(Touch& to, TouchBits noted, std::uint32_t thread, std::uint32_t bytes) const {
        TouchBits now = {low(thread), bits.high | std::uint64_t{bytes} << TouchBits::bytes_at};
        const bool mine = noted.low == now.low && ((noted.high ^ now.high) & 0xffffffff) == 0;
        if (mine) now.high |= noted.high & std::uint64_t{0xf} << TouchBits::bytes_at;
        set_at_once(to, now);
    }
};

}  // namespace
}  // namespace catena_machine::MACHINE_ISA
