// Reads IDX files; finds, reads and checks the four files of MNIST.
#include "../files/gzip_reader.hpp"

#include <catena/cuda/device.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/mnist.hpp>
#include <catena/read_file.hpp>

#include <fmt/ranges.h>
#include <boost/endian/conversion.hpp>

#include <cstdlib>

namespace catena {

namespace {

// " of a PyTorch file; ...", or "".
std::string of_kind(const std::filesystem::path& file) {
    const std::string kind = file_kind(file);
    return kind.empty() || kind.ends_with("gzip") ? "" : " of " + kind;
}

}  // namespace

IdxFile read_idx(const std::filesystem::path& file, int ndim) {
    return naming_file("read_idx", file, [&] {
        GzipReader reader(file, "read_idx");
        const auto magic = reader.read(4, "a magic number");
        const std::uint32_t expected = 0x0800u | static_cast<std::uint32_t>(ndim);
        const std::uint32_t got = boost::endian::load_big_u32(magic.data());
        if (got != expected)
            reader.fail(fmt::format("magic number 0x{:08x} (bytes, {} dimensions)", expected, ndim),
                        fmt::format("0x{:08x}{}", got, of_kind(file)));
        const auto sizes = reader.read(4 * static_cast<std::uint64_t>(ndim), "the sizes");
        IdxFile result;
        std::uint64_t total = 1;
        for (int i = 0; i < ndim; ++i) {
            const std::uint32_t size = boost::endian::load_big_u32(sizes.data() + 4 * i);
            result.shape.push_back(size);
            if (size != 0 && total > reader.limit() / size)
                reader.fail(fmt::format("at most {} values in a file of this size", reader.limit()),
                            fmt::format("sizes {}, ...", fmt::join(result.shape, ", ")));
            total *= size;
        }
        result.values = reader.read(total, "the values");
        reader.expect_end();
        return result;
    });
}

int idx_dimensions(const std::filesystem::path& file) {
    GzipReader reader(file, "idx_dimensions");
    const auto magic = reader.read(4, "a magic number");
    return magic[0] == 0 && magic[1] == 0 && magic[2] == 8 ? magic[3] : 0;
}

namespace {

namespace fs = std::filesystem;

constexpr const char* images_name = "images-idx3-ubyte";
constexpr const char* labels_name = "labels-idx1-ubyte";

// Returns the file with the ending .gz, or else without it; empty if neither exists.
fs::path find(const fs::path& folder, const std::string& name) {
    std::error_code error;
    for (const char* ending : {".gz", ""}) {
        fs::path file = folder / (name + ending);
        if (fs::exists(file, error)) return file;
    }
    return {};
}

fs::path require(const fs::path& folder, const std::string& name) {
    fs::path file = find(folder, name);
    if (file.empty())
        fail<DataError>("[load_mnist] {}: expected a file {}.gz, got none", folder.string(), name);
    return file;
}

// Loads images and labels. If image has no axes, sets it to their shape, else requires that shape.
Dataset load_part(const fs::path& folder, const std::string& prefix, Shape& image) {
    const fs::path images_file = require(folder, prefix + images_name);
    const fs::path labels_file = require(folder, prefix + labels_name);
    const IdxFile images = read_idx(images_file, 3);
    const IdxFile labels = read_idx(labels_file, 1);
    if (images.shape[0] != labels.shape[0])
        fail<DataError>("[load_mnist] {}: expected {} labels, one for each image, got {}",
                        labels_file.string(), images.shape[0], labels.shape[0]);
    const Shape own{1, images.shape[1], images.shape[2]};
    if (image.ndim() == 0) image = own;
    if (own != image)
        fail<DataError>("[load_mnist] {}: expected images of {}, as in the training set, got {}",
                        images_file.string(), to_string(image), to_string(own));
    const auto wrong = std::find_if(labels.values.begin(), labels.values.end(),
                                    [](std::uint8_t label) { return label > 9; });
    if (wrong != labels.values.end())
        fail<DataError>("[load_mnist] {}: expected labels 0 to 9, got {} at {}",
                        labels_file.string(), *wrong, wrong - labels.values.begin());
    const Device device = cuda::host();
    const Array x = Array::empty({images.shape[0], own.size()}, Dtype::float32, device);
    const Array t = Array::empty({labels.shape[0]}, Dtype::int32, device);
    std::transform(images.values.begin(), images.values.end(), x.host<float>().begin(),
                   [](std::uint8_t value) { return static_cast<float>(value) / 255.0F; });
    std::copy(labels.values.begin(), labels.values.end(), t.host<std::int32_t>().begin());
    return {{x, t}};
}

}  // namespace

bool has_mnist(const fs::path& folder) {
    for (const char* prefix : {"train-", "t10k-"}) {
        for (const char* name : {images_name, labels_name}) {
            if (find(folder, std::string(prefix) + name).empty()) return false;
        }
    }
    return true;
}

Mnist load_mnist(const fs::path& folder) {
    Mnist mnist;
    mnist.train = load_part(folder, "train-", mnist.image);
    mnist.test = load_part(folder, "t10k-", mnist.image);
    return mnist;
}

std::vector<fs::path> data_folders(const std::string& name) {
    const auto variable = [](const char* key) -> std::string {
        const char* value = std::getenv(key);
        return value ? value : "";
    };
    std::vector<fs::path> folders;
    if (const auto data = variable("CATENA_DATA"); !data.empty())
        folders.push_back(fs::path(data) / name);
    if (const auto cache = variable("XDG_CACHE_HOME"); !cache.empty()) {
        folders.push_back(fs::path(cache) / "catena" / name);
    } else if (const auto home = variable("HOME"); !home.empty()) {
        folders.push_back(fs::path(home) / ".cache" / "catena" / name);
    }
    return folders;
}

}  // namespace catena
