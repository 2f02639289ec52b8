"""The names that the manual of Chainer 1.0.1 documents."""

NAMES = {
    "Variable": "data grad creator volatile __len__ backward set_creator unchain_backward",
    "Function": "inputs outputs parameter_names gradient_names __call__ forward forward_cpu forward_gpu "
                "backward backward_cpu backward_gpu gradients parameters to_cpu to_gpu unchain",
    "FunctionSet": "collect_parameters copy_parameters_from gradients parameters to_cpu to_gpu",
    "Optimizer": "t accumulate_grads clip_grads compute_grads_norm init_state init_state_cpu "
                 "init_state_gpu setup update update_one update_one_cpu update_one_gpu weight_decay "
                 "zero_grads",
    "cuda": "Context CumiscUser Device DeviceUser Event GPUArray IPCArrayHandle IPCEvent Stream copy "
            "copy_async cublas culinalg cumath cumisc curandom elementwise empty empty_like full "
            "full_like get_context get_cublas_handle get_device get_generator gpuarray init mem_alloc "
            "ones ones_like reduce seed shutdown to_cpu to_cpu_async to_gpu to_gpu_async use_device "
            "using_cumisc using_device zeros zeros_like",
    "functions": "BatchNormalization BinaryHierarchicalSoftmax Convolution2D EmbedID Inception Linear "
                 "PReLU Parameter accuracy average_pooling_2d concat copy dropout exp identity "
                 "leaky_relu local_response_normalization log lstm max_pooling_2d mean_squared_error "
                 "relu reshape sigmoid softmax softmax_cross_entropy sum tanh",
    "gradient_check": "assert_allclose numerical_grad",
    "optimizers": "AdaDelta AdaGrad Adam MomentumSGD RMSprop SGD",
}

_PYCUDA = "an object of PyCUDA or scikits.cuda"
# Names that catena does not have, and why.
ABSENT = {
    **{f"cuda.{name}": _PYCUDA for name in (
        "Context", "CumiscUser", "DeviceUser", "cublas", "culinalg", "cumath", "cumisc", "curandom",
        "get_context", "get_cublas_handle", "get_generator", "gpuarray", "mem_alloc", "using_cumisc")},
    **{f"cuda.{name}": "C++ only" for name in ("IPCArrayHandle", "IPCEvent")},
    "Variable.set_creator": "the graph is recorded by FunctionNode.apply()",
}
