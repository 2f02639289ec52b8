// All links that come with catena.
#pragma once

#include <catena/links/batch_normalization.hpp>
#include <catena/links/binary_hierarchical_softmax.hpp>
#include <catena/links/convolution_2d.hpp>
#include <catena/links/embed_id.hpp>
#include <catena/links/inception.hpp>
#include <catena/links/linear.hpp>
#include <catena/links/parameter.hpp>
#include <catena/links/prelu.hpp>
