// Includes everything that a program needs: core and host SDK. Functions are in catena::functions:
//    #include <catena/catena.hpp>
//    namespace F = catena::functions;
#pragma once

#include <catena/array_file.hpp>
#include <catena/computational_graph.hpp>
#include <catena/copy.hpp>
#include <catena/core.hpp>
#include <catena/cuda.hpp>
#include <catena/curves.hpp>
#include <catena/data_error.hpp>
#include <catena/device_threads.hpp>
#include <catena/elementwise.hpp>
#include <catena/elementwise_function.hpp>
#include <catena/evaluator.hpp>
#include <catena/function.hpp>
#include <catena/function_forms.hpp>
#include <catena/function_node.hpp>
#include <catena/function_set.hpp>
#include <catena/functions.hpp>
#include <catena/gradient_check.hpp>
#include <catena/idx.hpp>
#include <catena/initializers.hpp>
#include <catena/interrupt.hpp>
#include <catena/link.hpp>
#include <catena/links.hpp>
#include <catena/lists.hpp>
#include <catena/minibatches.hpp>
#include <catena/mnist.hpp>
#include <catena/operators.hpp>
#include <catena/optimizer.hpp>
#include <catena/optimizers.hpp>
#include <catena/pair.hpp>
#include <catena/prefetch.hpp>
#include <catena/profile.hpp>
#include <catena/progress.hpp>
#include <catena/random.hpp>
#include <catena/recorded_step.hpp>
#include <catena/reduction.hpp>
#include <catena/schedules.hpp>
#include <catena/serializer.hpp>
#include <catena/split_axis.hpp>
#include <catena/summary.hpp>
#include <catena/text.hpp>
#include <catena/text_batches.hpp>
#include <catena/word_tree.hpp>
#include <catena/write_file.hpp>
