// Events in memory that several processes share.
#pragma once

#include <cstdint>

namespace catena_emulator {

struct Shared;

Shared* make_shared_event();
std::uint64_t shared_record(Shared& event);  // returns the generation
std::uint64_t shared_recorded(const Shared& event);
void shared_complete(Shared& event, std::uint64_t generation);
bool shared_done(const Shared& event, std::uint64_t generation);
void shared_wait(const Shared& event, std::uint64_t generation);

}  // namespace catena_emulator
