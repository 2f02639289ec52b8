// ElementwiseFunction: differentiable functions that are compiled from formulas.
#include <catena/elementwise_function.hpp>

#include <catena/fail.hpp>
#include <catena/function_node.hpp>
#include <catena/functions.hpp>

#include <boost/algorithm/string.hpp>

#include <regex>

namespace catena {
namespace detail {

// An argument in a list of a formula: "T x" is {"T", "x"}.
struct Port {
    std::string type;
    std::string name;
};

namespace {

std::vector<Port> ports_of(const std::string& list) {
    std::vector<std::string> parts;
    boost::split(parts, list, boost::is_any_of(","));
    std::vector<Port> ports;
    for (std::string& one : parts) {
        boost::trim(one);
        const std::size_t space = one.find_last_of(" \t\r\n*");
        if (space == std::string::npos) continue;  // the kernel reports the error
        ports.push_back({boost::trim_copy(one.substr(0, space + 1)), one.substr(space + 1)});
    }
    return ports;
}

std::string list_of(const std::vector<Port>& ports) {
    std::string list;
    for (const Port& port : ports) list += (list.empty() ? "" : ", ") + port.type + " " + port.name;
    return list;
}

bool mentions(const std::string& code, const std::string& name) {
    return std::regex_search(code, std::regex("\\b" + name + "\\b"));
}

std::optional<std::size_t> find(const std::vector<Port>& ports, const std::string& name) {
    for (std::size_t i = 0; i < ports.size(); ++i)
        if (ports[i].name == name) return i;
    return std::nullopt;
}

FormulaKernel kernel_of(const ElementwiseFormula& f) {
    struct AnyKernel : FormulaKernel {
        explicit AnyKernel(const ElementwiseFormula& f)
            : FormulaKernel(f.inputs.c_str(), f.outputs.c_str(), f.operation.c_str(),
                            f.name.c_str(), f.options) {}
    };
    return AnyKernel(f);
}

// Removes inputs that the formula does not mention, unless only they determine a type parameter.
void drop_unread(ElementwiseFormula& f) {
    std::vector<Port> ports = ports_of(f.inputs);
    for (std::size_t i = ports.size(); i-- > 0;) {
        const Port port = ports[i];
        if (mentions(f.operation + " " + f.options.loop_prep + " " + f.options.after_loop,
                     port.name))
            continue;
        const bool other = std::ranges::any_of(
            ports, [&](const Port& p) { return p.name != port.name && p.type == port.type; });
        if (other || port.type.size() > 1)
            ports.erase(ports.begin() + static_cast<std::ptrdiff_t>(i));
    }
    f.inputs = list_of(ports);
}

}  // namespace

class FormulaChain {
public:
    FormulaChain(std::span<ElementwiseFormula> formulas)
        : inputs(ports_of(formulas[0].inputs)),
          outputs(ports_of(formulas[0].outputs)),
          kernel(kernel_of(formulas[0])) {
        if (formulas.size() < 2) return;
        ElementwiseFormula& g = formulas[1];
        if (g.name.empty()) g.name = formulas[0].name + "_grad";
        drop_unread(g);
        const auto refuse = [&](const std::string& what, const std::string& expected) {
            fail<InvalidError>("[{}] {}: expected {}", g.name, what, expected);
        };
        for (const Port& read : ports_of(g.inputs)) {
            const auto x = find(inputs, read.name);
            const auto y = find(outputs, read.name);
            const bool is_gradient =
                read.name.starts_with("g") && find(outputs, read.name.substr(1));
            if (is_gradient && (x || y))
                refuse(read.name,
                       fmt::format("a name for one thing, got the {} of {} and the "
                                   "gradient of its output {}",
                                   x ? "input" : "output", formulas[0].name, read.name.substr(1)));
            if (is_gradient) reads.push_back({Read::gradient, *find(outputs, read.name.substr(1))});
            else if (x) reads.push_back({Read::input, *x});
            else if (y) reads.push_back({Read::output, *y});
            else
                refuse(read.name, "an input or output of " + formulas[0].name +
                                      ", or g and the name of an output");
        }
        for (const Port& made : ports_of(g.outputs)) {
            const auto x =
                made.name.starts_with("g") ? find(inputs, made.name.substr(1)) : std::nullopt;
            if (!x) refuse(made.name, "g and the name of an input of " + formulas[0].name);
            makes.push_back(*x);
        }
        gradient = std::make_shared<FormulaChain>(formulas.subspan(1));
    }

    struct Read {
        enum Kind { input, output, gradient } kind;
        std::size_t index;
    };
    std::vector<Port> inputs, outputs;
    FormulaKernel kernel;
    std::vector<Read> reads;         // arguments of the gradient's kernel
    std::vector<std::size_t> makes;  // the input that each of its outputs is a gradient of
    std::shared_ptr<const FormulaChain> gradient;
};

namespace {

class FormulaNode : public FunctionNode {
public:
    explicit FormulaNode(std::shared_ptr<const FormulaChain> chain) : chain_(std::move(chain)) {}
    std::string label() const override { return chain_->kernel.name(); }

protected:
    using Read = FormulaChain::Read;

    Arrays forward(ArraySpan inputs) override {
        const std::vector<KernelArgument> arguments(inputs.begin(), inputs.end());
        Arrays y = chain_->kernel.call(arguments);
        for (const Array& x : inputs) shapes_.push_back(x.shape());
        y_shape_ = y[0].shape();
        for (const Array& output : y) y_dtypes_.push_back(output.dtype());
        retain_inputs(kept(Read::input));
        retain_outputs(kept(Read::output));
        return y;
    }

    Variables backward(Targets, VariableSpan grad_outputs) override {
        if (!chain_->gradient)
            fail<NotDifferentiableError>(
                "[{}] backward: expected a formula for its gradient, got none; ElementwiseFunction "
                "takes one for each order: value, gradient, gradient of the gradient",
                label());
        const Variables x = get_retained_inputs(), y = get_retained_outputs();
        Variables arguments;
        std::size_t next_x = 0, next_y = 0;
        for (const Read& read : chain_->reads) {
            if (read.kind == Read::input) arguments.push_back(x[next_x++]);
            else if (read.kind == Read::output) arguments.push_back(y[next_y++]);
            else if (grad_outputs[read.index]) arguments.push_back(grad_outputs[read.index]);
            else arguments.push_back(as_variable(Array::zeros(y_shape_, y_dtypes_[read.index])));
        }
        const Variables made =
            catena::apply<FormulaNode>(VariableSpan(arguments), chain_->gradient);
        Variables gx(shapes_.size());
        for (std::size_t k = 0; k < made.size(); ++k) {
            const Shape& shape = shapes_[chain_->makes[k]];
            // If the formula reads only smaller arrays, its result is smaller: broadcasts it first.
            const Variable whole = made[k].shape() == y_shape_
                                       ? made[k]
                                       : functions::broadcast_to(made[k], ints(y_shape_));
            gx[chain_->makes[k]] =
                whole.shape() == shape ? whole : functions::sum_to(whole, ints(shape));
        }
        return gx;
    }

private:
    // Returns the indexes to retain, in the order in which the gradient's kernel reads them.
    std::vector<std::size_t> kept(Read::Kind kind) const {
        std::vector<std::size_t> indexes;
        for (const Read& read : chain_->reads)
            if (read.kind == kind) indexes.push_back(read.index);
        return indexes;
    }
    static std::vector<std::int64_t> ints(const Shape& shape) {
        return {shape.begin(), shape.end()};
    }

    std::shared_ptr<const FormulaChain> chain_;
    std::vector<Shape> shapes_;
    Shape y_shape_;
    std::vector<Dtype> y_dtypes_;
};

}  // namespace

ElementwiseFunctionBase::ElementwiseFunctionBase(std::vector<ElementwiseFormula> formulas,
                                                 std::size_t n) {
    if (formulas.empty())
        throw InvalidError("[ElementwiseFunction] formulas: expected at least one, got none");
    chain_ = std::make_shared<FormulaChain>(std::span(formulas));
    if (kernel().outputs() != n)
        fail<InvalidError>("[{}] outputs: expected {}, as ElementwiseFunction<{}> says, got {}",
                           kernel().name(), n, n, kernel().outputs());
}

Variables ElementwiseFunctionBase::apply(VariableSpan inputs) const {
    return catena::apply<FormulaNode>(inputs, chain_);
}

const FormulaKernel& ElementwiseFunctionBase::kernel() const { return chain_->kernel; }

}  // namespace detail
}  // namespace catena
