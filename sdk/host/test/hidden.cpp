// A Function that defines parameters() or gradients() does not compile; the error says what to write.
#include <catena/function.hpp>

using namespace catena;

struct Scale : Function<Scale> {
    Array w, gw;
#if defined(PARAMETERS)
    std::vector<Array> parameters() const { return {w}; }
#elif defined(GRADIENTS)
    std::vector<Array> gradients() { return {gw}; }
#else
    std::vector<FunctionParameter> parameter_names() override { return {{"w", w, gw}}; }
#endif
    Arrays forward(ArraySpan inputs) override { return Arrays(inputs.begin(), inputs.end()); }
};

Variable scaled(const Variable& x) { return Scale()(x); }
