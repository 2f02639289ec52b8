// Optimizer: what all update rules share; a rule is a function of a plugin, or C++ on arrays.
#pragma once

#include <catena/core/attribute_memory.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/link.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace catena {

// An optimizer is a subclass that names its state and gives its update rule, in one of two ways. On
// arrays, as in Chainer, for one parameter at a time:
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
// Or as a function of a plugin, which is faster: it updates all parameters in a few calls:
//
//     class MomentumSGD : public Optimizer {
//     public:
//         explicit MomentumSGD(double lr = 0.01) : Optimizer({"v"}), lr(lr) {}
//         double lr;
//     private:
//         PluginFunction step() override { return update_(lr); }
//         BoundFunction<double> update_{"catena.momentum_sgd_update", {"lr"}};
//     };
//
// The function's inputs are the parameter (updated in place), its gradient and the state arrays in
// the order of their names (updated in place). Either way state is saved, and moves with its
// parameter. It is like the parameter, but float32 for one in float16 or bfloat16, unless
// init_state() makes other. Parameters that are views of each other's memory, and calls from
// several threads, are the caller's responsibility.
class Optimizer : public Visitable {
public:
    // Starts afresh with these parameters: t is 0, state is what init_state() makes. Parameters
    // that are listed twice are learned once, under their first name. Throws InvalidError, and
    // changes nothing, if different parameters have the same name or init_state() makes not one
    // array for each name.
    void setup(const Link& link) { setup(link.collect_parameters()); }
    void setup(std::vector<NamedParameter> parameters);

    // One step: t + 1, then every parameter that has a gradient. Gradients stay as they are. State
    // follows a parameter that was moved to another device since setup(). Throws InvalidError, and
    // changes nothing, before setup() and if a parameter with state has another shape or dtype
    // since; UnsupportedError if the class has no update rule (only once a parameter has a gradient, as
    // the rule is asked for then), and where it is recorded (see
    // Capture) and the number of the step would be the same in each launch: its function has an
    // attribute "t" (see RecordedStep), or the rule is update_one(). What update_one() throws ends
    // the step: parameters before that one have been updated, t has not.
    void update();
    std::int64_t t() const noexcept { return t_; }
    // For the caller to count, and saved with t; setup() begins at 0.
    std::int64_t epoch() const noexcept { return epoch_; }
    void new_epoch() noexcept { ++epoch_; }

    // Sets the number that schedules change: lr, alpha of Adam. Throws UnsupportedError where there is
    // none, as in AdaDelta.
    virtual void set_rate(double rate);

    void cleargrads() const;  // gradients: none. Cheaper than zeros, and the same for update().
    void zero_grads() const;  // gradients: zeros

    // On all gradients together; those that are none count as zero.
    double compute_grads_norm() const;  // sqrt of the sum of squares
    // Scales them down to this norm, if theirs is larger. Where one device has all of them, it is not
    // waited for. InvalidError unless maxnorm >= 0.
    void clip_grads(double maxnorm) const;
    // gradient += decay * parameter. InvalidError unless decay is finite and not negative.
    void weight_decay(double decay) const;
    // Adds gradients from elsewhere, in the order of the parameters; none adds nothing. Throws
    // ShapeError, and changes nothing, if numbers, shapes or dtypes differ.
    void accumulate_grads(std::span<const Array> gradients) const;

    // t and epoch, and by parameter its t, which is the same, and its state: "l1/W/m".
    void visit(Visitor& visitor) override;

protected:
    explicit Optimizer(std::vector<std::string> state_names = {})
        : state_names_(std::move(state_names)) {}
    // The update function with the attributes of step t(). Called once for each update(). The one
    // here says that there is none, so that update_one() is called.
    virtual PluginFunction step();

    // Updates a parameter and its state, in place or by assigning other arrays of the same shape
    // and dtype, whose elements are then copied. Called for each parameter that has a gradient,
    // with its device as the current one; t() is the number of this step, from 1. For a parameter
    // in float16 or bfloat16 param and grad are float32, and the result is rounded. The one here
    // calls update_one_gpu() where the parameter is on a GPU, as cuda::is_gpu() knows them, else
    // update_one_cpu(); those throw UnsupportedError.
    virtual void update_one(Array& param, const Array& grad, std::span<Array> state);
    virtual void update_one_cpu(Array& param, const Array& grad, std::span<Array> state);
    virtual void update_one_gpu(Array& param, const Array& grad, std::span<Array> state);

    // The state of a parameter at setup(), an array of any shape for each name, on its device. The
    // one here calls init_state_cpu() or init_state_gpu(), by the same rule; they make zeros like the
    // parameter.
    virtual std::vector<Array> init_state(const Array& param);
    virtual std::vector<Array> init_state_cpu(const Array& param);
    virtual std::vector<Array> init_state_gpu(const Array& param);

private:
    friend class RecordedStep;
    struct Slot {
        NamedParameter parameter;
        Shape shape;  // at setup(), as the next one
        Dtype dtype;  // of state like the parameter
        std::vector<Array> state;
    };
    struct NoStep;

    // For recordings of update(): from now on, until setup(), the function's attributes lie in memory
    // of the device, and a recorded update() is one that an update() like it went before.
    void prepare_recording();
    // Before each launch: t + 1, and the attributes of that step, as the optimizer's numbers are now.
    void prepare_launch();
    // What update() reads and writes. If the list changes, a recording is out of date.
    std::vector<const void*> identity() const;
    Array sum_of_squares() const;  // of all gradients: (), float64
    std::vector<Array> zeros(const Array& param) const;
    static void require_as_at_setup(const Slot& slot);
    void require_same_each_time(const catena_function& function) const;
    void update_by(const PluginFunction& function);
    void update_each();
    void update_slot(Slot& slot);

    std::vector<std::string> state_names_;
    std::vector<Slot> slots_;
    std::shared_ptr<AttributeMemory> memory_;  // none: attributes go with the calls
    bool is_counted_ = false;  // a recording of update() is made by one who calls prepare_launch()
    std::int64_t t_ = 0;
    std::int64_t epoch_ = 0;
    bool is_set_up_ = false;
    bool rule_on_arrays_ = false;  // step() said that there is no function
};

}  // namespace catena
