// The nets of the SDK.
#pragma once

#include <catena/models/byte_pair_encoding.hpp>
#include <catena/models/gpt.hpp>
#include <catena/models/image_nets.hpp>
#include <catena/models/language_model.hpp>
#include <catena/models/tokenizer.hpp>
#include <catena/models/word_vectors.hpp>
