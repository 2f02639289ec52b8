// RunningText, RandomWindows and Sentences: select the tokens of each minibatch and pack them.
#include <catena/fail.hpp>
#include <catena/functions.hpp>
#include <catena/random.hpp>
#include <catena/text_batches.hpp>

#include <numeric>

namespace catena {
namespace {

void require(bool condition, const char* who, const char* what, std::string_view expected,
             std::int64_t got) {
    if (!condition) fail<ShapeError>("[{}] {}: expected {}, got {}", who, what, expected, got);
}

// Throws ShapeError unless both are at least 1.
void require_sizes(const char* who, std::int64_t batch_size, const char* length_name,
                   std::int64_t length) {
    require(batch_size >= 1, who, "batch_size", "at least 1", batch_size);
    require(length >= 1, who, length_name, "at least 1", length);
}

// Packs texts of tokens, of which the first is the longest: x begins with that at begin(i), and
// text i has length(i) pairs of a token and its successor.
template <class Begin, class Length>
TextBatch packed(const std::vector<std::int32_t>& tokens, Range texts, const Begin& begin,
                 const Length& length, std::int64_t steps, Device device) {
    std::vector<std::int32_t> x, t;
    x.reserve(static_cast<std::size_t>(steps * texts.size()));
    t.reserve(x.capacity());
    TextBatch batch{{}, {}, {}, true, steps};
    for (std::int64_t s = 0; s < steps; ++s) {
        std::int64_t i = texts.begin;
        for (; i < texts.end && s < length(i); ++i) {
            const auto at = static_cast<std::size_t>(begin(i) + s);
            x.push_back(tokens[at]);
            t.push_back(tokens[at + 1]);
        }
        batch.rows.push_back(i - texts.begin);
    }
    batch.x = Array::from(x, {std::ssize(x)}, device);
    batch.t = Array::from(t, {std::ssize(t)}, device);
    return batch;
}

}  // namespace

Array TextBatch::by_text(const Array& tokens) const {
    if (rows.empty()) return functions::reshape(tokens, {0, 0});
    require(rows.front() == rows.back(), "TextBatch", "rows", "sequences of one length",
            rows.back());
    return functions::transpose(functions::reshape(tokens, {std::ssize(rows), rows[0]}), {1, 0});
}

RunningText::RunningText(std::vector<std::int32_t> tokens, std::int64_t batch_size,
                         std::int64_t steps, Device device)
    : TextReader(std::move(tokens), batch_size, device), steps_(steps), length_(0) {
    require_sizes("RunningText", batch_size_, "steps", steps_);
    length_ = (std::ssize(tokens_) - 1) / batch_size_;
    require(length_ >= 1, "RunningText", "tokens",
            fmt::format("at least {}, one more than batch_size", batch_size_ + 1),
            std::ssize(tokens_));
}

TextBatch RunningText::next() {
    if (parts() != share().size)
        fail<InvalidError>("[RunningText] share: expected a part for each of {} processes, got {}",
                           share().size, parts());
    const std::int64_t steps = std::min(steps_, length_ - position_);
    const Range own = part(batch_size_);
    TextBatch batch = packed(
        tokens_, own, [&](std::int64_t stream) { return stream * length_ + position_; },
        [&](std::int64_t) { return steps; }, steps, device_);
    batch.begins = position_ == 0;
    end_part(own.size() * steps, batch_size_ * steps);
    advance(position_, steps, length_, epoch_);
    return batch;
}

void RunningText::visit(Visitor& visitor) {
    visitor.require("tokens", std::ssize(tokens_)).require("batch_size", batch_size_);
    visitor.require("steps", steps_).within("epoch", epoch_, 0, most_epochs);
    visitor.within("position", position_, 0, length_ - 1);
}

RandomWindows::RandomWindows(std::vector<std::int32_t> tokens, std::int64_t batch_size,
                             std::int64_t steps, std::uint64_t seed, Device device)
    : TextReader(std::move(tokens), batch_size, device), steps_(steps), seed_(seed), windows_(0) {
    require_sizes("RandomWindows", batch_size_, "steps", steps_);
    // One less than fit, so that there is room to move them.
    windows_ = std::max<std::int64_t>((std::ssize(tokens_) - 1) / steps_ - 1, 1);
    require(std::ssize(tokens_) > steps_, "RandomWindows", "tokens",
            fmt::format("at least {}, one more than steps", steps_ + 1), std::ssize(tokens_));
}

void RandomWindows::order_epoch() {
    if (ordered_ == std::pair(epoch_, seed_)) return;
    // Uses its own key, as Sentences do.
    Generator generator(seed_ ^ 0x77696e646f777321u, static_cast<std::uint64_t>(epoch_) << 32);
    const std::int64_t room = std::ssize(tokens_) - windows_ * steps_;
    const auto begin = static_cast<std::int64_t>(generator.uniform() * static_cast<double>(room));
    begins_.clear();
    for (std::int64_t i = 0; i < windows_; ++i) begins_.push_back(begin + i * steps_);
    generator.shuffle(begins_);
    ordered_ = {epoch_, seed_};
}

TextBatch RandomWindows::next() {
    order_epoch();
    const std::int64_t rows = std::min(batch_size_, windows_ - position_);
    const Range own = part(rows);
    TextBatch batch = packed(
        tokens_, own,
        [&](std::int64_t i) { return begins_[static_cast<std::size_t>(position_ + i)]; },
        [&](std::int64_t) { return steps_; }, steps_, device_);
    if (end_part(own.size() * steps_, rows * steps_)) advance(position_, rows, windows_, epoch_);
    return batch;
}

void RandomWindows::visit(Visitor& visitor) {
    require_whole("RandomWindows");
    visitor.require("tokens", std::ssize(tokens_)).require("batch_size", batch_size_);
    visitor.require("steps", steps_)("seed", seed_).within("epoch", epoch_, 0, most_epochs);
    visitor.within("position", position_, 0, windows_ - 1);
}

Sentences::Sentences(std::vector<std::int32_t> tokens, std::int32_t end, std::int64_t batch_size,
                     std::int64_t longest, std::uint64_t seed, Device device)
    : TextReader(std::move(tokens), batch_size, device), longest_(longest), seed_(seed) {
    require_sizes("Sentences", batch_size_, "longest", longest);
    tokens_.insert(tokens_.begin(), end);
    tokens_.push_back(end);
    const std::int64_t room = std::min(longest, std::ssize(tokens_));
    for (std::int64_t begin = 0; begin + 1 < std::ssize(tokens_);) {  // behind it is a sentence
        std::int64_t stop = begin;
        while (tokens_[static_cast<std::size_t>(stop + 1)] != end) ++stop;
        for (std::int64_t at = begin; stop > begin && at <= stop; at += room) {  // not if empty
            sentences_.push_back({at, std::min(room, stop + 1 - at)});
            size_ += sentences_.back().length;
        }
        begin = stop + 1;
    }
    require(!sentences_.empty(), "Sentences", "sentences", "at least one", 0);
}

void Sentences::order_epoch() {
    if (ordered_ == std::pair(epoch_, seed_)) return;
    // Uses its own key, so that other random streams with the same seed draw other numbers.
    Generator generator(seed_ ^ 0x73656e74656e6365u, static_cast<std::uint64_t>(epoch_) << 32);
    std::vector<std::size_t> order(sentences_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    generator.shuffle(order);
    // Sorts the sentences of every 32 batches by length, so that those of a batch are similar.
    const auto per_batch = static_cast<std::size_t>(batch_size_);
    constexpr std::size_t batches_near = 32;
    std::vector<std::vector<std::size_t>> batches;
    for (std::size_t begin = 0; begin < order.size(); begin += per_batch * batches_near) {
        const std::size_t end = std::min(order.size(), begin + per_batch * batches_near);
        std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(begin),
                         order.begin() + static_cast<std::ptrdiff_t>(end),
                         [&](std::size_t a, std::size_t b) {
                             return sentences_[a].length > sentences_[b].length;
                         });
        for (std::size_t at = begin; at < end; at += per_batch) {
            const std::size_t stop = std::min(end, at + per_batch);
            batches.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(at),
                                 order.begin() + static_cast<std::ptrdiff_t>(stop));
        }
    }
    std::vector<std::size_t> places(batches.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    generator.shuffle(places);
    batches_.clear();
    for (const std::size_t place : places) batches_.push_back(std::move(batches[place]));
    ordered_ = {epoch_, seed_};
}

TextBatch Sentences::next() {
    order_epoch();
    const std::span<const std::size_t> all = batches_[static_cast<std::size_t>(batch_)];
    const Range own = part(std::ssize(all));
    const auto sentence = [&](std::int64_t i) -> const Sentence& {
        return sentences_[all[static_cast<std::size_t>(i)]];
    };
    TextBatch batch = packed(
        tokens_, own, [&](std::int64_t i) { return sentence(i).begin; },
        [&](std::int64_t i) { return sentence(i).length; },
        own.size() == 0 ? 0 : sentence(own.begin).length, device_);
    batch.steps = sentence(0).length;
    std::int64_t tokens = 0;
    for (const std::size_t which : all) tokens += sentences_[which].length;
    if (!end_part(batch.size(), tokens)) return batch;
    position_ += tokens;
    if (++batch_ == std::ssize(batches_)) {
        batch_ = position_ = 0;
        ++epoch_;
    }
    return batch;
}

void Sentences::visit(Visitor& visitor) {
    require_whole("Sentences");
    visitor.require("sentences", std::ssize(sentences_)).require("batch_size", batch_size_);
    visitor.require("tokens", size_).require("longest", longest_);
    const std::int64_t batches = (std::ssize(sentences_) + batch_size_ - 1) / batch_size_;
    visitor("seed", seed_).within("epoch", epoch_, 0, most_epochs);
    visitor.within("batch", batch_, 0, batches - 1).within("position", position_, 0, size_ - 1);
}

}  // namespace catena
