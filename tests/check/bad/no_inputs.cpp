// expect: nothing
// A function without inputs.
#include "../../../sdk/plugin/test/few_inputs.hpp"

CATENA_PLUGIN("org.example.no_inputs", "1.0.0", few_inputs::Ramp);
