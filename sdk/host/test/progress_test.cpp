// Progress and interrupts.
#include <catena/interrupt.hpp>
#include <catena/progress.hpp>

#include <csignal>

#include "temporary.hpp"

using namespace catena;

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

TEST_CASE("an interrupt is a question that can be asked") {
    {
        const Interrupt interrupt;
        CHECK_FALSE(interrupt.requested());
        std::raise(SIGINT);
        CHECK(interrupt.requested());
        CHECK(interrupt.exit_code() == 130);
        struct sigaction now;
        sigaction(SIGINT, nullptr, &now);
        CHECK((now.sa_handler == SIG_DFL));  // the second one ends the program
    }
    const Interrupt again;
    CHECK_FALSE(again.requested());
    std::raise(SIGTERM);
    CHECK(again.exit_code() == 143);
}
