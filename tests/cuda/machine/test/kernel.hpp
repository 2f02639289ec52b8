// A kernel of two buffers, and the results of its threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launch.hpp"

namespace machine_test {
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Values = std::vector<u32>;

constexpr u32 unwritten = 0xcdcdcdcd;  // what a result contains that no thread wrote

// A kernel `k` of two buffers. %out and %in are their addresses, %own that of the thread's own word in
// the first one. At the end of the body each thread writes %r0 there.
inline std::string kernel(const std::string& body, const std::string& before = "") {
    return header + before + R"(
.visible .entry k(.param .u64 p0, .param .u64 p1)
{
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<32>;
    .reg .b64 %q<32>;
    .reg .f32 %f<8>;
    .reg .f64 %d<8>;
    .reg .b64 %out, %in, %own;
    .reg .b32 %t;
    ld.param.u64 %out, [p0];
    ld.param.u64 %in, [p1];
    cvta.to.global.u64 %out, %out;
    cvta.to.global.u64 %in, %in;
    mov.u32 %t, %tid.x;
    mov.u32 %r30, %ctaid.x;
    mov.u32 %r31, %ntid.x;
    mad.lo.s32 %r30, %r30, %r31, %t;
    mad.wide.s32 %own, %r30, 4, %out;
)" + body + R"(
    st.global.u32 [%own], %r0;
    ret;
}
)";
}

inline unsigned threads_of(const Setup& setup) {
    return setup.grid.x * setup.grid.y * setup.grid.z * setup.block.x * setup.block.y *
           setup.block.z;
}

// Runs the kernel, with `in` as second buffer, and returns the first one: a word of each thread, and
// `more` bytes. `in` receives what the kernel wrote there.
inline Values run(const std::string& ptx, const Setup& setup, Values& in, std::size_t more = 0) {
    Buffer out = Buffer::unwritten(4 * threads_of(setup) + more);
    Buffer input(in);
    const auto fault = launch(ptx, "k", setup, {&out, &input});
    CHECK_MESSAGE(fault.error == 0, fault.text);
    in = input.get<u32>();
    return out.get<u32>();
}
inline Values run(const std::string& ptx, const Setup& setup = {}, std::size_t more = 0) {
    Values none = {0};
    return run(ptx, setup, none, more);
}

// The result of each thread by a formula.
inline Values each(unsigned n, const std::function<u32(u32)>& of) {
    Values values(n);
    for (unsigned i = 0; i < n; ++i) values[i] = of(i);
    return values;
}

}  // namespace machine_test
