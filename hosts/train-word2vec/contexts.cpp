// Choosing words, and drawing places.
#include "contexts.hpp"

#include <catena/fail.hpp>
#include <catena/random.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace catena;

std::vector<std::int32_t> subsample(std::span<const std::int32_t> text,
                                    std::span<const std::int64_t> counts, double share,
                                    std::uint64_t seed) {
    if (share == 0) return {text.begin(), text.end()};
    Generator generator(seed ^ 0x73756273616d706cu);
    std::vector<std::int32_t> kept;
    for (const std::int32_t word : text) {
        const double frequency = static_cast<double>(counts[static_cast<std::size_t>(word)]) /
                                 static_cast<double>(text.size());
        if (generator.uniform() < std::sqrt(share / frequency)) kept.push_back(word);
    }
    return kept;
}

Contexts::Contexts(std::vector<std::int32_t> text, std::int64_t window, std::int64_t batch_size,
                   std::uint64_t seed, Device device)
    : text_(std::move(text)),
      window_(window),
      batch_size_(batch_size),
      seed_(seed),
      device_(device),
      places_(0) {
    if (window_ > (std::ssize(text_) - 1) / 2)
        fail<ShapeError>(
            "[Contexts] text: expected more training words than twice the window of {}, got {}",
            window_, text_.size());
    places_ = std::ssize(text_) - 2 * window_;
}

void Contexts::order_epoch() {
    if (ordered_ == std::pair(epoch_, seed_)) return;
    Generator generator(seed_ ^ 0x636f6e7465787473u, static_cast<std::uint64_t>(epoch_) << 32);
    order_.resize(static_cast<std::size_t>(places_));
    std::iota(order_.begin(), order_.end(), window_);
    generator.shuffle(order_);
    ordered_ = {epoch_, seed_};
}

Contexts::Batch Contexts::next() {
    order_epoch();
    // Near words say more: they are looked at in each minibatch, far ones in some.
    Generator generator(seed_ ^ 0x77696e646f77u, static_cast<std::uint64_t>(epoch_) << 32 |
                                                     static_cast<std::uint64_t>(position_));
    const auto k =
        static_cast<std::int64_t>(generator.below(static_cast<std::uint64_t>(window_))) + 1;
    const std::int64_t n = std::min(batch_size_, places_ - position_);
    std::vector<std::int32_t> center, contexts;
    for (std::int64_t i = position_; i < position_ + n; ++i) {
        const std::int64_t place = order_[static_cast<std::size_t>(i)];
        center.push_back(text_[static_cast<std::size_t>(place)]);
        for (std::int64_t offset = -k; offset <= k; ++offset) {
            if (offset != 0) contexts.push_back(text_[static_cast<std::size_t>(place + offset)]);
        }
    }
    position_ += n;
    if (position_ == places_) {
        position_ = 0;
        ++epoch_;
    }
    return {Array::from(center, {n}, device_), Array::from(contexts, {n, 2 * k}, device_)};
}

void Contexts::visit(Visitor& visitor) {
    visitor.require("words", std::ssize(text_)).require("window", window_);
    visitor.require("batch_size", batch_size_);
    visitor("seed", seed_).within("epoch", epoch_, 0, most_epochs);
    visitor.within("position", position_, 0, places_ - 1);
}
