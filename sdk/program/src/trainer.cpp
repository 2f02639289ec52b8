// Trainer: epochs, each with steps and a report.
#include <catena/progress.hpp>
#include <catena/trainer.hpp>

#include <fmt/format.h>

namespace catena {

Trainer::Trainer(const OptimizerOptions& options, std::int64_t seed, Words words)
    : optimizer(options.make()),
      score(words.scores),
      options_(options),
      seed_(seed),
      words_(std::move(words)),
      rate_(options.rate()) {}

void Trainer::visit(Visitor& visitor) {
    visitor("options", options_).require("options/seed", seed_);
    visitor("optimizer", *optimizer)("score", score);
}

void Trainer::draw_once(const Variable& loss) {
    if (const auto draw = std::exchange(draw_, nullptr)) draw(loss);
}

Trainer::Report Trainer::compare(const Summary& tested, std::string_view name) const {
    const double loss = score.mean("loss"), accuracy = score.mean("accuracy");
    const double tested_loss = tested.mean("loss"), tested_accuracy = tested.mean("accuracy");
    return {fmt::format("train loss {:.4f}  accuracy {:.4f}  {} loss {:.4f}  accuracy {:.4f}", loss,
                        accuracy, name, tested_loss, tested_accuracy),
            {loss, tested_loss, accuracy, tested_accuracy}};
}

// Runs the rest of the current epoch. Returns its units per second, or nullopt if interrupted.
std::optional<double> Trainer::run_epoch(const Program& program, const std::string& label) {
    const std::int64_t size = place().size;
    const auto done = [&] { return epoch_over() ? size : place().position; };
    Progress bar(label, size, words_.unit, stderr);
    bar.update(done(), 0);
    while (!epoch_over() && !enough()) {
        if (rate_) optimizer->set_rate(rate_(static_cast<double>(place().epoch)));
        step();
        bar.update(
            done(), [&] { return progress(); }, progress_name());
        if (program.interrupted()) return {};
        program.save_after_step(optimizer->t(), *this);
    }
    return bar.rate();
}

int Trainer::run(const Program& program, std::int64_t epochs) {
    std::vector<std::string> columns = words_.columns;
    columns.insert(columns.begin(), "epoch");
    columns.push_back(words_.unit + "/s");
    Curves curves = program.curves(columns, place().epoch - (epoch_over() ? 1 : 0));
    draw_ = program.drawing(net());
    while (epoch_over() || (place().epoch < epochs && !enough())) {
        const std::int64_t epoch = place().epoch + (epoch_over() ? 0 : 1);
        const auto rate = run_epoch(program, fmt::format("epoch {}/{}", epoch, epochs));
        if (!rate) return program.stop(fmt::format("in epoch {}", epoch), *this);
        program.require_finite(progress());
        Report result;
        try {
            result = report(program);
        } catch (const Interrupted&) {
            return program.stop(fmt::format("after epoch {}", epoch), *this);
        }
        result.numbers.insert(result.numbers.begin(), static_cast<double>(epoch));
        result.numbers.push_back(*rate);
        curves.add(result.numbers);
        if (epoch_over()) score.clear();
        program.save(*this);
        program.print(fmt::format("epoch {:3}  {}  {:.{}f} {}/s", epoch, result.text, *rate,
                                  words_.rate_digits, words_.unit));  // may throw: saved before
        reported(program);
        if (program.interrupted()) return program.finish();
    }
    complete(program);
    return program.finish();
}

}  // namespace catena
