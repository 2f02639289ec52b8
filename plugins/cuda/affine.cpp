// A product and a bias, by cuBLASLt: the bias is added where a product is stored. The numbers are of
// columns, as in blas.cpp, so that the bias is one for each row.
#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>
#include <climits>
#include <map>
#include <mutex>
#include <tuple>

#include "blas.hpp"
#include "device.hpp"
#include "host.hpp"
#include "stream.hpp"
#include "vendor.hpp"

namespace catena_cuda {
namespace {

// cuBLASLt's, which is behind cuBLAS. Descriptors are made for each call: they are a few words.
struct Lt {
    decltype(&cublasLtMatmulDescCreate) make_product = nullptr;
    decltype(&cublasLtMatmulDescDestroy) drop_product = nullptr;
    decltype(&cublasLtMatmulDescSetAttribute) set_product = nullptr;
    decltype(&cublasLtMatrixLayoutCreate) make_layout = nullptr;
    decltype(&cublasLtMatrixLayoutDestroy) drop_layout = nullptr;
    decltype(&cublasLtMatmulPreferenceCreate) make_preference = nullptr;
    decltype(&cublasLtMatmulPreferenceDestroy) drop_preference = nullptr;
    decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
    decltype(&cublasLtMatmulAlgoGetHeuristic) choose = nullptr;
    decltype(&cublasLtMatmul) run = nullptr;
    bool complete = false;

    explicit Lt(void* dl) {
        if (dl == nullptr) return;
        complete = find(dl, "cublasLtMatmulDescCreate", make_product) &&
                   find(dl, "cublasLtMatmulDescDestroy", drop_product) &&
                   find(dl, "cublasLtMatmulDescSetAttribute", set_product) &&
                   find(dl, "cublasLtMatrixLayoutCreate", make_layout) &&
                   find(dl, "cublasLtMatrixLayoutDestroy", drop_layout) &&
                   find(dl, "cublasLtMatmulPreferenceCreate", make_preference) &&
                   find(dl, "cublasLtMatmulPreferenceDestroy", drop_preference) &&
                   find(dl, "cublasLtMatmulPreferenceSetAttribute", set_preference) &&
                   find(dl, "cublasLtMatmulAlgoGetHeuristic", choose) &&
                   find(dl, "cublasLtMatmul", run);
    }
    static const Lt& get() {
        static const Lt lt(library("cublas")->dl);
        return lt;
    }

private:
    template <class F>
    static bool find(void* dl, const char* name, F*& function) {
        function = reinterpret_cast<F*>(dlsym(dl, name));
        return function != nullptr;
    }
};

// What a product is, as cuBLASLt is told; gone at the end of the call.
class Product {
public:
    Product(const Lt& lt, const catena_gemm& g, const void* bias) : lt_(lt) {
        const Type& type = *type_of(g.dtype);
        const bool tf32 = type.data == CUDA_R_32F && settings().tf32;
        const cublasOperation_t first = g.transpose_b != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
        const cublasOperation_t second = g.transpose_a != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
        const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        check(lt.make_product(&product, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : type.compute,
                              CUDA_R_32F));
        set(CUBLASLT_MATMUL_DESC_TRANSA, first);
        set(CUBLASLT_MATMUL_DESC_TRANSB, second);
        set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
        set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
        layout(b, type, g.transpose_b != 0 ? g.k : g.n, g.transpose_b != 0 ? g.n : g.k, g.ldb);
        layout(a, type, g.transpose_a != 0 ? g.m : g.k, g.transpose_a != 0 ? g.k : g.m, g.lda);
        layout(c, type, g.n, g.m, g.ldc);
    }
    ~Product() {
        for (const cublasLtMatrixLayout_t each : {a, b, c})
            if (each != nullptr) lt_.drop_layout(each);
        if (product != nullptr) lt_.drop_product(product);
    }
    Product(const Product&) = delete;
    Product& operator=(const Product&) = delete;

    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;  // of the first call that failed
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;

private:
    void check(cublasStatus_t s) {
        if (status == CUBLAS_STATUS_SUCCESS) status = s;
    }
    template <class V>
    void set(cublasLtMatmulDescAttributes_t name, const V& value) {
        if (status == CUBLAS_STATUS_SUCCESS)
            check(lt_.set_product(product, name, &value, sizeof value));
    }
    void layout(cublasLtMatrixLayout_t& made, const Type& type, int64_t rows, int64_t columns,
                int64_t ld) {
        if (status == CUBLAS_STATUS_SUCCESS)
            check(lt_.make_layout(&made, type.data, static_cast<uint64_t>(rows),
                                  static_cast<uint64_t>(columns), ld));
    }
    const Lt& lt_;
};

// What kernels ask for, or less. Memory of a recording may be aligned otherwise than that of the calls
// before it, but not below a pack: so both run the same.
constexpr uintptr_t pack = 16;
uint32_t alignment(const void* data) {
    const auto bits = reinterpret_cast<uintptr_t>(data);
    return static_cast<uint32_t>(std::min(pack, bits & (~bits + 1)));
}

// What an algorithm may count on; gone at the end of the call.
class Preference {
public:
    Preference(const Lt& lt, uint64_t workspace, const uint32_t (&align)[3]) : lt_(lt) {
        // Halves are summed up in float32 to the end.
        const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
        status = lt.make_preference(&made);
        set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
        set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, align[1]);
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, align[0]);
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, align[2]);
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, align[2]);
    }
    ~Preference() {
        if (made != nullptr) lt_.drop_preference(made);
    }
    Preference(const Preference&) = delete;
    Preference& operator=(const Preference&) = delete;

    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;  // of the first call that failed
    cublasLtMatmulPreference_t made = nullptr;

private:
    template <class V>
    void set(cublasLtMatmulPreferenceAttributes_t name, const V& value) {
        if (status == CUBLAS_STATUS_SUCCESS)
            status = lt_.set_preference(made, name, &value, sizeof value);
    }
    const Lt& lt_;
};

// What cuBLASLt would run, asked for once: it thinks for as long as some products take.
struct Choice {
    cublasLtMatmulAlgo_t algo;
    bool there;
};
using Key = std::tuple<int, uint8_t, uint8_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       uint32_t, uint32_t, uint32_t, uint32_t>;
class Choices {
public:
    static Choices& get() {
        static auto* const all = new Choices;
        return *all;
    }
    bool find(const Key& key, Choice* choice) {
        const std::lock_guard lock(mutex_);
        const auto found = known_.find(key);
        if (found != known_.end()) *choice = found->second;
        return found != known_.end();
    }
    void keep(const Key& key, const Choice& choice) {
        const std::lock_guard lock(mutex_);
        if (known_.size() >= most) known_.clear();
        known_.insert_or_assign(key, choice);
    }

private:
    static constexpr size_t most = 4096;  // shapes
    std::mutex mutex_;
    std::map<Key, Choice> known_;
};
Key key_of(int device, const catena_gemm& g, const void* bias) {
    const auto flags = static_cast<uint8_t>(g.transpose_a | g.transpose_b << 1 |
                                            (g.beta != 0 ? 4 : 0) | g.dtype.code << 3);
    return {device,
            flags,
            g.dtype.bits,
            g.m,
            g.n,
            g.k,
            g.lda,
            g.ldb,
            g.ldc,
            alignment(g.a),
            alignment(g.b),
            alignment(g.c),
            alignment(bias)};
}

catena_status choose(catena_ctx* ctx, const Lt& lt, void* handle, int device, const catena_gemm& g,
                     const Key& key, const Product& p, size_t workspace, Choice* choice) {
    if (Choices::get().find(key, choice)) return CATENA_OK;
    const uint32_t align[] = {alignment(g.a), alignment(g.b), alignment(g.c)};
    const Preference preference(lt, workspace, align);
    if (preference.status != CUBLAS_STATUS_SUCCESS)
        return fail_product(ctx, "cublasLtMatmulPreferenceSetAttribute", preference.status, device,
                            g);
    cublasLtMatmulHeuristicResult_t result = {};
    int n = 0;
    const cublasStatus_t status = lt.choose(static_cast<cublasLtHandle_t>(handle), p.product, p.b,
                                            p.a, p.c, p.c, preference.made, 1, &result, &n);
    choice->there =
        status == CUBLAS_STATUS_SUCCESS && n > 0 && result.state == CUBLAS_STATUS_SUCCESS;
    choice->algo = result.algo;
    // What failed in passing, for want of memory say, is asked again.
    if (status == CUBLAS_STATUS_SUCCESS || status == CUBLAS_STATUS_NOT_SUPPORTED)
        Choices::get().keep(key, *choice);
    return CATENA_OK;
}

int32_t supports(const catena_gemm* gemm) {
    const Type* const type = type_of(gemm->dtype);
    const int64_t largest = std::max({gemm->m, gemm->n, gemm->k, gemm->lda, gemm->ldb, gemm->ldc});
    return type != nullptr && type->data != CUDA_R_64F && largest <= INT_MAX && gemm->k > 0 &&
                   Lt::get().complete
               ? 1
               : 0;
}

catena_status multiply(catena_ctx* ctx, const catena_gemm& gemm, const void* bias) {
    if (const catena_status status = check(ctx, gemm); status != CATENA_OK) return status;
    if (supports(&gemm) == 0) return CATENA_E_UNSUPPORTED;
    if (gemm.m == 0 || gemm.n == 0) return CATENA_OK;
    int device = 0;
    void* handle = nullptr;
    if (const catena_status s = handle_for(ctx, gemm, &device, &handle); s != CATENA_OK) return s;
    const Lt& lt = Lt::get();
    Scope scope(ctx, "gemm", device);
    if (scope.status() != CATENA_OK) return scope.status();
    const Product product(lt, gemm, bias);
    if (product.status != CUBLAS_STATUS_SUCCESS)
        return fail_product(ctx, "cublasLtMatmulDescSetAttribute", product.status, device, gemm);
    const Workspace workspace = workspace_of(device, cuda(gemm.stream));
    Choice choice = {};
    const Key key = key_of(device, gemm, bias);
    if (const catena_status s =
            choose(ctx, lt, handle, device, gemm, key, product, workspace.bytes, &choice);
        s != CATENA_OK)
        return s;
    if (!choice.there) return CATENA_E_UNSUPPORTED;
    const auto alpha = static_cast<float>(gemm.alpha);
    const auto beta = static_cast<float>(gemm.beta);
    const cublasStatus_t status =
        lt.run(static_cast<cublasLtHandle_t>(handle), product.product, &alpha, gemm.b, product.b,
               gemm.a, product.a, &beta, gemm.c, product.c, gemm.c, product.c, &choice.algo,
               workspace.data, workspace.bytes, cuda(gemm.stream));
    if (status == CUBLAS_STATUS_SUCCESS) return scope.status();
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE)
        return fail_product(ctx, "cublasLtMatmul", status, device, gemm);
    choice.there = false;  // it was chosen without a word about the bias
    Choices::get().keep(key, choice);
    return CATENA_E_UNSUPPORTED;
}

catena_status run(catena_ctx* ctx, const catena_gemm* gemm, const void* bias) {
    return guarded(ctx, "gemm", [&] { return multiply(ctx, *gemm, bias); });
}

}  // namespace

const catena_affine affine_table = {
    .struct_size = sizeof(catena_affine),
    .reserved = 0,
    .name = "cublaslt",
    .supports = supports,
    .gemm = run,
};

}  // namespace catena_cuda
