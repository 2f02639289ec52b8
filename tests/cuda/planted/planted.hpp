// The kernels with planted faults.
#pragma once

#include <cuda_runtime.h>

namespace planted {

// What the device's compiler sees; the host passes one without the padding before `factor`.
struct Padded {
    int n;
    double factor;
    float* out;
};

struct Kernels {
    void (*missing_barrier)(const float*, float*);
    void (*missing_warp_barrier)(const float*, float*);
    void (*missing_end)(const float*, float*);
    void (*wrong_stride)(const float*, float*, int);
    void (*every_other)(const float*, float*);
    void (*read_all)(const float*, float*);
    void (*write_even)(float*);
    void (*padded)(Padded);
    void (*accumulator)(const float*, float*);
    void (*float_for_double)(const double*, double*);
    void (*wrong_mask)(float*);
    void (*lane_gone)(float*);
    void (*blocks_race)(const float*, float*);
    void (*divergent_barrier)(float*);
    void (*misaligned)(const float*, float4*);
    void (*add_one)(float*);
    void (*dynamic_shared)(float*);
};
extern const Kernels kernels;

}  // namespace planted
