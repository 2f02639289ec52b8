// Learning rate schedules: a loop computes the rate and sets it.
//   optimizer.set_rate(rate(epoch));
// Time is in any unit that the loop uses, such as epochs or steps, also fractions. Schedules have
// no state, so nothing has to be saved. Constructors throw InvalidError for rates that are not
// finite and positive, and for negative spans of time.
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace catena::schedules {

// The type of all schedules.
using Schedule = std::function<double(double time)>;

Schedule constant(double rate);
// Constant until `after`, then multiplied by factor at the start of each unit of time: rate *
// factor^(floor(time - after) + 1).
Schedule decay(double rate, double factor, double after = 0);
// {{0, 0.1}, {30, 0.01}}: each rate applies from its time. Times must increase from 0.
Schedule steps(std::vector<std::pair<double, double>> rates);
// Linear from one rate to another within `span`, then constant.
Schedule linear(double from, double to, double span);
// Half a cosine from one rate to another within `span`, then constant. (Loshchilov, Hutter, 2017.)
Schedule cosine(double from, double to, double span);
// Increases the rate of another schedule linearly from nearly 0 within `span`.
Schedule warmup(double span, Schedule then);

}  // namespace catena::schedules
