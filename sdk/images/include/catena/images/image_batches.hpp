// ImageBatches: minibatches of images, decoded by threads of their own while the net learns.
#pragma once

#include <catena/core/array.hpp>
#include <catena/images/image.hpp>
#include <catena/images/image_folder.hpp>
#include <catena/visitor.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace catena {

// How images become what a net takes: their shorter side `side` long, a square of `crop` cut out, the
// mean image taken off, divided by the deviation. A part of what is saved.
struct ImageScaling : Visitable {
    // Throws ShapeError unless 1 <= crop <= side <= 4096.
    explicit ImageScaling(std::int64_t side = 256, std::int64_t crop = 224);

    std::int64_t side, crop;
    Array mean;             // (3, crop, crop), 0 .. 255, in host memory
    double deviation = 64;  // of all numbers from the mean

    void visit(Visitor& visitor) override;
};

// The mean and the deviation of the middle squares of at most `most` images, spread over all. Throws as
// read_image().
ImageScaling measure_images(const ImageFolder& folder, std::int64_t side, std::int64_t crop,
                            std::int64_t most);

// (3, crop, crop): the square from (top, left) of an image that was resized, mirrored or not.
void write_square(const Image& image, const ImageScaling& scaling, std::int64_t top,
                  std::int64_t left, bool mirrored, float* to);
// The middle square, as for evaluation. The image is resized first unless its shorter side is
// `scaling.side` long.
void write_middle(const Image& image, const ImageScaling& scaling, float* to);

struct ImageBatch {
    Array x;  // (N, 3, crop, crop), float32
    Array t;  // (N,), int32: classes
};

// The state is (seed, epoch, batch) alone; what a batch is follows from it, for any number of threads.
// It goes on for the same files alone, whatever folder they lie in.
// Not for several threads at once.
class ImageBatches final : public Visitable {
public:
    struct Options {
        std::int64_t batch_size = 32;
        std::uint64_t seed = 0;
        bool training = true;  // shuffled; squares from anywhere, half of them mirrored
        int loaders = 1;       // threads that decode
        Device device = {};    // where batches go; none means Device::current()
    };
    // Throws ShapeError for no images, sizes below 1, a square larger than the shorter side, and a mean
    // of another shape.
    ImageBatches(ImageFolder folder, ImageScaling scaling, Options options);
    ~ImageBatches();

    // Throws as read_image(), at the batch that has the image.
    ImageBatch next();

    std::int64_t size() const noexcept;
    std::int64_t epoch() const noexcept;
    std::int64_t position() const noexcept;  // images of this epoch so far
    void visit(Visitor& visitor) override;

private:
    class Loader;
    std::unique_ptr<Loader> loader_;
};

}  // namespace catena
