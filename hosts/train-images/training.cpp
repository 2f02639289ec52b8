// Trains nets that classify images: finds the images, runs training steps, evaluates the net.
#include "training.hpp"

#include <catena/fail.hpp>
#include <catena/models/image_nets.hpp>

using namespace catena;
namespace F = catena::functions;

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

ImageScaling scaling_of(const Program& program, const Options& options, const Images& images) {
    if (!program.snapshots.resumes())
        return measure_images(images.train, options.side, options.size, options.measured);
    ImageScaling scaling(options.side, options.size);
    load_snapshot(program.snapshots.resumed_file(), scaling, "scaling/");
    return scaling;
}

Training::Training(const Options& how, const Program& program, const Images& images,
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

void Training::step() {
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

void Training::visit(Visitor& v) {
    Trainer::visit(v);
    v.require("about/net", options.net).require("about/classes", classes);
    v.require("about/width", fmt::format("{}", options.width));
    v.require("options/weight_decay", fmt::format("{}", options.weight_decay));
    v("scaling", scaling)("model", *model)("batches", batches)("random", random);
}

Summary Training::evaluate(const Program& program) {
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

void Training::complete(const Program& program) {
    program.print(fmt::format("valid accuracy: {:.4f}", evaluate(program).mean("accuracy")));
}
