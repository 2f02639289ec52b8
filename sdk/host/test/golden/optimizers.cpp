// Rows for optimizers.py.
#include "golden.hpp"

namespace {

struct One : catena::Link {
    explicit One(const catena::Array& value) : p(value.copy()) {}
    void visit(catena::Visitor& v) override { v("p", p); }
    catena::Parameter p;
};

}  // namespace

const golden::Rows optimizer_rows = {
    {"lamb",
     [](const auto& x, const auto& attrs) {
         const One one(x[0].data());
         catena::optimizers::Lamb lamb(attrs.at("lr"), attrs.at("decay"));
         lamb.setup(one);
         for (std::size_t t = 1; t < x.size(); ++t) {
             one.p.set_grad(x[t].data());
             lamb.update();
         }
         return golden::Variables{catena::as_variable(one.p.data())};
     }},
};
