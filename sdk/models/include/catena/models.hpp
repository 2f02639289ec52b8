// The nets of the SDK.
#pragma once

#include <catena/models/alexnet_bn.hpp>
#include <catena/models/classifier.hpp>
#include <catena/models/cnn.hpp>
#include <catena/models/googlenet.hpp>
#include <catena/models/image_nets.hpp>
#include <catena/models/language_model.hpp>
#include <catena/models/mlp.hpp>
#include <catena/models/nin.hpp>
#include <catena/models/two_column_mlp.hpp>
#include <catena/models/word_vectors.hpp>
