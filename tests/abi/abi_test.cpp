// Compares the structs of the ABI with DLPack's header, and tests CATENA_HAS.
#include <catena/abi.h>
#include <dlpack/dlpack.h>
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>

TEST_CASE("catena_dtype is DLDataType") {
    CHECK(sizeof(catena_dtype) == sizeof(DLDataType));
    CHECK(alignof(catena_dtype) == alignof(DLDataType));
    CHECK(offsetof(catena_dtype, code) == offsetof(DLDataType, code));
    CHECK(offsetof(catena_dtype, bits) == offsetof(DLDataType, bits));
    CHECK(offsetof(catena_dtype, lanes) == offsetof(DLDataType, lanes));
    CHECK(sizeof(catena_dtype::code) == sizeof(DLDataType::code));
    CHECK(sizeof(catena_dtype::bits) == sizeof(DLDataType::bits));
    CHECK(sizeof(catena_dtype::lanes) == sizeof(DLDataType::lanes));
    CHECK(static_cast<int>(CATENA_CODE_INT) == static_cast<int>(kDLInt));
    CHECK(static_cast<int>(CATENA_CODE_UINT) == static_cast<int>(kDLUInt));
    CHECK(static_cast<int>(CATENA_CODE_FLOAT) == static_cast<int>(kDLFloat));
    CHECK(static_cast<int>(CATENA_CODE_BFLOAT) == static_cast<int>(kDLBfloat));
    CHECK(static_cast<int>(CATENA_CODE_BOOL) == 6);  // kDLBool, which Debian 12's dlpack.h lacks
}

TEST_CASE("catena_dl_tensor is DLTensor") {
    CHECK(sizeof(catena_dl_tensor) == sizeof(DLTensor));
    CHECK(alignof(catena_dl_tensor) == alignof(DLTensor));
    CHECK(offsetof(catena_dl_tensor, data) == offsetof(DLTensor, data));
    CHECK(offsetof(catena_dl_tensor, device_type) ==
          offsetof(DLTensor, device) + offsetof(DLDevice, device_type));
    CHECK(offsetof(catena_dl_tensor, device_id) ==
          offsetof(DLTensor, device) + offsetof(DLDevice, device_id));
    CHECK(offsetof(catena_dl_tensor, ndim) == offsetof(DLTensor, ndim));
    CHECK(offsetof(catena_dl_tensor, dtype) == offsetof(DLTensor, dtype));
    CHECK(offsetof(catena_dl_tensor, shape) == offsetof(DLTensor, shape));
    CHECK(offsetof(catena_dl_tensor, strides) == offsetof(DLTensor, strides));
    CHECK(offsetof(catena_dl_tensor, byte_offset) == offsetof(DLTensor, byte_offset));
    CHECK(sizeof(catena_dl_tensor::device_type) == sizeof(DLDevice::device_type));
    CHECK(sizeof(catena_dl_tensor::ndim) == sizeof(DLTensor::ndim));
}

TEST_CASE("a catena_dl_tensor can be read as a DLTensor") {
    int64_t shape[] = {2, 3};
    int64_t strides[] = {3, 1};
    float data[6] = {};
    const catena_dl_tensor ours = {data,  kDLCPU,  1, 2, {CATENA_CODE_FLOAT, 32, 1},
                                   shape, strides, 8};
    DLTensor theirs;
    static_assert(sizeof(theirs) == sizeof(ours));
    std::memcpy(&theirs, &ours, sizeof(theirs));
    CHECK(theirs.data == data);
    CHECK(theirs.device.device_type == kDLCPU);
    CHECK(theirs.device.device_id == 1);
    CHECK(theirs.ndim == 2);
    CHECK(theirs.dtype.code == kDLFloat);
    CHECK(theirs.dtype.bits == 32);
    CHECK(theirs.dtype.lanes == 1);
    CHECK(theirs.shape[1] == 3);
    CHECK(theirs.strides[0] == 3);
    CHECK(theirs.byte_offset == 8);
}

TEST_CASE("CATENA_HAS: true if the whole field is within struct_size") {
    catena_plan plan = {};
    plan.struct_size = offsetof(catena_plan, saved);
    CHECK(CATENA_HAS(&plan, catena_plan, scratch_bytes));
    CHECK_FALSE(CATENA_HAS(&plan, catena_plan, saved));
    plan.struct_size += 4;
    CHECK_FALSE(CATENA_HAS(&plan, catena_plan, saved));
    plan.struct_size = sizeof(plan);
    CHECK(CATENA_HAS(&plan, catena_plan, saved));
}
