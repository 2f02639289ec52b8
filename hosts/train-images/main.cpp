// catena-train-images: trains well-known nets on folders of images.
#include <catena/catena.hpp>
#include <catena/fail.hpp>
#include <catena/images.hpp>
#include <catena/models/image_nets.hpp>
#include <catena/trainer.hpp>

#include <cmath>

using namespace catena;
namespace F = catena::functions;
namespace po = boost::program_options;

namespace {

struct Options {
    std::filesystem::path data;
    double held_out = 0.1;
    std::string net = "nin";
    double width = 1;
    std::int64_t size = 224;
    std::int64_t side = 0;  // 0: 9/8 of size
    std::int64_t batch = 32;
    std::int64_t epochs = 30;
    OptimizerOptions optimizer{"momentum_sgd"};
    double weight_decay = 5e-4;
    int loaders = 1;
    std::int64_t measured = 2000;
};

struct Images {
    ImageFolder train, valid;
};

// Finds the images in --data: in its folders train and val, or split at random. Throws DataError.
Images find_images(const Options& options, std::int64_t seed) {
    const auto train = options.data / "train", valid = options.data / "val";
    if (!std::filesystem::is_directory(train) || !std::filesystem::is_directory(valid)) {
        auto [rest, held] =
            hold_out(list_images(options.data), options.held_out, static_cast<std::uint64_t>(seed));
        if (held.size() == 0)
            fail<DataError>(
                "[images] {}: expected a class with at least two images, one of them for "
                "validation, got none",
                options.data.string());
        return {std::move(rest), std::move(held)};
    }
    Images images{list_images(train), list_images(valid)};
    if (images.train.classes != images.valid.classes)
        fail<DataError>("[images] {}: expected the same class folders as in {}, got others",
                        valid.string(), train.string());
    return images;
}

// Loads the scaling from the resumed snapshot, or measures the images. Throws DataError.
ImageScaling scaling_of(const Program& program, const Options& options, const Images& images) {
    if (!program.snapshots.resumes())
        return measure_images(images.train, options.side, options.size, options.measured);
    ImageScaling scaling(options.side, options.size);
    load_snapshot(program.snapshots.resumed_file(), scaling, "scaling/");
    return scaling;
}

class Training final : public Trainer {
public:
    Training(const Options& how, const Program& program, const Images& images,
             const ImageScaling& how_scaled)
        : Trainer(how.optimizer, program,
                  {.unit = "images",
                   .scores = {"loss", "accuracy"},
                   .columns = {"train loss", "valid loss", "train accuracy", "valid accuracy"},
                   .rate_digits = 1}),
          model(models::make_image_net(how.net, std::ssize(images.train.classes),
                                       {.image = how.size, .width = how.width})),
          options(how),
          classes(fmt::format("{}\n", fmt::join(images.train.classes, "\n"))),
          scaling(how_scaled),
          valid(images.valid),
          device(program.devices()[0]),
          batches(images.train, scaling,
                  {.batch_size = how.batch,
                   .seed = static_cast<std::uint64_t>(program.seed()),
                   .loaders = how.loaders,
                   .device = device,
                   .share = share()}),
          random(device) {
        set_up(*model);
        if (how.weight_decay > 0)
            optimizer->add_hook(
                [decay = how.weight_decay](const Optimizer& o) { o.weight_decay(decay); });
    }

    void visit(Visitor& v) override {
        Trainer::visit(v);
        v.require("about/net", options.net).require("about/classes", classes);
        v.require("about/width", fmt::format("{}", options.width));
        v.require("options/weight_decay", fmt::format("{}", options.weight_decay));
        v("scaling", scaling)("model", *model)("batches", batches)("random", random);
    }

    std::unique_ptr<models::Classifier> model;

private:
    void step() override {
        const ImageBatch batch = batches.next();
        optimizer->cleargrads();
        if (batch.t.size() == 0) {  // there are fewer images than processes
            if (normalizes_together()) F::sum((*model)(as_variable(batch.x))).backward();
            return optimizer->update();
        }
        auto [loss, scores] = model->loss(as_variable(batch.x), as_variable(batch.t));
        score.add({loss.data(), F::accuracy(scores.data(), batch.t)},
                  static_cast<double>(batch.t.size()));
        draw_once(loss);
        scores = {};
        loss = weigh(loss, batches.weight());
        std::move(loss).backward();  // frees the graph during the pass
        optimizer->update();
    }
    Place place() const override { return {batches.epoch(), batches.position(), batches.size()}; }
    const Link& net() const override { return *model; }
    Report report(const Program& program) override { return compare(evaluate(program), "valid"); }
    void complete(const Program& program) override {
        program.print(fmt::format("valid accuracy: {:.4f}", evaluate(program).mean("accuracy")));
    }
    // Returns the means over the middle squares of the validation images. Throws Interrupted.
    Summary evaluate(const Program& program) {
        const no_backprop_mode no_graph;
        const using_config testing(&Config::train, false);
        Summary summary{"loss", "accuracy"};
        ImageBatches images(valid, scaling,
                            {.batch_size = options.batch,
                             .training = false,
                             .loaders = options.loaders,
                             .device = device,
                             .share = {share().rank, share().size}});
        while (images.epoch() == 0) {
            program.stop_if_interrupted();
            const ImageBatch batch = images.next();
            if (batch.t.size() == 0) continue;
            const auto [loss, scores] = model->loss(as_variable(batch.x), as_variable(batch.t));
            summary.add({loss.data(), F::accuracy(scores.data(), batch.t)},
                        static_cast<double>(batch.t.size()));
        }
        return over_all(summary);
    }

    Options options;
    std::string classes;  // one class per line
    ImageScaling scaling;
    ImageFolder valid;
    Device device;
    ImageBatches batches;
    RandomStream random;  // for dropout
};

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    ProgramOptions& options = program.options;
    // clang-format off
    options.add_options()
        ("data", options.path(o.data, "DIR"),
         "a folder with a subfolder of PNG or JPEG files for each class, or with two such folders, train "
         "and val")
        ("held-out", options.value(o.held_out),
         "fraction of each class used for validation if there is no folder val")
        ("net", options.value(o.net), "nin, alexnet-bn, googlenet or vit")
        ("width", options.value(o.width),
         "width of the net: 0.25 uses a quarter of the channels")
        ("size", options.value(o.size), "width and height of the net's input")
        ("side", po::value(&o.side)->value_name("N"),
         "shorter side of the scaled images, from which the input is cropped; default: 9/8 of --size")
        ("batch", options.value(o.batch), "images per minibatch")
        ("epochs", options.value(o.epochs), "passes over the images")
        ("weight-decay", options.value(o.weight_decay),
         "coefficient of the weight decay")
        ("loaders", options.per_process(options.value(o.loaders)), "threads that read images")
        ("measured", options.value(o.measured),
         "maximum number of images for computing the mean image");
    // clang-format on
    o.optimizer.add_to(options);
    program.add_training_options();
    options.positional().add("data", 1);
    if (!program.parse(argc, argv)) return false;
    if (o.data.empty()) throw po::error("--data: expected a folder of images, got none");
    const auto names = models::image_net_names();
    options.require(std::ranges::count(names, o.net) > 0, "net",
                    "nin, alexnet-bn, googlenet or vit", o.net);
    o.optimizer.check(options);
    constexpr std::int64_t longest = 4096;  // the limit of ImageScaling
    options.require(o.size >= 1 && o.size <= longest, "size", "1 to 4096", o.size);
    if (!options.given("side")) o.side = std::min(o.size + o.size / 8, longest);
    options.require(o.side >= o.size && o.side <= longest, "side", "--size to 4096", o.side);
    options.require_at_least(1, {{"batch", o.batch}, {"measured", o.measured}});
    options.require(o.loaders >= 1 && o.loaders <= 256, "loaders", "1 to 256", o.loaders);
    options.require_at_least("epochs", o.epochs, 0);
    options.require(o.held_out > 0 && o.held_out < 1, "held-out", "above 0, below 1", o.held_out);
    options.require_positive("width", o.width);
    options.require(std::isfinite(o.weight_decay) && o.weight_decay >= 0, "weight-decay",
                    "0 or more", o.weight_decay);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    return run_program("catena-train-images", [&] {
        Program program("catena-train-images",
                        "Trains a net to classify images: Network in Network, AlexNet with batch "
                        "normalization, or GoogLeNet.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        const Device device = program.start();
        const using_device scope(device);
        const Images images = find_images(options, program.seed());
        program.print(fmt::format("images: {} ({} to train, {} to validate, {} classes)",
                                  options.data.string(), images.train.size(), images.valid.size(),
                                  images.train.classes.size()));
        Training training(options, program, images, scaling_of(program, options, images));
        program.snapshots.resume(training);
        program.print(fmt::format("net: {} for {}x{}, {} parameters, {}, on {}", options.net,
                                  options.size, options.size, training.model->count_parameters(),
                                  options.optimizer.name(), device.name()));
        return training.run(program, options.epochs);
    });
}
