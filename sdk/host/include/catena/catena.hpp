// Includes all that a program needs, core and host SDK. Functions are in catena::functions:
//    #include <catena/catena.hpp>
//    namespace F = catena::functions;
#pragma once

#include <catena/array_file.hpp>
#include <catena/array_text.hpp>
#include <catena/checkpoint.hpp>
#include <catena/computational_graph.hpp>
#include <catena/core.hpp>
#include <catena/cuda.hpp>
#include <catena/curves.hpp>
#include <catena/device_threads.hpp>
#include <catena/diagnostics/kernels.hpp>
#include <catena/elementwise_function.hpp>
#include <catena/function.hpp>
#include <catena/function_forms.hpp>
#include <catena/function_node.hpp>
#include <catena/gradient_check.hpp>
#include <catena/interrupt.hpp>
#include <catena/links.hpp>
#include <catena/mixed_precision.hpp>
#include <catena/mnist.hpp>
#include <catena/moving_average.hpp>
#include <catena/optimizers.hpp>
#include <catena/plugin_lock.hpp>
#include <catena/prefetch.hpp>
#include <catena/profile.hpp>
#include <catena/progress.hpp>
#include <catena/recorded_step.hpp>
#include <catena/sampling.hpp>
#include <catena/schedules.hpp>
#include <catena/serializer.hpp>
#include <catena/summary.hpp>
#include <catena/text.hpp>
#include <catena/text_batches.hpp>
