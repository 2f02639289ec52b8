// The registry of what plugins provide: functions with their kernels, backends, extensions. Function entries
// are created once and never freed; the hot path reads them without a lock.
#pragma once

#include "device/device_state.hpp"

#include <catena/core/plugin_function.hpp>

#include <deque>
#include <optional>
#include <tuple>

namespace catena {

// A call's attributes: one value each, in schema order, checked once. Immutable; owns its strings and lists.
class BoundAttributes : public Pooled {
public:
    // Returns the defaults of all attributes; never freed.
    static const BoundAttributes* make_defaults(const catena_function& function);
    // Returns the given values (Attribute or catena_named_value), and the defaults of the others. Throws
    // InvalidError with the names of function and attribute.
    template <class Given>
    static Ref<const BoundAttributes> make(const FunctionEntry& function,
                                           std::span<const Given> given);
    // The same for a plugin's call. The thread keeps recent ones: making them takes as long as a kernel.
    static Ref<const BoundAttributes> recent(const FunctionEntry& function,
                                             std::span<const catena_named_value> given);

    const catena_value* values() const noexcept { return values_.data(); }

    void retain() const noexcept {
        if (!immortal_) references_.add();
    }
    void release() const noexcept {
        if (!immortal_ && references_.drop()) delete this;
    }

private:
    explicit BoundAttributes(const catena_function& function) : values_(function.n_attrs) {}
    void set(const catena_function& function, std::uint32_t index, catena_value value);
    void finish(const catena_function& function, std::uint64_t seen);

    // Copies of strings and lists that values point to.
    struct Owned : Pooled {
        SmallVector<std::int64_t, 8> ints;
        SmallVector<double, 4> floats;
        std::string text;
    };
    SmallVector<catena_value, 4> values_;
    SmallVector<std::unique_ptr<Owned>, 1> owned_;
    bool immortal_ = false;
    mutable RefCount references_{1};
};

// A kernel or an extension of a plugin.
template <class Table>
struct Offer {
    const Table* table;
    const PluginEntry* plugin;
};
using KernelEntry = Offer<catena_kernel>;

// Sorts by pin, priority and order of loading. pin: id of the preferred plugin, or "".
template <class Table>
void sort(std::vector<Offer<Table>>& offers, std::string_view pin) {
    std::ranges::stable_sort(offers, {}, [&](const Offer<Table>& offer) {
        const bool later = pin.empty() || offer.plugin->id != pin;
        return std::tuple(later, -std::int64_t{offer.table->priority}, offer.plugin->order);
    });
}

// A forward kernel, and the backward kernel of the same variant, or null.
struct Candidate {
    const catena_kernel* forward;
    const catena_kernel* paired;
};

// The kernels for one device and one choice of dtypes, best first. Never freed, because calls may use it.
struct Selection {
    std::uint64_t key;
    const Selection* before;  // the one that was made before this one for the function, or null
    std::vector<Candidate> forward;
    std::vector<const catena_kernel*> backward;  // those without a variant
    const PluginEntry* pin = nullptr;            // the pinned plugin, if its kernels are here
    std::size_t n_pinned = 0;                    // number of kernels of `pin` in backward
};

class FunctionEntry : public FunctionInfo {
public:
    FunctionEntry(const catena_function& descriptor, const PluginEntry& plugin);

    const PluginEntry& plugin;
    const BoundAttributes* defaults;  // null if an attribute is required

    // Returns the function that descriptor.grad_function names. Throws PluginError if no plugin has it, or if
    // its ports and attributes do not match.
    FunctionEntry& gradient();
    const std::vector<KernelEntry>& kernels() const noexcept { return kernels_; }  // under mutex()
    std::atomic<bool> has_kernels{false};
    std::atomic<bool> pinned{false};  // a plugin is preferred for its kernels
    // Returns the kernels for a selection_key().
    const Selection& select(std::uint64_t key, DeviceState& device) {
        const Selection* made = newest_.load(std::memory_order_acquire);
        while (made && made->key != key) made = made->before;
        return made ? *made : collect(key, device);
    }

    void forget_selections();  // after a change of kernels or pin

private:
    friend struct Registry;
    const Selection& collect(std::uint64_t key, DeviceState& device);

    std::atomic<const Selection*> newest_{nullptr};
    std::vector<KernelEntry> kernels_;
    std::atomic<FunctionEntry*> gradient_{nullptr};  // cached result of gradient()
};

// Key of a selection: device, determinism, and 4 bits of Dtype for each type_var.
constexpr std::uint64_t selection_key(int device, std::uint32_t call_flags,
                                      std::uint64_t dtypes) noexcept {
    return dtypes | (call_flags & CATENA_CALL_DETERMINISTIC ? std::uint64_t{1} << 16 : 0) |
           static_cast<std::uint64_t>(device) << 17;
}

// Unless documented otherwise, members may be used only by a thread that holds the mutex.
struct Registry {
    static Registry& get();

    // Registers all of a plugin or nothing. Throws PluginError with the reason.
    const PluginEntry& add(std::string id, std::filesystem::path file, const catena_plugin& table);
    void remove(const PluginEntry& plugin);  // after init() has failed

    // Both return null if there is no such function; find() loads the default plugins first.
    FunctionEntry* find(std::string_view name);
    FunctionEntry* loaded(std::string_view name);
    // Returns the function that adds gradients; null if no plugin has it.
    FunctionEntry* addition() const noexcept { return addition_.load(std::memory_order_acquire); }
    // Like find(), but throws a PluginError that lists the searched folders.
    FunctionEntry& require(std::string_view name);
    std::vector<BackendInfo> backends();  // of the plugins loaded so far
    // Returns the tables of an extension, NULL-terminated. backend null: those that belong to no device.
    const void* const* extensions(const BackendEntry* backend, const char* id);

    std::recursive_mutex& mutex() { return mutex_; }

    using Offers = std::vector<Offer<catena_extension>>;
    struct Extensions {
        Offers sorted;
        std::vector<const void*> tables;  // of sorted, NULL-terminated
    };
    void check(std::string_view id, const catena_plugin& table);
    using Versions = std::deque<Extensions>;
    void set_extensions(Versions& versions, std::string_view id, Offers offers);
    std::string_view pin_of(std::string_view name) const;
    DeviceState& open(BackendEntry& backend, int ordinal);

    std::recursive_mutex mutex_;
    std::vector<std::unique_ptr<PluginEntry>> plugins_;
    std::map<std::string, std::unique_ptr<FunctionEntry>, std::less<>> functions_;
    std::vector<std::shared_ptr<void>> gone_;  // of removed plugins: handles and devices use them
    std::map<std::string, std::vector<KernelEntry>, std::less<>> kernels_;
    std::vector<std::unique_ptr<BackendEntry>> backends_;
    // (backend name, id) -> versions of the list of tables. A plugin or pin adds a version; none is freed.
    std::map<std::pair<std::string, std::string>, Versions> extensions_;
    std::map<std::string, std::string, std::less<>> pins_;  // function or extension -> plugin
    std::vector<PinWish> asked_pins_;  // from CATENA_PIN; Diagnostics::report_pins() takes them
    std::atomic<std::uint32_t> epoch_{1};
    std::vector<DeviceState*> opened_;
    std::atomic<DeviceState*> default_device_{nullptr};
    std::atomic<FunctionEntry*> addition_{nullptr};
    std::optional<std::uint64_t> seed_;  // none: initial_seed()

private:
    Registry();
};

// Returns the index of a dtype in keys, or -1.
inline int dtype_index(catena_dtype abi) noexcept {
    Dtype dtype;
    return from_abi(abi, dtype) ? static_cast<int>(dtype) : -1;
}

// ---- devices behind handles

DeviceState& state_of(Device device);  // throws InvalidError for an empty handle
DeviceState& state_or_current(Device device);
// The first device with host memory, else the first device. Throws DeviceError if there is none.
DeviceState& default_device();

}  // namespace catena
