// ImageBatches: the order of the images, their decoding, scaling and cropping. ImageFolder: listing.
#include <catena/cuda/array.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/images/image_batches.hpp>
#include <catena/random.hpp>
#include <catena/text.hpp>

#include <boost/algorithm/string/case_conv.hpp>

#include <cmath>
#include <numeric>
#include <tuple>

namespace catena {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t max_side = 4096;  // resize() refuses a larger square

Shape square_shape(const ImageScaling& scaling) { return {3, scaling.crop, scaling.crop}; }

// Hashes the names of the files and of their folders (FNV-1a).
std::uint64_t hash_of_names(const ImageFolder& folder) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const auto& file : folder.files) {
        for (const char c :
             file.parent_path().filename().string() + '/' + file.filename().string() + '\n')
            hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    return hash;
}

}  // namespace

ImageScaling::ImageScaling(std::int64_t side_, std::int64_t crop_) : side(side_), crop(crop_) {
    if (crop < 1 || crop > side || side > max_side)
        fail<ShapeError>("[ImageScaling] crop, side: expected 1 <= crop <= side <= {}, got {}, {}",
                         max_side, crop, side);
    mean = Array::zeros(square_shape(*this), Dtype::float32, cuda::host());
}

void ImageScaling::visit(Visitor& visitor) {
    visitor.require("side", side).require("crop", crop);
    visitor("mean", mean)("deviation", deviation);
}

void write_square(const Image& image, const ImageScaling& scaling, std::int64_t top,
                  std::int64_t left, bool mirrored, float* to) {
    const std::int64_t n = scaling.crop;
    const float* mean = scaling.mean.host<const float>().data();
    const auto scale = static_cast<float>(1 / scaling.deviation);
    for (std::int64_t channel = 0; channel < 3; ++channel) {
        for (std::int64_t y = 0; y < n; ++y) {
            const std::uint8_t* row =
                image.pixels.data() + ((top + y) * image.width + left) * 3 + channel;
            for (std::int64_t x = 0; x < n; ++x) {
                const std::uint8_t pixel = row[3 * (mirrored ? n - 1 - x : x)];
                *to++ = (static_cast<float>(pixel) - *mean++) * scale;
            }
        }
    }
}

void write_middle(const Image& image, const ImageScaling& scaling, float* to) {
    if (std::min(image.height, image.width) != scaling.side)
        return write_middle(resize_shorter(image, scaling.side), scaling, to);
    write_square(image, scaling, (image.height - scaling.crop) / 2,
                 (image.width - scaling.crop) / 2, false, to);
}

ImageScaling measure_images(const ImageFolder& folder, std::int64_t side, std::int64_t crop,
                            std::int64_t most) {
    ImageScaling scaling(side, crop);
    scaling.deviation = 1;
    const auto size = static_cast<std::size_t>(scaling.mean.size());
    std::vector<double> sums(size), squares(size);
    std::vector<float> square(size);
    const std::int64_t n = std::min(most, folder.size());
    for (std::int64_t i = 0; i < n; ++i) {
        const auto& file = folder.files[static_cast<std::size_t>(i * folder.size() / n)];
        write_middle(read_resized(file, side), scaling, square.data());
        for (std::size_t k = 0; k < size; ++k) {
            sums[k] += square[k];
            squares[k] += static_cast<double>(square[k]) * square[k];
        }
    }
    double variance = 0;
    const auto mean = scaling.mean.host<float>();
    for (std::size_t k = 0; k < size; ++k) {
        const double m = sums[k] / static_cast<double>(n);
        mean[k] = static_cast<float>(m);
        variance += squares[k] / static_cast<double>(n) - m * m;
    }
    constexpr double least = 1;  // of images that are all alike
    scaling.deviation =
        std::max(least, std::sqrt(std::max(0.0, variance / static_cast<double>(size))));
    return scaling;
}

ImageBatches::ImageBatches(ImageFolder folder, ImageScaling scaling, Options options)
    : folder_(std::move(folder)), scaling_(std::move(scaling)), options_(options) {
    const auto require = [](bool condition, const char* what, const char* expected, auto got) {
        if (!condition)
            fail<ShapeError>("[ImageBatches] {}: expected {}, got {}", what, expected, got);
    };
    require(folder_.size() > 0, "images", "at least one", 0);
    require(options_.batch_size >= 1, "batch_size", "at least 1", options_.batch_size);
    require(options_.loaders >= 1, "loaders", "at least 1", options_.loaders);
    require(scaling_.crop >= 1 && scaling_.crop <= scaling_.side, "crop", "1 to the shorter side",
            scaling_.crop);
    require(scaling_.mean.shape() == square_shape(scaling_), "mean", "(3, crop, crop)",
            to_string(scaling_.mean.shape()));
    set_share(options_.share);
    if (!options_.device) options_.device = Device::current();
    names_ = fmt::format("{:016x}", hash_of_names(folder_));
}

ImageBatch ImageBatches::next() {
    if (!ahead_) {  // starts, or resumes from the loaded state
        ahead_.emplace([this, seed = options_.seed](std::int64_t n) { return make(n, seed); },
                       (epoch_ * batches() + batch_) * own_parts(), options_.loaders,
                       static_cast<std::size_t>(options_.loaders) + 2);
    }
    ImageBatch batch = ahead_->next();
    if (end_part(batch.t.size(), size_of(batch_))) advance(batch_, 1, batches(), epoch_);
    return {batch.x.to(options_.device), batch.t.to(options_.device)};
}

void ImageBatches::visit(Visitor& visitor) {
    require_whole("ImageBatches");
    const auto before = std::tuple(options_.seed, epoch_, batch_);
    visitor.require("images", folder_.size()).require("batch_size", options_.batch_size);
    visitor.require("files", names_);
    visitor("seed", options_.seed).within("epoch", epoch_, 0, most_epochs);
    visitor.within("batch", batch_, 0, batches() - 1);
    if (before == std::tuple(options_.seed, epoch_, batch_)) return;
    ahead_.reset();
    const std::lock_guard lock(mutex_);
    orders_.clear();
}

// The images of an epoch in their order. Few epochs are looked at, at a time.
std::shared_ptr<const std::vector<std::size_t>> ImageBatches::order(std::int64_t epoch,
                                                                    std::uint64_t seed) {
    const std::lock_guard lock(mutex_);
    auto& found = orders_[epoch];
    if (!found) {
        std::vector<std::size_t> images(folder_.files.size());
        std::iota(images.begin(), images.end(), std::size_t{0});
        Generator generator(seed ^ 0x696d616765736574u, static_cast<std::uint64_t>(epoch) << 32);
        if (options_.training) generator.shuffle(images);
        found = std::make_shared<const std::vector<std::size_t>>(std::move(images));
    }
    const auto result = found;
    orders_.erase(orders_.begin(), orders_.lower_bound(epoch - 1));
    return result;
}

// The n-th part of this process from the beginning. Threads of ahead_ do this, while visit() may write another seed.
ImageBatch ImageBatches::make(std::int64_t n, std::uint64_t seed) {
    const using_device host(cuda::host());
    const std::int64_t batch_index = n / own_parts() % batches(),
                       epoch = n / own_parts() / batches();
    const Range own =
        part_of(size_of(batch_index), share().rank * own_parts() + n % own_parts(), parts());
    const std::int64_t begin = batch_index * options_.batch_size + own.begin, count = own.size();
    const auto images = order(epoch, seed);
    ImageBatch batch{Array::empty({count, 3, scaling_.crop, scaling_.crop}, Dtype::float32),
                     Array::empty({count}, Dtype::int32)};
    float* x = batch.x.host<float>().data();
    for (std::int64_t i = 0; i < count; ++i, x += scaling_.mean.size()) {
        const std::size_t image = (*images)[static_cast<std::size_t>(begin + i)];
        batch.t.host<std::int32_t>()[static_cast<std::size_t>(i)] = folder_.labels[image];
        write(folder_.files[image], seed, epoch, begin + i, x);
    }
    return batch;
}

void ImageBatches::write(const fs::path& file, std::uint64_t seed, std::int64_t epoch,
                         std::int64_t place, float* to) const {
    const Image scaled = read_resized(file, scaling_.side);
    if (!options_.training) return write_middle(scaled, scaling_, to);
    Generator generator(seed ^ 0x6175676d656e7421u, static_cast<std::uint64_t>(epoch) << 40 |
                                                        static_cast<std::uint64_t>(place) << 2);
    const auto below = [&](std::int64_t room) {
        return static_cast<std::int64_t>(generator.below(static_cast<std::uint64_t>(room) + 1));
    };
    const std::int64_t top = below(scaled.height - scaling_.crop);
    const std::int64_t left = below(scaled.width - scaling_.crop);
    write_square(scaled, scaling_, top, left, generator.below(2) == 1, to);
}

// ---- ImageFolder

namespace {

template <class Wanted>
std::vector<fs::path> entries(const fs::path& folder, Wanted wanted) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (wanted(entry)) found.push_back(entry.path());
    }
    std::ranges::sort(found);
    return found;
}

}  // namespace

bool is_image_file(const fs::path& file) {
    const std::string ending = boost::to_lower_copy(file.extension().string());
    return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

ImageFolder list_images(const fs::path& root) {
    std::error_code error;
    if (!fs::is_directory(root, error))
        fail<DataError>("[list_images] {}: expected a folder of folders, got {}", root.string(),
                        error ? error.message() : "none");
    ImageFolder result;
    for (const fs::path& folder :
         entries(root, [](const fs::directory_entry& e) { return e.is_directory(); })) {
        const auto files = entries(folder, [](const fs::directory_entry& e) {
            return e.is_regular_file() && is_image_file(e.path());
        });
        if (files.empty()) continue;
        const auto label = static_cast<std::int32_t>(result.classes.size());
        const std::string name = folder.filename();
        if (!is_utf8(name) || name.find('\n') != name.npos)
            fail<DataError>(
                "[list_images] {}: expected folder names in UTF-8 without line breaks, got '{}'",
                root.string(), name);
        result.classes.push_back(name);
        result.files.insert(result.files.end(), files.begin(), files.end());
        result.labels.resize(result.files.size(), label);
    }
    if (result.files.empty())
        fail<DataError>(
            "[list_images] {}: expected folders of PNG or JPEG files, one for each class, got none",
            root.string());
    return result;
}

std::pair<ImageFolder, ImageFolder> hold_out(const ImageFolder& folder, double share,
                                             std::uint64_t seed) {
    ImageFolder rest{folder.classes, {}, {}}, held{folder.classes, {}, {}};
    Generator generator(seed ^ 0x686f6c646f757421u);
    for (std::size_t begin = 0; begin < folder.files.size();) {
        std::size_t end = begin;
        while (end < folder.files.size() && folder.labels[end] == folder.labels[begin]) ++end;
        const std::size_t n = end - begin;
        auto wanted = static_cast<std::size_t>(std::floor(share * static_cast<double>(n)));
        if (share > 0 && n > 1) wanted = std::clamp<std::size_t>(wanted, 1, n - 1);
        for (std::size_t i = begin; i < end; ++i) {  // each as likely as any other
            const bool take = generator.below(end - i) < wanted;
            ImageFolder& to = take ? held : rest;
            to.files.push_back(folder.files[i]);
            to.labels.push_back(folder.labels[i]);
            if (take) --wanted;
        }
        begin = end;
    }
    return {std::move(rest), std::move(held)};
}

}  // namespace catena
