// Joining the values of threads: groups of every size and step, types of many sizes, in order.
#include "device.hpp"

using namespace layer;

namespace {

// A run of numbers. Joined in order, the runs of adjacent threads are one run again.
template <class I>
struct Run {
    I first, last, good;
};
template <class I>
struct Join {
    CATENA_FN Run<I> operator()(const Run<I>& a, const Run<I>& b) const {
        return {a.first, b.last,
                static_cast<I>(a.good != 0 && b.good != 0 && a.last + 1 == b.first)};
    }
    static CATENA_FN Run<I> of(int lane) {
        return {static_cast<I>(lane), static_cast<I>(lane), I{1}};
    }
    static bool right(const Run<I>& v, int lanes) {
        return v.first == I{0} && v.last == static_cast<I>(lanes - 1) && v.good == I{1};
    }
};
// The number of the first or of the last thread.
template <class I, bool last>
struct One {
    CATENA_FN I operator()(I a, I b) const { return last ? b : a; }
    static CATENA_FN I of(int lane) { return static_cast<I>(lane); }
    static bool right(I v, int lanes) { return v == static_cast<I>(last ? lanes - 1 : 0); }
};

template <class J, class V>
__global__ void __launch_bounds__(cuda::block) join_kernel(int lanes, int step, V* out) {
    const int t = static_cast<int>(threadIdx.x);
    const int lane = t / step % lanes;
    out[t] = cuda::join_lanes(J::of(lane), lane, lanes, step, J());
    // Another call follows at once: it must not overwrite what the first still reads.
    out[cuda::block + t] = cuda::join_lanes(J::of(lane), lane, lanes, step, J());
}
template <class J>
void check_join() {
    using V = decltype(J::of(0));
    CAPTURE(sizeof(V));
    for (int step = 1; step <= cuda::block; step *= 2)
        for (int lanes = 1; lanes * step <= cuda::block; lanes *= 2) {
            // As lines.cuh and reduce.cuh have it: adjacent threads, or columns over the whole block.
            if (step > 1 && lanes * step != cuda::block) continue;
            CAPTURE(step);
            CAPTURE(lanes);
            const OnDevice<V> out(std::vector<V>(2 * cuda::block));
            queue.launch(&join_kernel<J, V>, 1, cuda::block, lanes, step, out.data());
            for (const V& v : out.values()) REQUIRE(J::right(v, lanes));
        }
}

}  // namespace

TEST_CASE("values of 1 to 24 bytes are joined in order") {
    check_join<Join<std::int32_t>>();
    check_join<Join<std::int64_t>>();
    check_join<Join<std::int16_t>>();
    check_join<One<std::uint8_t, false>>();
    check_join<One<std::uint8_t, true>>();
    check_join<One<std::int16_t, true>>();
    check_join<One<double, false>>();
}
