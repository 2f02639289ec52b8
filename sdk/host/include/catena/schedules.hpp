// Learning rates that change in time: a loop asks for the rate and sets it.
//     optimizer.set_rate(rate(epoch));
// Time is what the loop says it is: epochs or steps, whole or not. Nothing is kept, so nothing has to be
// saved. Constructors throw InvalidError for rates that are not finite and positive, and for spans of
// time below 0.
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace catena::schedules {

// What all are.
using Schedule = std::function<double(double time)>;

// The same rate for ever.
Schedule constant(double rate);
// rate until `after`, then multiplied by factor for each unit of time, at once at its beginning:
// rate * factor^(floor(time - after) + 1).
Schedule decay(double rate, double factor, double after = 0);
// {{0, 0.1}, {30, 0.01}}: from each time on its rate. Times rise from 0.
Schedule steps(std::vector<std::pair<double, double>> rates);
// On a straight line from one rate to another, within `span`; then it stays.
Schedule linear(double from, double to, double span);
// Down half a cosine from one rate to another, within `span`. (Loshchilov and Hutter, "SGDR", 2017,
// without restarts.)
Schedule cosine(double from, double to, double span);
// Rises from nearly 0 on a straight line, within `span`, times what then follows.
Schedule warmup(double span, Schedule then);

}  // namespace catena::schedules
