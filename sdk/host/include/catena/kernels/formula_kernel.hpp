// The common parts of elementwise kernels and reductions from formulas: how they are called.
#pragma once

#include <catena/extension_call.hpp>

#include <filesystem>

struct catena_kernels;
struct catena_formula_kernel;
struct catena_formula;

namespace catena {

struct ElementwiseOptions {
    std::string preamble = {};              // before the kernel: includes, types, functions
    std::string loop_prep = {};             // before the loop over a thread's elements
    std::string after_loop = {};            // after this loop
    std::vector<std::string> options = {};  // for the compiler
    bool keep = false;                      // keep the source in the cache folder: NAME-HASH.source
};

struct ReductionOptions {
    std::string reduce_type = {};  // type of a and b, at most 64 bytes; default: the first output's
    std::string preamble = {};     // before the kernel: includes, types, functions
    std::vector<std::string> options = {};  // for the compiler
    bool keep = false;                      // keep the source in the cache folder: NAME-HASH.source
};

// The index range of a kernel, needed if all its arrays are raw: k(x, n, over({n})).
struct over {
    explicit over(const Shape& extents) : shape(extents) {}
    Shape shape;
};

// The axes of a reduction: l2norm(x, along(1)), l2norm(x, along({0, 2}, /*keepdims=*/true)).
struct along {
    explicit along(int axis, bool keep = false) : axes{axis}, keepdims(keep) {}
    explicit along(std::initializer_list<int> several, bool keep = false)
        : axes(several), keepdims(keep) {}
    explicit along(std::vector<int> several, bool keep = false)
        : axes(std::move(several)), keepdims(keep) {}
    std::vector<int> axes;  // negative: counted from the last
    bool keepdims;          // reduced axes stay, with extent 1
};

// A call's argument: an array, a number, over() or along(). Non-owning, valid for the call only.
class KernelArgument {
public:
    KernelArgument(const Array& array) : array_(&array) {}
    template <class N>
        requires(std::is_arithmetic_v<N>)
    KernelArgument(N number) {
        if constexpr (std::is_floating_point_v<N>) {
            dtype_ = std::is_same_v<N, float> ? Dtype::float32 : Dtype::float64;
            float_ = static_cast<double>(number);
        } else {
            dtype_ = std::is_same_v<N, bool> ? Dtype::bool8
                     : sizeof(N) > 4         ? Dtype::int64
                                             : Dtype::int32;
            int_ = static_cast<std::int64_t>(number);
        }
    }
    KernelArgument(const over& what) : over_(&what) {}
    KernelArgument(const along& what) : along_(&what) {}

private:
    friend class FormulaKernel;
    const Array* array_ = nullptr;
    const over* over_ = nullptr;
    const along* along_ = nullptr;
    Dtype dtype_ = Dtype::float64;
    double float_ = 0;
    std::int64_t int_ = 0;
};

// A handle that is cheap to copy; calls are thread-safe. The kernel itself is never freed.
class FormulaKernel {
public:
    // Returns all outputs, including arrays passed for them. Throws InvalidError, DtypeError,
    // ShapeError or DeviceError for arguments that do not fit, InvalidError with the compiler's
    // message if the formula does not compile, UnsupportedError if the device has no compiler.
    std::vector<Array> call(std::span<const KernelArgument> arguments) const;

    std::size_t inputs() const noexcept { return n_x_; }
    std::size_t outputs() const noexcept { return n_y_; }
    const std::string& name() const noexcept { return name_.text(); }

protected:
    // The arguments of elementwise() and reduction(). Throw PluginError if no plugin compiles
    // formulas, InvalidError if the formula is wrong.
    FormulaKernel(const char* inputs, const char* outputs, const char* operation, const char* name,
                  const ElementwiseOptions& options);
    FormulaKernel(const char* inputs, const char* outputs, const char* map, const char* reduce,
                  const char* finish, const char* identity, const char* name,
                  const ReductionOptions& options);
    // Throws InvalidError if there are not n outputs.
    void expect_outputs(std::size_t n, const char* said) const;
    // y must have room for all outputs.
    void run(std::span<const KernelArgument> arguments, Array* y) const;

private:
    void create(catena_formula& formula, const std::vector<std::string>& options, bool keep);

    const catena_kernels* table_;
    const catena_formula_kernel* kernel_;
    CallName name_;
    std::size_t n_x_ = 0;
    std::size_t n_y_ = 0;
    std::uint32_t writes_ = 0;  // bit i: input i is written
};

// Counters over all kernels of the process.
struct KernelStats {
    std::uint64_t compiled = 0;  // by a compiler
    std::uint64_t loaded = 0;    // found in the cache on disk, or shipped
    std::uint64_t hits = 0;      // calls whose kernel was in memory
    std::uint64_t evicted = 0;   // files deleted because the cache folder was full
};
KernelStats kernel_stats();

// Sets a folder of compiled kernels shipped with the program. They are used before any kernel is
// compiled, also without a compiler. The folder is only read. A run of the program with
// CATENA_KERNEL_EXPORT=FOLDER and CATENA_CPU_MARCH=x86-64-v3, or another level, writes it. Call it
// before the first call of a kernel. Throws InvalidError if the folder does not exist, or if users
// other than its owner, who must be root or the user, can write to it; PluginError as above.
void use_compiled_kernels(const std::filesystem::path& folder);

}  // namespace catena
