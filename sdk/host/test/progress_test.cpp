// Tests of Progress and Interrupt.
#include <catena/interrupt.hpp>
#include <catena/progress.hpp>

#include <catena_test/child.hpp>

#include <pty.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>
#include <optional>
#include <thread>

#include "temporary.hpp"

using namespace catena;
using namespace std::chrono_literals;
using catena_test::end_of;

namespace {

void never_ask() {
    for (;;) pause();
}

}  // namespace

TEST_CASE("the bar fills the line and never more") {
    CHECK(Progress::draw("epoch 1", 50, 100, "loss 1.0", 40) ==
          "epoch 1 [=======        ]  50% loss 1.0");
    for (int width = 2; width < 120; ++width) {
        for (const std::int64_t done : {0, 1, 99, 100}) {
            const auto line = Progress::draw("epoch 1", done, 100, "loss 1.0", width);
            CHECK(line.size() <= static_cast<std::size_t>(width - 1));
        }
    }
    CHECK(Progress::draw("e", 100, 100, "", 40) == "e [" + std::string(29, '=') + "] 100% ");
}

TEST_CASE("a file gets no bar, and no line for what is soon over") {
    const TemporaryFolder folder;
    const auto file = folder.path / "out";
    std::FILE* out = std::fopen(file.c_str(), "w");
    {
        Progress progress("epoch", 10, "images", out);
        for (int i = 0; i <= 10; ++i) progress.update(i, 0.5);
        CHECK(progress.rate() > 0);
    }
    std::fclose(out);
    CHECK(read_file(file).empty());
}

TEST_CASE("a terminal gets the value, or only the number and the rate if there is none yet") {
    int terminal = -1, side = -1;
    REQUIRE(openpty(&terminal, &side, nullptr, nullptr, nullptr) == 0);
    std::FILE* out = fdopen(side, "w");
    std::optional<Progress> progress;
    progress.emplace("epoch", 10, "images", out);
    const auto shown = [&](const std::function<void()>& update) {
        std::this_thread::sleep_for(150ms);  // it is redrawn after 100
        update();
        char text[1000];
        const auto size = read(terminal, text, sizeof text);
        return std::string(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    };
    progress->update(0);
    const std::string none = shown([&] { progress->update(5); });
    CHECK(none.find("50% ") != none.npos);
    CHECK(none.find("images/s") != none.npos);
    CHECK(none.find("loss") == none.npos);
    CHECK(none.find("nan") == none.npos);
    const std::string value = shown([&] { progress->update(10, NAN, "error"); });
    CHECK(value.find("100% error nan  ") != value.npos);  // a loss that is NaN is shown
    progress.reset();
    std::fclose(out);
    close(terminal);
}

TEST_CASE("an interrupt is a question that can be asked") {
    {
        const Interrupt interrupt;
        CHECK_FALSE(interrupt.requested());
        std::raise(SIGINT);
        CHECK(interrupt.requested());
        CHECK(interrupt.exit_code() == 130);
    }
    const Interrupt again;
    CHECK_FALSE(again.requested());
    std::raise(SIGTERM);
    CHECK(again.exit_code() == 143);
}

TEST_CASE("a second signal ends the process, but not a second SIGHUP") {
    const auto both = [](int first, int second) {
        return end_of([&] {
            const Interrupt interrupt;
            std::raise(first);
            std::raise(second);
            return interrupt.exit_code();
        });
    };
    CHECK(both(SIGINT, SIGINT) == -SIGINT);
    CHECK(both(SIGTERM, SIGTERM) == -SIGTERM);
    CHECK(both(SIGHUP, SIGTERM) == -SIGTERM);
    CHECK(both(SIGHUP, SIGHUP) == 128 + SIGHUP);  // a closing terminal sends two
    CHECK(both(SIGTERM, SIGHUP) == 128 + SIGTERM);
    CHECK(both(SIGINT, SIGHUP) == 128 + SIGHUP);  // SIGHUP overrides Ctrl-C
}

TEST_CASE("a process that does not ask ends some time after SIGTERM or SIGHUP") {
    for (const int signal : {SIGTERM, SIGHUP}) {
        CHECK(end_of([&]() -> int {
                  const Interrupt interrupt(100ms, 100ms);
                  std::raise(signal);
                  never_ask();
                  return 0;
              }) == -signal);
    }
    CHECK(end_of([]() -> int {
              const Interrupt interrupt(0ms, 100ms);
              std::raise(SIGINT);
              std::raise(SIGHUP);
              never_ask();
              return 0;
          }) == -SIGHUP);
    CHECK(end_of([] {  // this limit holds after SIGTERM only
              const Interrupt interrupt(50ms);
              std::raise(SIGHUP);
              std::this_thread::sleep_for(200ms);
              return interrupt.exit_code();
          }) == 128 + SIGHUP);
    CHECK(end_of([] {  // after Ctrl-C or without a signal there is no limit
              const Interrupt interrupt(50ms);
              std::this_thread::sleep_for(200ms);
              std::raise(SIGINT);
              std::this_thread::sleep_for(200ms);
              return interrupt.exit_code();
          }) == 128 + SIGINT);
}

TEST_CASE("signals that a kernel blocks on its thread end the process in time, too") {
    CHECK(end_of([]() -> int {
              const Interrupt interrupt(100ms);
              sigset_t all;
              sigfillset(&all);
              pthread_sigmask(SIG_SETMASK, &all, nullptr);
              kill(getpid(), SIGTERM);
              std::this_thread::sleep_for(1h);
              return 0;
          }) == -SIGTERM);
}

TEST_CASE("what was ignored stays ignored") {
    CHECK(end_of([] {
              std::signal(SIGHUP, SIG_IGN);
              const Interrupt interrupt(50ms);
              std::raise(SIGHUP);
              return interrupt.requested() ? 1 : 0;
          }) == 0);
    CHECK(end_of([]() -> int {
              std::signal(SIGTERM, SIG_IGN);
              const Interrupt interrupt(50ms, 50ms);
              std::raise(SIGHUP);
              never_ask();
              return 0;
          }) == -SIGHUP);
}
