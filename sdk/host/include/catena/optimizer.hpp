// Optimizer: the base of all optimizers. An update rule is a plugin's function, or C++ on arrays.
#pragma once

#include <catena/forward_each.hpp>
#include <catena/link.hpp>

namespace catena {

// Settings for some parameters: see Optimizer::set_group(). Factors are finite, not negative.
struct ParameterGroup {
    double rate = 1;      // factor of the learning rate
    double decay = 1;     // factor of weight decay, decoupled and L2
    bool frozen = false;  // steps and hooks skip these parameters

    friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

// Elements of a parameter that an optimizer updates, if other processes update the others.
struct ParameterPart {
    std::string name;    // of the parameter
    Variable part;       // a view of the elements, with one axis; empty: none are this process's
    Variable whole;      // the parameter
    std::int64_t begin;  // the first element, counted in row-major order
};

// What an optimizer does beside its update rule: see distributed::MultiNodeOptimizer, which
// averages gradients over processes and lets each process update a part of the parameters.
class OptimizerExtension {
public:
    virtual ~OptimizerExtension() = default;
    // Called before gradients are used outside update(), or in a hook: makes them final.
    virtual void prepare_grads() {}
    // At the start of update(): makes the gradients final. If false, update() does nothing.
    virtual bool begin_update() { return true; }
    virtual void end_update() {}  // after the parameters were updated
    virtual void cleargrads() {}  // of parameters of which the optimizer has only parts
    // The sum over all processes that have other parts of the parameters: float64, shape ().
    virtual Array sum_over_parts(Array own) { return own; }
};

// An optimizer is a subclass that names its state and implements its update rule in one of two
// ways. On arrays, as in Chainer, for one parameter at a time:
//
//     class Momentum : public Optimizer {
//     public:
//         explicit Momentum(double rate = 0.01) : Optimizer({"v"}), lr(rate) {}
//         double lr;
//     private:
//         void update_one(Array& param, const Array& grad, std::span<Array> state) override {
//             state[0] = 0.9 * state[0] - lr * grad;
//             param += state[0];
//         }
//     };
//
// Or as a function of a plugin, which is faster because it updates all parameters in a few calls:
//
//     class MomentumSGD : public Optimizer {
//     public:
//         explicit MomentumSGD(double lr = 0.01) : Optimizer({"v"}), lr(lr) {}
//         double lr;
//     private:
//         PluginFunction step() override { return update_({lr}); }
//         BoundFunction update_{"catena.momentum_sgd_update", {"lr"}};
//     };
//
// The inputs of the function are the parameter (updated in place), its gradient and the state
// arrays in the order of their names (updated in place). In both cases state is saved, and moves
// with its parameter. It has the shape and dtype of the parameter, but is float32 for one in
// float16 or bfloat16, unless init_state() returns something else. The caller must ensure that
// parameters do not overlap in memory, and that only one thread uses the optimizer.
class Optimizer : public Visitable {
public:
    // Starts with these parameters: t is 0, and init_state() makes the state. Parameters listed
    // twice are trained once, under their first name. Throws InvalidError, and changes nothing, if
    // different parameters share a name or init_state() does not return one array for each name.
    // After setup() of a link, the first update() logs a warning if parameters have a gradient that
    // no link lists in visit(); in debug mode, each update() throws GraphError then.
    void setup(const Link& link) {
        setup(link.collect_parameters());
        checks_links_ = true;
    }
    void setup(std::vector<NamedParameter> parameters);

    // The same for parts of all parameters, for an extension. Throws UnsupportedError unless the
    // update rule is a plugin's function that treats each element alone.
    void setup_parts(std::vector<ParameterPart> parts);

    // Sets the settings of all parameters p with which(p). Biases and scales without decay:
    //
    //     optimizer.set_group([](const auto& p) { return p.variable.ndim() < 2; }, {.decay = 0});
    //
    // A later call replaces all settings of its parameters. setup() removes all settings, and files
    // do not contain them. Throws InvalidError for invalid factors, and if none is in the group.
    void set_group(const std::function<bool(const NamedParameter&)>& which, ParameterGroup group);

    // Adds a function that update() calls first, such as [](auto& o) { o.clip_grads(1); }. Hooks
    // are called in the order in which they were added, and stay after setup().
    void add_hook(std::function<void(const Optimizer&)> hook) { hooks_.push_back(std::move(hook)); }

    // Replaces the extension; null removes it. setup() keeps it.
    void set_extension(std::shared_ptr<OptimizerExtension> extension) {
        extension_ = std::move(extension);
    }
    bool has_extension() const noexcept { return extension_ != nullptr; }

    // Runs one step: calls the hooks, increases t, then updates every parameter with a gradient.
    // Gradients do not change. State follows a parameter moved to another device since setup().
    // Throws InvalidError, and changes nothing, before setup() and if the shape or dtype of a
    // parameter with state has changed. Throws UnsupportedError if a parameter has a rate or decay
    // of its own and the class does not read group(), if the class has no update rule (once a
    // parameter has a gradient), and in a recording (see Capture) that would repeat one step number
    // in each launch: if the function has an attribute "t" (see RecordedStep), or the rule is
    // update_one(). If update_one() throws, earlier parameters are updated, and t is unchanged.
    void update();
    std::int64_t t() const noexcept { return t_; }
    // A counter for the caller, saved with t. setup() resets it to 0.
    std::int64_t epoch() const noexcept { return epoch_; }
    void new_epoch() noexcept { ++epoch_; }

    // Sets lr, or alpha of Adam, for schedules. Throws UnsupportedError without one (AdaDelta).
    virtual void set_rate(double rate);

    void cleargrads() const;  // removes gradients; cheaper than zeros, same effect on update()
    void zero_grads() const;  // sets gradients to zeros

    // These use all gradients, except those of frozen parameters; missing ones count as zero.
    double compute_grads_norm() const;  // sqrt of the sum of squares
    // Scales the gradients so that their norm is at most maxnorm. Does not wait for a device that
    // has all of them. Throws InvalidError unless maxnorm >= 0.
    void clip_grads(double maxnorm) const;
    void scale_grads(double factor) const;  // gradient *= factor
    // gradient += decay * parameter, which is the gradient of L2 regularization. See also AdamW,
    // whose decay is decoupled. Throws InvalidError unless decay is finite and not negative.
    void weight_decay(double decay) const;
    // Adds other gradients, in the order of the parameters; an empty array adds nothing. Throws
    // ShapeError, and changes nothing, if numbers, shapes or dtypes differ.
    void accumulate_grads(std::span<const Array> gradients) const;

    // Saves t and epoch, and for each parameter t again and its state: "l1/W/m".
    void visit(Visitor& visitor) override;

protected:
    explicit Optimizer(std::vector<std::string> state_names = {})
        : state_names_(std::move(state_names)) {}
    // The update function with the attributes of step t(), called for each update(), once for each
    // group(). The default is an empty function, so that update_one() is called.
    virtual PluginFunction step();

    // The settings of the parameters that the current call of step() or update_one() is for. A
    // class that ignores them supports no rates and decays of groups.
    const ParameterGroup& group();

    // Updates a parameter and its state, in place or by assigning other arrays of the same shape
    // and dtype, whose elements are then copied. Called for each parameter that has a gradient,
    // with its device as the current one; t() is the number of this step, starting at 1. For a
    // parameter in float16 or bfloat16, param and grad are float32 and the result is rounded. The
    // default calls update_one_gpu() if the parameter is on a GPU (see cuda::is_gpu), else
    // update_one_cpu(); both throw UnsupportedError.
    virtual void update_one(Array& param, const Array& grad, std::span<Array> state);
    virtual void update_one_cpu(Array& param, const Array& grad, std::span<Array> state);
    virtual void update_one_gpu(Array& param, const Array& grad, std::span<Array> state);

    // A parameter's state at setup(): an array of any shape for each name, on its device. The
    // default likewise calls init_state_gpu() or init_state_cpu(), which return zeros of its shape.
    virtual std::vector<Array> init_state(const Array& param);
    virtual std::vector<Array> init_state_cpu(const Array& param);
    virtual std::vector<Array> init_state_gpu(const Array& param);

    // For generated classes: names of state, the last optional; the factor of Adam's step t.
    static std::vector<std::string> with_state(bool is_there, std::string name,
                                               std::vector<std::string> names);
    static double bias_corrected(double alpha, double beta1, double beta2, std::int64_t t);

private:
    friend class RecordedStep;
    struct Slot {
        NamedParameter parameter;
        Shape shape;  // at setup(); same for dtype
        Dtype dtype;  // for state like the parameter
        std::vector<Array> state;
        std::size_t group = 0;  // index in groups_
        Variable whole = {};    // and begin: of a part
        std::int64_t begin = 0;
    };
    struct NoStep;

    // For recordings of update(): until the next setup(), the attributes of the function are in
    // device memory. An update() can be recorded only after the same one ran without a recording.
    void prepare_recording();
    // Call before each launch: increases t and writes the current attributes of that step.
    void prepare_launch();
    // The memory that update() reads and writes. If the list changes, a recording is outdated.
    std::vector<const void*> identity() const;
    Array sum_of_squares() const;  // of all gradients: shape (), float64
    void scale_by(const Array& factor) const;
    std::vector<Array> zeros(const Array& param) const;
    [[noreturn]] void refuse_parts(std::string_view rule);
    static void require_as_at_setup(const Slot& slot);
    void require_same_each_time(const catena_function& function) const;
    void update_by(const PluginFunction& function);
    void require_group_is_read() const;
    bool has_grad(const Slot& slot) const;  // and is not frozen
    void update_each();
    void update_slot(Slot& slot);

    std::vector<std::string> state_names_;
    std::vector<Slot> slots_;
    std::vector<NamedParameter> absent_;  // of setup_parts(): those of other processes
    std::vector<ParameterGroup> groups_{1};
    // One for each group; empty: attributes are passed with each call.
    std::shared_ptr<std::vector<AttributeMemory>> memory_;
    std::vector<std::function<void(const Optimizer&)>> hooks_;
    std::shared_ptr<OptimizerExtension> extension_;
    std::size_t group_ = 0;       // the current one
    bool group_is_read_ = false;  // group() was called for it
    bool is_counted_ = false;     // update() is being recorded by a caller of prepare_launch()
    std::int64_t t_ = 0;
    std::int64_t epoch_ = 0;
    bool is_set_up_ = false;
    bool checks_links_ = false;    // for parameters that visit() does not list
    bool rule_on_arrays_ = false;  // step() returned an empty function
};

}  // namespace catena
