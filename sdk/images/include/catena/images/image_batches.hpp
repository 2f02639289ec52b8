// ImageBatches: minibatches of images, decoded by separate threads during training.
#pragma once

#include <catena/images/image.hpp>
#include <catena/images/image_folder.hpp>
#include <catena/prefetch.hpp>
#include <catena/share.hpp>
#include <catena/visitor.hpp>

#include <map>
#include <optional>

namespace catena {

// How images are prepared for a net: scaled so that the shorter side is `side`, cropped to a square
// of `crop`, minus the mean image, divided by the deviation. Can be part of a snapshot.
struct ImageScaling : Visitable {
    // Throws ShapeError unless 1 <= crop <= side <= 4096.
    explicit ImageScaling(std::int64_t side = 256, std::int64_t crop = 224);

    std::int64_t side, crop;
    Array mean;             // (3, crop, crop), 0 .. 255, in host memory
    double deviation = 64;  // of all values from the mean

    void visit(Visitor& visitor) override;
};

// Measures the center crops of at most `most` images, evenly chosen. Throws as read_image().
ImageScaling measure_images(const ImageFolder& folder, std::int64_t side, std::int64_t crop,
                            std::int64_t most);

// (3, crop, crop): the square at (top, left) of a scaled image, optionally mirrored.
void write_square(const Image& image, const ImageScaling& scaling, std::int64_t top,
                  std::int64_t left, bool mirrored, float* to);
// The center crop, for evaluation, after scaling the image's shorter side to `scaling.side`.
void write_middle(const Image& image, const ImageScaling& scaling, float* to);

struct ImageBatch {
    Array x;  // (N, 3, crop, crop), float32
    Array t;  // (N,), int32: classes
};

// The saved state is only (seed, epoch, batch), which determines each minibatch, for any number of
// threads. Loading it requires the same files, in any folder. Not thread-safe.
class ImageBatches final : public Visitable, public SharedReader {
public:
    struct Options {
        std::int64_t batch_size = 32;
        std::uint64_t seed = 0;
        bool training = true;  // shuffled, with random crops, half of them mirrored
        int loaders = 1;       // threads that decode
        Device device = {};    // for minibatches; default: Device::current()
        Share share = {};      // batch_size counts the images of all processes
    };
    // Throws InvalidError for an invalid share, ShapeError for no images, sizes below 1, and a
    // crop or a mean that does not fit.
    ImageBatches(ImageFolder folder, ImageScaling scaling, Options options);

    // Throws the errors of read_image(), for the minibatch with the image.
    ImageBatch next();

    std::int64_t size() const noexcept { return folder_.size(); }
    std::int64_t epoch() const noexcept { return epoch_; }
    // Images so far in this epoch.
    std::int64_t position() const noexcept { return batch_ * options_.batch_size; }
    void visit(Visitor& visitor) override;

private:
    std::int64_t batches() const {
        return (folder_.size() + options_.batch_size - 1) / options_.batch_size;
    }
    std::int64_t own_parts() const { return parts() / share().size; }
    // The images of minibatch i of an epoch.
    std::int64_t size_of(std::int64_t i) const {
        return std::min(options_.batch_size, folder_.size() - i * options_.batch_size);
    }
    std::shared_ptr<const std::vector<std::size_t>> order(std::int64_t epoch, std::uint64_t seed);
    ImageBatch make(std::int64_t n, std::uint64_t seed);
    void write(const std::filesystem::path& file, std::uint64_t seed, std::int64_t epoch,
               std::int64_t place, float* to) const;

    ImageFolder folder_;
    ImageScaling scaling_;
    Options options_;
    std::string names_;  // a hash of the files' names
    std::int64_t epoch_ = 0, batch_ = 0;
    std::mutex mutex_;  // of orders_, which the threads of ahead_ read
    std::map<std::int64_t, std::shared_ptr<const std::vector<std::size_t>>> orders_;
    std::optional<Prefetch<ImageBatch>> ahead_;  // last: it uses the others
};

}  // namespace catena
