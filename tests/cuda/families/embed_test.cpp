// Rows of a table by ID, and their gradients, which are added up in the table.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "both.hpp"

namespace {

using Ids = std::vector<std::int64_t>;

Array ids_of(const Dims& shape, const Ids& ids, bool wide = true) {
    const Array x = Array::from<std::int64_t>(ids, shape);
    return wide ? x : x.to(plugin::dtype_of<std::int32_t>());
}
Attrs ignoring(const Ids& ids) { return {plugin::set("ignore_label", plugin::Ints(ids))}; }

// Returns IDs below `rows`, about half of them small.
Ids draw_ids(std::int64_t n, std::int64_t rows, std::uint64_t seed) {
    Ids ids(static_cast<std::size_t>(n));
    for (std::int64_t& id : ids) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const auto a = static_cast<std::int64_t>(seed >> 33) % rows;
        id = (seed >> 32 & 1) != 0 ? a : a % (rows / 8 + 1);
    }
    return ids;
}

template <class T>
void check_embed(const Dims& shape, const Ids& ids, std::int64_t rows, std::int64_t size,
                 const Ids& ignored = {}, bool add = false) {
    const bool wide = ids.size() % 2 == 0;
    const Array x = ids_of(shape, ids, wide);
    const Array w = draw<T>({rows, size}, 2);
    check_both<T>("catena.embed_id", {x, w}, ignoring(ignored), true, add);
    Dims tall = shape;
    tall.push_back(size);
    Attrs attrs = ignoring(ignored);
    attrs.push_back(plugin::set("rows", rows));
    check_both<T>("catena.embed_id_gradient", {x, draw<T>(tall, 3)}, attrs, true, add);
}

}  // namespace

TEST_CASE_TEMPLATE("embed_id: sizes, shapes, what is ignored", T, float, double, Float16,
                   BFloat16) {
    for (const std::int64_t size : {1, 3, 8, 33, 128, 300}) {
        check_embed<T>({20}, draw_ids(20, 50, 1), 50, size);
        check_embed<T>({3, 7}, draw_ids(21, 9, 2), 9, size, {3}, true);
    }
    check_embed<T>({}, {4}, 5, 40);
    check_embed<T>({1}, {0}, 1, 1);
    check_embed<T>({0}, {}, 5, 8);
    check_embed<T>({6}, {-1, 2, -1, 1000000, 0, -1}, 3, 16, {-1, 1000000}, true);
    check_embed<T>({4}, {-1, -1, -1, -1}, 3, 16, {-1});
    check_embed<T>({5}, draw_ids(5, 4, 3), 4, 0);
}

TEST_CASE_TEMPLATE("embed_id: one id for all, many ids, numbers of them around powers of two", T,
                   float, double) {
    for (const std::int64_t n : {7, 8, 9, 16, 100, 1000, 1023, 1024, 1025, 2047, 2048, 2049}) {
        check_embed<T>({n}, Ids(static_cast<std::size_t>(n), 3), 5, 5);
        check_embed<T>({n}, draw_ids(n, 40, 5), 40, 16, {}, n % 2 == 0);
    }
    for (const std::int64_t n : {4096, 4097, 6143, 10001}) {
        check_embed<T>({n}, Ids(static_cast<std::size_t>(n), 0), 2, 3);
        check_embed<T>({n}, draw_ids(n, 700, 6), 700, 4, {1, 5}, true);
    }
    Ids all(5000);
    std::iota(all.rbegin(), all.rend(), 0);
    check_embed<T>({5000}, all, 5000, 2);
    // Two runs of equal IDs meet in the middle.
    Ids halves(64, 1);
    std::fill(halves.begin() + 32, halves.end(), 2);
    check_embed<T>({64}, halves, 4, 9);
    Ids third(64, 1);
    std::fill(third.begin() + 20, third.begin() + 43, 2);
    check_embed<T>({64}, third, 4, 9);
}

TEST_CASE("embed_id: rows that no id names are zero, or stay as they are") {
    const Ids ids = draw_ids(3000, 40, 7);
    const Array x = ids_of({3000}, ids);
    const Array gy = draw<float>({3000, 20}, 3);
    const Attrs attrs = {plugin::set("rows", std::int64_t{100})};
    const auto gradient = [&](const Array& rows, bool add) {
        return world()
            .forward("catena.embed_id_gradient", {x, rows}, attrs, on("cuda", add))[0]
            .values<float>();
    };
    const auto y = gradient(gy, false);
    const auto added = gradient(gy, true);
    const auto nothing = gradient(draw<float>({3000, 20}, 3, 0, 0), true);
    for (std::size_t k = 40 * 20; k < y.size(); ++k) {
        CHECK(y[k] == 0);
        CHECK(added[k] == nothing[k]);
    }
}

// On the CPU this is an error; on a device, which cannot report it, the result is NaN.
TEST_CASE_TEMPLATE("embed_id: an id that is no row gives NaN, and changes no row", T, float,
                   Float16) {
    for (const std::int64_t bad : {-1, 4, 1 << 30}) {
        const Array x = ids_of({3}, {1, bad, 0}, bad != 4);
        const Array w = draw<T>({4, 5}, 1);
        const auto y = world().forward("catena.embed_id", {x, w}, {}, on("cuda"));
        const auto v = wide(y)[0].template values<double>();
        for (std::size_t k = 0; k < 15; ++k) CHECK(std::isnan(v[k]) == (k / 5 == 1));
        const Array gy = draw<T>({3, 5}, 2);
        const auto gw =
            wide(world().backward("catena.embed_id", {x, w}, y, {gy}, {}, on("cuda")))[1]
                .template values<double>();
        const auto g = wide(gy).template values<double>();
        for (std::size_t k = 0; k < 5; ++k) {
            CHECK(gw[5 + k] == g[k]);
            CHECK(gw[k] == g[10 + k]);
            CHECK(gw[10 + k] == 0);
            CHECK(gw[15 + k] == 0);
        }
    }
}

TEST_CASE("embed_id: as many ignored ids as a kernel's parameters have room for") {
    Ids ignored(64);
    std::iota(ignored.begin(), ignored.end(), 0);
    check_embed<float>({130}, draw_ids(130, 100, 9), 100, 8, ignored);
}
