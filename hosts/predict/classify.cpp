// Classifies images.
#include "predict.hpp"

#include <catena/images.hpp>

#include <fmt/ranges.h>

#include <numeric>

using namespace catena;
namespace F = catena::functions;
namespace fs = std::filesystem;

namespace {

// A loaded net, the names of its classes, and how images are prepared for it.
struct Net {
    std::unique_ptr<models::Classifier> model;
    std::vector<std::string> classes;
    ImageScaling scaling;  // only for nets with colour images
};

Net load_net(const About& about, Device device) {
    const std::string name = about.text("about/net");
    const initializers::no_random_values loading;
    Net net;
    if (name == "mlp" || name == "cnn" || name == "two-column") {
        net.classes = about.lines("about/classes");
        const std::int64_t units = about.integer("about/units");
        const std::int64_t classes = std::ssize(net.classes);
        const Shape image{1, about.integer("about/height"), about.integer("about/width")};
        if (name == "mlp") net.model = std::make_unique<models::Mlp>(image, classes, units);
        else if (name == "cnn") net.model = std::make_unique<models::Cnn>(image, classes, units);
        else
            net.model =
                std::make_unique<models::TwoColumnMlp>(image, classes, units, device, device);
    } else if (const auto known = models::image_net_names(); std::ranges::count(known, name) == 0) {
        fail<DataError>("[predict] {}: expected a net of the SDK, such as mlp or {}, got {}",
                        about.file().string(), fmt::join(known, ", "), name);
    } else {
        net.classes = about.lines("about/classes");
        net.scaling = ImageScaling(about.integer("scaling/side"), about.integer("scaling/crop"));
        net.model = models::make_image_net(
            name, std::ssize(net.classes),
            {.image = net.scaling.crop, .width = about.number("about/width")});
        load_snapshot(about.file(), net.scaling, "scaling/");
    }
    load_snapshot(about.file(), *net.model, "model/");
    return net;
}

// Writes the values of an image in the format of the net.
void write_image(const Net& net, const Image& image, float* to) {
    const Shape& shape = net.model->image_shape();
    if (shape[0] == 3) return write_middle(image, net.scaling, to);
    const Image small = resize(image, shape[1], shape[2]);
    for (std::size_t i = 0; i < small.pixels.size(); i += 3) {  // brightness, by Rec. 601
        *to++ = (0.299F * static_cast<float>(small.pixels[i]) +
                 0.587F * static_cast<float>(small.pixels[i + 1]) +
                 0.114F * static_cast<float>(small.pixels[i + 2])) /
                255;
    }
}

// A list of images to classify.
struct Source {
    std::int64_t size;
    std::function<std::string(std::int64_t i)> name;
    std::function<void(std::int64_t i, float* to)> write;  // in the format of the net
};

// Returns the image files among the inputs and in input folders.
Source source_of_files(const std::vector<fs::path>& inputs, const Net& net) {
    std::vector<fs::path> files;
    for (const fs::path& input : inputs) {
        if (!fs::is_directory(input)) {
            files.push_back(input);
            continue;
        }
        const auto before = std::ssize(files);
        for (const auto& entry : fs::recursive_directory_iterator(input)) {
            if (entry.is_regular_file() && is_image_file(entry.path()))
                files.push_back(entry.path());
        }
        std::sort(files.begin() + before, files.end());
    }
    if (files.empty())
        fail<DataError>("[predict] {}: expected PNG or JPEG files, got none", inputs[0].string());
    const auto read = net.model->image_shape()[0] == 3 ? read_resized : read_image;
    return {std::ssize(files),
            [=](std::int64_t i) { return files[static_cast<std::size_t>(i)].string(); },
            [=, &net](std::int64_t i, float* to) {
                write_image(net, read(files[static_cast<std::size_t>(i)], net.scaling.side), to);
            }};
}

Source source_of_idx(const fs::path& file, const Net& net) {
    const auto images = std::make_shared<const IdxFile>(read_idx(file, 3));
    const Shape& shape = net.model->image_shape();
    if (shape[0] != 1 || images->shape[1] != shape[1] || images->shape[2] != shape[2])
        fail<DataError>("[predict] {}: expected images of {}, got {} x {} in grey", file.string(),
                        to_string(shape), images->shape[1], images->shape[2]);
    return {images->shape[0],
            [=](std::int64_t i) { return fmt::format("{}[{}]", file.filename().string(), i); },
            [images, n = shape.size()](std::int64_t i, float* to) {
                const auto* from = images->values.data() + i * n;
                std::transform(from, from + n, to,
                               [](std::uint8_t value) { return static_cast<float>(value) / 255; });
            }};
}

// Whether the file contains IDX images, by its content; false for folders and image file names.
bool is_idx(const fs::path& file) {
    try {
        return !fs::is_directory(file) && !is_image_file(file) && idx_dimensions(file) == 3;
    } catch (const DataError&) {
        return false;
    }
}

Source open(const Options& options, const Net& net) {
    if (options.inputs.empty())
        throw DataError("[predict] input: expected images to classify, got none");
    if (std::ranges::none_of(options.inputs, is_idx)) return source_of_files(options.inputs, net);
    if (options.inputs.size() > 1)
        fail<DataError>("[predict] input: expected one IDX file, got {} inputs",
                        options.inputs.size());
    return source_of_idx(options.inputs[0], net);
}

// Returns a line such as "name  7 0.9810  1 0.0100": the most probable classes of an image.
std::string describe(const Net& net, const std::string& name, std::span<const float> probabilities,
                     std::int64_t top) {
    std::vector<std::size_t> order(probabilities.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto shown = std::min<std::int64_t>(top, std::ssize(order));
    std::partial_sort(order.begin(), order.begin() + shown, order.end(), [&](auto a, auto b) {
        return std::pair(-probabilities[a], a) < std::pair(-probabilities[b], b);
    });
    std::string line = name;
    for (std::int64_t i = 0; i < shown; ++i) {
        const std::size_t which = order[static_cast<std::size_t>(i)];
        line += fmt::format("  {} {:.4f}", net.classes[which], probabilities[which]);
    }
    return line;
}

}  // namespace

void classify(const Program& program, const Options& options, const About& about, Device device) {
    const no_backprop_mode no_graph;
    const using_config testing(&Config::train, false);
    const Net net = load_net(about, device);
    const Source source = open(options, net);
    std::vector<std::uint8_t> labels;
    if (!options.labels.empty()) {
        labels = read_idx(options.labels, 1).values;
        if (std::ssize(labels) != source.size)
            fail<DataError>("[predict] {}: expected {} labels, got {}", options.labels.string(),
                            source.size, labels.size());
    }
    const Shape shape = net.model->image_shape();
    const std::int64_t at_once = options.latency ? 1 : options.batch;
    std::int64_t right = 0;
    Timing timing;
    for (std::int64_t begin = 0; begin < source.size; begin += at_once) {
        program.stop_if_interrupted();
        const std::int64_t n = std::min(at_once, source.size - begin);
        const Array x =
            Array::empty({n, shape[0], shape[1], shape[2]}, Dtype::float32, cuda::host());
        float* to = x.host<float>().data();
        for (std::int64_t i = 0; i < n; ++i) source.write(begin + i, to + i * shape.size());
        const Variable scores = (*net.model)(as_variable(x.to(device)));
        const auto probabilities = F::softmax(scores).data().to_vector<float>();
        timing.mark(n);
        for (std::int64_t i = 0; i < n; ++i) {
            const auto own =
                std::span(probabilities)
                    .subspan(static_cast<std::size_t>(i) * net.classes.size(), net.classes.size());
            if (labels.empty()) {
                program.print(describe(net, source.name(begin + i), own, options.top));
            } else {
                const auto best = std::ranges::max_element(own) - own.begin();
                right += best == labels[static_cast<std::size_t>(begin + i)] ? 1 : 0;
            }
        }
    }
    if (!labels.empty())
        program.print(fmt::format("accuracy: {:.4f}",
                                  static_cast<double>(right) / static_cast<double>(source.size)));
    tell(options.latency ? timing.latency("images") : timing.rate("images"));
}
