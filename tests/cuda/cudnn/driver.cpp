// A replacement for the driver, libcuda.so.1, that accepts every kernel and runs none: cuDNN compiles
// its kernels of attention for a described device, and loads them before it accepts a plan.
#define ACCEPTED(name) \
    int name() { return 0; }

#pragma GCC visibility push(default)
extern "C" {

int cuLibraryLoadData(void** library) {
    static char any;
    *library = &any;
    return 0;
}
int cuLibraryGetKernel(void** kernel) { return cuLibraryLoadData(kernel); }
// cuDNN looks these up too.
ACCEPTED(cuCtxGetCurrent)
ACCEPTED(cuCtxGetLimit)
ACCEPTED(cuCtxPopCurrent)
ACCEPTED(cuCtxPushCurrent)
ACCEPTED(cuDeviceGet)
ACCEPTED(cuDeviceGetCount)
ACCEPTED(cuDriverGetVersion)
ACCEPTED(cuGetErrorName)
ACCEPTED(cuGetErrorString)
ACCEPTED(cuKernelGetAttribute)
ACCEPTED(cuKernelSetAttribute)
ACCEPTED(cuLaunchCooperativeKernel)
ACCEPTED(cuLaunchKernel)
ACCEPTED(cuLaunchKernelEx)
ACCEPTED(cuLibraryLoadFromFile)
ACCEPTED(cuLibraryUnload)
ACCEPTED(cuLinkAddData)
ACCEPTED(cuLinkComplete)
ACCEPTED(cuLinkCreate)
ACCEPTED(cuLinkDestroy)
ACCEPTED(cuOccupancyMaxPotentialClusterSize)
ACCEPTED(cuStreamGetCtx)
}
#pragma GCC visibility pop
