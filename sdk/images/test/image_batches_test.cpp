// Folders of images, and minibatches of them.
#include <catena/catena.hpp>
#include <catena/images.hpp>

#include "files.hpp"

#include <algorithm>
#include <cmath>
#include <map>

using namespace catena;

namespace {

// Two classes; image i is one colour, 10 i in red.
struct Set {
    TemporaryFolder folder;
    explicit Set(int n = 11) {
        for (const char* name : {"even", "odd", "empty"})
            std::filesystem::create_directory(folder.path / name);
        for (int i = 0; i < n; ++i) {
            const auto kind = folder.path / (i % 2 ? "odd" : "even");
            Image image{12, 9, {}};
            for (int p = 0; p < 108; ++p) {
                const auto red = static_cast<std::uint8_t>(10 * i);
                image.pixels.insert(image.pixels.end(), {red, 50, static_cast<std::uint8_t>(p)});
            }
            write_png(kind / ("x" + std::to_string(100 + i) + ".PNG"), image);
        }
        write_file(folder.path / "odd/readme.txt", "no image");
    }
};

ImageScaling plain(std::int64_t side, std::int64_t crop) {
    ImageScaling scaling(side, crop);
    scaling.deviation = 1;
    return scaling;
}

}  // namespace

TEST_CASE("folders: a class each, in order") {
    const Set set;
    const ImageFolder images = list_images(set.folder.path);
    CHECK(images.classes == std::vector<std::string>{"even", "odd"});
    CHECK(images.size() == 11);
    CHECK(images.labels == std::vector<std::int32_t>{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1});
    CHECK(images.files[6].filename() == "x101.PNG");
    const auto [rest, held] = hold_out(images, 0.4, 3);
    CHECK(held.size() == 2 + 2);
    CHECK(rest.size() == 7);
    CHECK(held.classes == images.classes);
    CHECK(hold_out(images, 0.4, 3).second.files == held.files);
    CHECK(hold_out(images, 0, 3).second.size() == 0);
    CHECK(hold_out(images, 0.01, 3).second.size() == 2);  // one of each class at least
    CHECK(hold_out(images, 0.99, 3).first.size() == 2);   // and one to train with
    const TemporaryFolder none;
    CHECK_THROWS_AS((void)list_images(none.path), DataError);
    CHECK_THROWS_AS((void)list_images(none.path / "x"), DataError);
}

TEST_CASE("the mean image and the deviation") {
    const Set set;
    const ImageScaling scaling = measure_images(list_images(set.folder.path), 9, 7, 1000);
    const auto mean = scaling.mean.to_vector<float>();
    CHECK(mean.size() == 3 * 49);
    CHECK(mean[0] == doctest::Approx(50));   // red: 0 to 100
    CHECK(mean[49] == doctest::Approx(50));  // green
    // Red varies with a deviation of sqrt(1000), the others not at all.
    CHECK(scaling.deviation == doctest::Approx(std::sqrt(1000.0 / 3)).epsilon(1e-4));
}

TEST_CASE("an epoch has each image once, for any number of loaders") {
    const Set set;
    const ImageFolder images = list_images(set.folder.path);
    std::vector<std::vector<float>> first;
    for (const int loaders : {1, 3}) {
        ImageBatches batches(images, plain(9, 7), {.batch_size = 4, .seed = 5, .loaders = loaders});
        std::vector<std::vector<float>> all;
        for (int epoch = 0; epoch < 2; ++epoch) {
            std::map<float, int> seen;
            std::int64_t n = 0;
            while (batches.epoch() == epoch) {
                CHECK(batches.position() == n);
                const ImageBatch batch = batches.next();
                const std::int64_t count = batch.t.size();
                CHECK(batch.x.shape() == Shape{count, 3, 7, 7});
                const auto x = batch.x.to_vector<float>();
                const auto t = batch.t.to_vector<std::int32_t>();
                for (std::int64_t i = 0; i < count; ++i) {
                    const float red = x[static_cast<std::size_t>(i * 147)];
                    ++seen[red];
                    CHECK(static_cast<int>(red) / 10 % 2 == t[static_cast<std::size_t>(i)]);
                }
                n += count;
                all.push_back(x);
            }
            CHECK(n == 11);
            CHECK(seen.size() == 11);
        }
        if (first.empty()) first = all;
        CHECK(all == first);
    }
}

TEST_CASE("squares come from everywhere, and are mirrored half of the time") {
    const Set set(1);
    ImageBatches batches(list_images(set.folder.path), plain(9, 5), {.batch_size = 1});
    std::map<float, int> corners;
    int mirrored = 0;
    for (int i = 0; i < 400; ++i) {
        const auto x = batches.next().x.to_vector<float>();
        ++corners[std::min(x[50], x[54])];  // blue of the first row: its place
        mirrored += x[50] > x[54] ? 1 : 0;
    }
    CHECK(corners.size() == (12 - 5 + 1) * (9 - 5 + 1));
    CHECK(mirrored > 150);
    CHECK(mirrored < 250);
    ImageBatches middle(list_images(set.folder.path), plain(9, 5),
                        {.batch_size = 1, .training = false});
    for (int i = 0; i < 3; ++i) CHECK(middle.next().x.to_vector<float>()[50] == 3 * 9 + 2);
}

TEST_CASE("batches go on from their state") {
    const Set set;
    const TemporaryFolder folder;
    const ImageFolder images = list_images(set.folder.path);
    ImageBatches a(images, plain(9, 7), {.batch_size = 2, .seed = 8, .loaders = 2});
    for (int i = 0; i < 9; ++i) (void)a.next();
    save_npz(folder.path / "a.npz", a);
    ImageBatches b(images, plain(9, 7), {.batch_size = 2, .seed = 9});
    (void)b.next();
    load_npz(folder.path / "a.npz", b);
    for (int i = 0; i < 12; ++i)
        CHECK(a.next().x.to_vector<float>() == b.next().x.to_vector<float>());
    CHECK(a.epoch() == b.epoch());
    ImageBatches other(images, plain(9, 7), {.batch_size = 3});
    CHECK_THROWS_AS(load_npz(folder.path / "a.npz", other), DataError);
    ImageFolder renamed = images;
    renamed.files[3] = renamed.files[3].parent_path() / "another.png";
    ImageBatches others(renamed, plain(9, 7), {.batch_size = 2, .seed = 8});
    CHECK_THROWS_AS(load_npz(folder.path / "a.npz", others), DataError);
}

TEST_CASE("a broken file is an error at its batch") {
    const Set set;
    ImageFolder images = list_images(set.folder.path);
    write_file(images.files[5], "broken");
    ImageBatches batches(images, plain(9, 7), {.batch_size = 4, .training = false, .loaders = 2});
    (void)batches.next();
    for (int i = 0; i < 2; ++i) {
        try {
            (void)batches.next();
            FAIL("expected an error");
        } catch (const DataError& error) {
            CHECK(std::string(error.what()).find(images.files[5].string()) != std::string::npos);
        }
    }
    CHECK(batches.position() == 4);
}

TEST_CASE("what cannot be is refused") {
    const Set set;
    const ImageFolder images = list_images(set.folder.path);
    CHECK_THROWS_AS(ImageBatches({}, plain(9, 7), {}), ShapeError);
    CHECK_THROWS_AS(ImageScaling(7, 9), ShapeError);
    CHECK_THROWS_AS(ImageScaling(7, 0), ShapeError);
    CHECK(ImageScaling(4096, 9).side == 4096);
    CHECK_THROWS_AS(ImageScaling(4097, 9), ShapeError);
    ImageScaling larger = plain(9, 7);
    larger.side = 5;
    CHECK_THROWS_AS(ImageBatches(images, larger, {}), ShapeError);
    std::filesystem::create_directory(set.folder.path / "caf\xe9");
    std::filesystem::copy_file(images.files[0], set.folder.path / "caf\xe9/a.png");
    CHECK_THROWS_AS((void)list_images(set.folder.path), DataError);
    CHECK_THROWS_AS(ImageBatches(images, plain(9, 7), {.batch_size = 0}), ShapeError);
    CHECK_THROWS_AS(ImageBatches(images, plain(9, 7), {.loaders = 0}), ShapeError);
}
