// Wraps a cuDNN backend descriptor: set attributes, finalize it, then read attributes or use it.
#pragma once

#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "library.hpp"

namespace catena_cudnn {

// Returns cuDNN's attribute type for a C++ type.
constexpr auto type_of(bool) { return CUDNN_TYPE_BOOLEAN; }
constexpr auto type_of(std::int64_t) { return CUDNN_TYPE_INT64; }
constexpr auto type_of(float) { return CUDNN_TYPE_FLOAT; }
constexpr auto type_of(double) { return CUDNN_TYPE_DOUBLE; }
constexpr auto type_of(void*) { return CUDNN_TYPE_VOID_PTR; }
constexpr auto type_of(cudnnHandle_t) { return CUDNN_TYPE_HANDLE; }
constexpr auto type_of(cudnnDataType_t) { return CUDNN_TYPE_DATA_TYPE; }
constexpr auto type_of(cudnnConvolutionMode_t) { return CUDNN_TYPE_CONVOLUTION_MODE; }
constexpr auto type_of(cudnnPointwiseMode_t) { return CUDNN_TYPE_POINTWISE_MODE; }
constexpr auto type_of(cudnnReduceTensorOp_t) { return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE; }
constexpr auto type_of(cudnnBackendHeurMode_t) { return CUDNN_TYPE_HEUR_MODE; }
constexpr auto type_of(cudnnBackendNumericalNote_t) { return CUDNN_TYPE_NUMERICAL_NOTE; }

// Owns a descriptor. A descriptor does not own those it refers to; they must stay alive.
class Descriptor {
public:
    using Name = cudnnBackendAttributeName_t;

    Descriptor(const Library& cudnn, cudnnBackendDescriptorType_t type)
        : cudnn_(&cudnn), type_(type) {
        check(cudnn, "cudnnBackendCreateDescriptor", cudnn.create(type, &made_));
    }
    ~Descriptor() {
        if (made_ != nullptr) static_cast<void>(cudnn_->destroy(made_));
    }
    Descriptor(Descriptor&& other) noexcept
        : cudnn_(other.cudnn_), type_(other.type_), made_(std::exchange(other.made_, nullptr)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(cudnn_, other.cudnn_);
        std::swap(type_, other.type_);
        std::swap(made_, other.made_);
        return *this;
    }

    template <class T>
    void set(Name name, std::span<const T> values) {
        set(name, type_of(T()), values.size(), values.data());
    }
    template <class T>
    void set(Name name, std::initializer_list<T> values) {
        set(name, std::span<const T>(values.begin(), values.size()));
    }
    template <class T>
    void set(Name name, T value) {
        set(name, std::span<const T>(&value, 1));
    }
    void set(Name name, const Descriptor& other) {
        set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.made_);
    }
    void set(Name name, const std::vector<Descriptor>& others) {
        std::vector<cudnnBackendDescriptor_t> all;
        for (const Descriptor& d : others) all.push_back(d.made_);
        set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, all.size(), all.data());
    }
    void finalize() { check(*cudnn_, "cudnnBackendFinalize", try_finalize()); }
    cudnnStatus_t try_finalize() { return cudnn_->finalize(made_); }

    // Returns one value, or at most `room` values.
    template <class T>
    T get(Name name) const {
        T value = {};
        get(name, type_of(T()), 1, &value);
        return value;
    }
    template <class T>
    std::vector<T> get(Name name, std::size_t room) const {
        std::vector<T> values(room);
        values.resize(get(name, type_of(T()), room, values.data()));
        return values;
    }
    // Returns descriptors. cuDNN fills in descriptors that the caller has created.
    Descriptor get_descriptor(Name name, cudnnBackendDescriptorType_t type) const {
        Descriptor one(*cudnn_, type);
        get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one.made_);
        return one;
    }
    std::vector<Descriptor> get_descriptors(Name name, cudnnBackendDescriptorType_t type) const {
        const std::size_t room = get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
        std::vector<Descriptor> made;
        std::vector<cudnnBackendDescriptor_t> all;
        for (std::size_t i = 0; i < room; ++i)
            all.push_back(made.emplace_back(*cudnn_, type).made_);
        const std::size_t n =
            room == 0 ? 0 : get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, room, all.data());
        while (made.size() > n) made.pop_back();
        return made;
    }

    cudnnBackendDescriptorType_t type() const { return type_; }
    cudnnBackendDescriptor_t raw() const { return made_; }

private:
    void set(Name name, cudnnBackendAttributeType_t type, std::size_t n, const void* values) {
        check(*cudnn_, "cudnnBackendSetAttribute",
              cudnn_->set(made_, name, type, static_cast<std::int64_t>(n), values));
    }
    std::size_t get(Name name, cudnnBackendAttributeType_t type, std::size_t room,
                    void* values) const {
        std::int64_t n = 0;
        check(*cudnn_, "cudnnBackendGetAttribute",
              cudnn_->get(made_, name, type, static_cast<std::int64_t>(room), &n, values));
        return static_cast<std::size_t>(n);
    }

    const Library* cudnn_;
    cudnnBackendDescriptorType_t type_;
    cudnnBackendDescriptor_t made_ = nullptr;
};

}  // namespace catena_cudnn
