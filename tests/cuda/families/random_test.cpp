// Random numbers: those of the CPU, up to the rounding of logarithms.
#include "both.hpp"

namespace {

Array draw_on(const char* device, const char* function, const std::vector<Array>& x,
              const Attrs& attrs, bool add = false) {
    world().seed = 5;
    world().drawn = 77;
    return world().forward(function, x, attrs, on(device, add))[0];
}

}  // namespace

TEST_CASE_TEMPLATE("uniform and normal", T, float, double, Float16, BFloat16) {
    for (const std::int64_t n : {0, 1, 63, 65, 128, 255, 257, 100003}) {
        const std::int64_t shape[] = {n};
        for (const bool add : {false, true}) {
            const Attrs attrs = {plugin::set("shape", plugin::Ints(shape)),
                                 plugin::set("dtype", plugin::dtype_of<T>())};
            Attrs ranged = attrs;
            ranged.push_back(plugin::set("low", -1.5));
            ranged.push_back(plugin::set("high", 2.5));
            const Tolerance close = tolerance<T>();
            CHECK(compare(draw_on("cuda", "catena.uniform", {}, ranged, add),
                          draw_on("cpu", "catena.uniform", {}, ranged, add), close) == "");
            CHECK(compare(draw_on("cuda", "catena.normal", {}, attrs, add),
                          draw_on("cpu", "catena.normal", {}, attrs, add), close) == "");
            const std::uint64_t drawn = world().drawn;
            draw_on("cuda", "catena.normal", {}, attrs);
            CHECK(world().drawn == drawn);  // equal streams afterwards
        }
        const Attrs unit = {plugin::set("shape", plugin::Ints(shape)),
                            plugin::set("dtype", plugin::dtype_of<T>())};
        CHECK(compare(draw_on("cuda", "catena.uniform", {}, unit),
                      draw_on("cpu", "catena.uniform", {}, unit), {0, 0}) == "");
    }
}

TEST_CASE_TEMPLATE("multinomial", T, float, double, Float16, BFloat16) {
    for (const Dims& shape : {Dims{5}, Dims{300, 7}, Dims{3, 2, 257}, Dims{2, 3000}, Dims{0, 4}})
        for (const std::int64_t n : {1, 3, 5})
            for (const bool replacement : {false, true}) {
                if (n > shape.back()) continue;
                const Attrs attrs = {plugin::set("num_samples", n),
                                     plugin::set("replacement", replacement)};
                const Array p = draw<T>(shape, 1, 0.1, 1);
                const Array y = draw_on("cuda", "catena.multinomial", {p}, attrs);
                CHECK(world().ran().ends_with(".cuda"));
                CHECK((y == draw_on("cpu", "catena.multinomial", {p}, attrs)));
            }
}

TEST_CASE("multinomial: rows without enough probabilities have classes -1") {
    const auto classes = [](std::vector<double> p, std::int64_t n) {
        const Dims shape = {static_cast<std::int64_t>(p.size())};
        return draw_on("cuda", "catena.multinomial", {Array::from<double>(p, shape)},
                       {plugin::set("num_samples", n)})
            .values<std::int64_t>();
    };
    using List = std::vector<std::int64_t>;
    for (const std::int64_t n : {1, 2}) {
        const List none(static_cast<std::size_t>(n), -1);
        CHECK(classes({0, 0}, n) == none);
        CHECK(classes({2, -1}, n) == none);
        CHECK(classes({no_number, 1}, n) == none);
        CHECK(classes({inf, 1}, n) == none);
    }
    CHECK(classes({0, 3, 0}, 2) == List{1, -1});
}
