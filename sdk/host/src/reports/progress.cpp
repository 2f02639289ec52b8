// Progress: formats the bar and the line, and limits how often they are written.
#include <catena/progress.hpp>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace catena {
namespace {

// Ignores errors, for which fmt::print() would throw.
void write(std::FILE* out, const std::string& text) { (void)std::fputs(text.c_str(), out); }

int width_of(std::FILE* out) {
    winsize size{};
    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool wants_colour() {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return !(no_color && *no_color) && term && std::string_view(term) != "dumb";
}

}  // namespace

Progress::Progress(std::string label, std::int64_t total, std::string unit, std::FILE* out)
    : label_(std::move(label)),
      total_(std::max<std::int64_t>(total, 1)),
      unit_(std::move(unit)),
      out_(out),
      terminal_(isatty(fileno(out)) == 1),
      colour_(terminal_ && wants_colour()) {}

std::string Progress::draw(std::string_view label, std::int64_t done, std::int64_t total,
                           std::string_view text, int width) {
    const std::string tail = fmt::format(" {:3d}% {}", 100 * done / total, text);
    const int room = width - 1 - static_cast<int>(label.size() + tail.size()) - 3;
    if (room < 4)
        return fmt::format("{}{}", label, tail).substr(0, static_cast<std::size_t>(width - 1));
    const auto filled = static_cast<int>(room * std::min(done, total) / total);
    return fmt::format("{} [{:=<{}}{:<{}}]{}", label, "", filled, "", room - filled, tail);
}

void Progress::update(std::int64_t done, const std::function<double()>& value,
                      std::string_view value_name) {
    done_ = done;
    const auto now = Clock::now();
    if (first_ < 0) {
        first_ = done;
        start_ = last_ = now;
        return;
    }
    if (now - last_ < std::chrono::milliseconds(terminal_ ? 100 : 10000)) return;
    last_ = now;
    std::string text;
    if (value) text = fmt::format("{} {:.4f}  ", value_name, value());
    text += fmt::format("{:.0f} {}/s", rate(), unit_);
    if (!terminal_) {
        write(out_, fmt::format("{} {}/{} {}\n", label_, done, total_, text));
    } else {
        const std::string line = draw(label_, done, total_, text, width_of(out_));
        write(out_, colour_ ? "\r\x1b[36m" + line + "\x1b[0m\x1b[K" : "\r" + line);
        drawn_ = true;
    }
    std::fflush(out_);
}

void Progress::clear() {
    if (!drawn_) return;
    write(out_, colour_ ? "\r\x1b[K" : fmt::format("\r{:{}}\r", "", width_of(out_) - 1));
    std::fflush(out_);
    drawn_ = false;
}

double Progress::rate() const {
    const std::chrono::duration<double> elapsed = Clock::now() - start_;
    return first_ < 0 || elapsed.count() <= 0
               ? 0
               : static_cast<double>(done_ - first_) / elapsed.count();
}

}  // namespace catena
