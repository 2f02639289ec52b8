// The nets of the SDK.
#pragma once

#include <catena/models/image_nets.hpp>
#include <catena/models/language_model.hpp>
#include <catena/models/word_vectors.hpp>
