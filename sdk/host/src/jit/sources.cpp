// Formulas as the extension takes them.
#include <catena/elementwise.hpp>
#include <catena/reduction.hpp>

#include <catena/abi/ext/kernels.h>
#include <catena/core/error.hpp>

namespace catena {
namespace {

const char* text_of(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
const char* text_of(const char* text) { return text && *text ? text : nullptr; }

std::vector<const char*> list_of(const std::vector<std::string>& options) {
    std::vector<const char*> list;
    for (const std::string& option : options) list.push_back(option.c_str());
    list.push_back(nullptr);
    return list;
}

}  // namespace

namespace detail {

ElementwiseSource::ElementwiseSource(const char* inputs, const char* outputs, const char* operation,
                                     const char* name, const ElementwiseOptions& options)
    : options_(list_of(options.options)), formula_(new catena_formula{}) {
    formula_->struct_size = sizeof(catena_formula);
    formula_->kind = CATENA_FORMULA_ELEMENTWISE;
    formula_->name = name;
    formula_->inputs = inputs;
    formula_->outputs = outputs;
    formula_->operation = operation;
    formula_->preamble = text_of(options.preamble);
    formula_->loop_prep = text_of(options.loop_prep);
    formula_->after_loop = text_of(options.after_loop);
    formula_->options = options_.data();
    if (options.keep) formula_->flags |= CATENA_FORMULA_KEEP_SOURCE;
}

ElementwiseSource::~ElementwiseSource() { delete formula_; }

ReductionSource::ReductionSource(const char* inputs, const char* outputs, const char* map,
                                 const char* reduce, const char* finish, const char* identity,
                                 const char* name, const ReductionOptions& options)
    : options_(list_of(options.options)), formula_(new catena_formula{}) {
    formula_->struct_size = sizeof(catena_formula);
    formula_->kind = CATENA_FORMULA_REDUCTION;
    formula_->name = name;
    formula_->inputs = inputs;
    formula_->outputs = outputs;
    formula_->operation = map;
    formula_->reduce = reduce;
    formula_->finish = text_of(finish);
    formula_->identity = text_of(identity);
    formula_->reduce_type = text_of(options.reduce_type);
    formula_->preamble = text_of(options.preamble);
    formula_->options = options_.data();
    if (options.keep) formula_->flags |= CATENA_FORMULA_KEEP_SOURCE;
}

ReductionSource::~ReductionSource() { delete formula_; }

}  // namespace detail

ReductionKernel<1> reduce(const char* arguments, const char* map, const char* reduce,
                          const char* neutral, const char* name, Dtype dtype_out,
                          const ReductionOptions& options) {
    const std::string output = std::string(catena::name(dtype_out)) + " result";
    return reduction(arguments, output.c_str(), map, reduce, "", neutral, name, options);
}

}  // namespace catena
