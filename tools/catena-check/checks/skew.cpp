// Checks skew: hosts that are older or newer than the headers that the plugin was built with.
#include "rig.hpp"

namespace catena::check::skew {
namespace {

using testing::detail::Ground;
using testing::detail::Module;
using testing::detail::Release;
using testing::detail::releases;
using Kind = Placement::Kind;

static_assert(releases[std::size(releases) - 1].minor == CATENA_ABI_MINOR,
              "a line for the sizes of each minor");

std::uint16_t needed_by(const Subject& subject) {
    return Module(subject.file).manifest->abi_minor_needed;
}

// Checks every callback with a host table and structs of the placement's release and kind.
void play(const Subject& subject, Findings& findings, const Placement& placement,
          const std::string& words) {
    Ground ground(placement);
    catena_host host = controlled_host();
    host.abi_minor = placement.release.minor;
    if (placement.kind == Kind::larger)
        host.abi_minor = static_cast<std::uint16_t>(host.abi_minor + 5);
    Rig(subject, *ground.lend(host)).each_callback(findings, [&](const Callback& callback) {
        callback.check(findings, words, {{}, placement});
    });
}

void old_host(const Subject& subject, Findings& findings) {
    const std::uint16_t needed = needed_by(subject);
    for (const Release& release : releases)
        if (release.minor >= needed)
            play(subject, findings, {Kind::strict, release},
                 fmt::format("in structs of ABI {}.{} before pages that nobody may touch",
                             CATENA_ABI_MAJOR, release.minor));
}
const Registered r1{
    {"skew", "old-host",
     "with an older host, nothing past the end of a struct is read, and nothing const is written",
     old_host, Each::function}};

void new_host(const Subject& subject, Findings& findings) {
    Placement placement;
    placement.kind = Kind::larger;
    play(subject, findings, placement, "in larger structs of a newer host");
}
const Registered r2{{"skew", "new-host",
                     "a newer host, with larger structs and a newer minor, gives the same results",
                     new_host, Each::function}};

// Calls entry() with a host that the manifest rules out. It may succeed, or fail with a text.
void refusal(const Subject& subject, Findings& findings) {
    const std::unique_ptr<testing::World> world = make_world(subject);
    const auto ask = [&](std::uint16_t major, std::uint16_t minor, Release release) {
        const std::string label =
            fmt::format("catena_plugin_entry_v1() of a host with ABI {}.{}", major, minor);
        doing("{}", label);
        Ground ground({Kind::strict, release});
        catena_host host = controlled_host();
        host.abi_major = major;
        host.abi_minor = minor;
        const catena_host* lent = ground.lend(host);
        const Module copy = second_copy(subject.file);
        catena_ctx ctx{world.get(), {}, {}};
        control.forget();
        const catena_plugin* table = nullptr;
        try {
            table = copy.entry(lent, &ctx);
        } catch (...) {
            return findings.fail("{} lets an exception out", label);
        }
        if (table == nullptr && control.failures == 0)
            findings.fail("{} returns NULL without fail(): expected a text that says why", label);
        if (table != nullptr && control.failures > 0)
            findings.fail("{} returns a table after fail(\"{}\")", label, control.text);
    };
    ask(CATENA_ABI_MAJOR + 1, 0, releases[0]);
    const std::uint16_t needed = needed_by(subject);
    for (const Release& release : releases)
        if (release.minor < needed) ask(CATENA_ABI_MAJOR, release.minor, release);
}
const Registered r3{
    {"skew", "refusal", "entry() refuses an incompatible host only with a message", refusal}};

void extensions(const Subject& subject, Findings& findings) {
    Rig(subject).each_callback(findings, [&](const Callback& callback) {
        control.empty_handed = true;  // not set while the plugin is loaded
        callback.check(findings, "without extensions", {}, false);
    });
}
const Registered r4{{"skew", "extensions",
                     "on a host without extensions, calls succeed or report what is missing",
                     extensions, Each::function}};

}  // namespace
}  // namespace catena::check::skew
