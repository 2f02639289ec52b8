// Images to classes.
#include "training.hpp"

#include <catena/models/image_nets.hpp>

#include <fmt/format.h>

#include <utility>

using namespace catena;
namespace F = catena::functions;

namespace {

std::string lines(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += name + '\n';
    return text;
}

}  // namespace

Images find_images(const Options& options, std::int64_t seed) {
    const auto train = options.data / "train", valid = options.data / "val";
    if (!std::filesystem::is_directory(train) || !std::filesystem::is_directory(valid)) {
        auto [rest, held] =
            hold_out(list_images(options.data), options.held_out, static_cast<std::uint64_t>(seed));
        if (held.size() == 0) {
            throw DataError(
                fmt::format("[images] {}: expected a class with at least two images, one of them "
                            "for validation, got none",
                            options.data.string()));
        }
        return {std::move(rest), std::move(held)};
    }
    Images images{list_images(train), list_images(valid)};
    if (images.train.classes != images.valid.classes) {
        throw DataError(
            fmt::format("[images] {}: expected the same class folders as in {}, got others",
                        valid.string(), train.string()));
    }
    return images;
}

ImageScaling scaling_of(const Program& program, const Options& options, const Images& images) {
    if (!program.resumes())
        return measure_images(images.train, options.side, options.size, options.measured);
    ImageScaling scaling(options.side, options.size);
    load_snapshot(program.resumed_file(), scaling, "scaling/");
    return scaling;
}

Training::Training(const Options& how, std::int64_t number, const Images& images,
                   const ImageScaling& how_scaled, Device device)
    : options(how),
      seed(number),
      classes(lines(images.train.classes)),
      scaling(how_scaled),
      model(models::make_image_net(how.net, std::ssize(images.train.classes),
                                   {.image = how.size, .width = how.width})),
      optimizer(how.optimizer.make()),
      rate(how.optimizer.rate()),
      batches(images.train, scaling,
              {.batch_size = how.batch,
               .seed = static_cast<std::uint64_t>(number),
               .loaders = how.loaders,
               .device = device}),
      random(device) {
    optimizer->setup(*model);
}

void Training::step() {
    if (rate) optimizer->set_rate(rate(static_cast<double>(batches.epoch())));
    const ImageBatch batch = batches.next();
    auto [loss, scores] = model->loss(as_variable(batch.x), as_variable(batch.t));
    score.add({loss.data(), F::accuracy(scores.data(), batch.t)},
              static_cast<double>(batch.t.size()));
    if (const auto once = std::exchange(look, nullptr)) once(loss);
    scores = {};
    optimizer->cleargrads();
    std::move(loss).backward();  // nothing else holds the graph: it is freed on the way
    if (options.weight_decay > 0) optimizer->weight_decay(options.weight_decay);
    optimizer->update();
}

void Training::visit(Visitor& v) {
    v.require("about/net", options.net).require("about/classes", classes);
    v.require("about/width", fmt::format("{}", options.width));
    v("options", options.optimizer);
    v.require("options/weight_decay", fmt::format("{}", options.weight_decay));
    v.require("options/seed", seed);
    v("scaling", scaling)("model", *model)("optimizer", *optimizer)("batches", batches);
    v("random", random)("score", score);
}

Summary evaluate(const Program& program, Training& training, const ImageFolder& images,
                 Device device) {
    const no_backprop_mode no_graph;
    const using_config testing(&Config::train, false);
    Summary summary{"loss", "accuracy"};
    ImageBatches batches(images, training.scaling,
                         {.batch_size = training.options.batch,
                          .training = false,
                          .loaders = training.options.loaders,
                          .device = device});
    while (batches.epoch() == 0) {
        program.stop_if_interrupted();
        const ImageBatch batch = batches.next();
        const auto [loss, scores] =
            training.model->loss(as_variable(batch.x), as_variable(batch.t));
        summary.add({loss.data(), F::accuracy(scores.data(), batch.t)},
                    static_cast<double>(batch.t.size()));
    }
    return summary;
}
