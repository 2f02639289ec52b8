// All links that come with catena.
#pragma once

#include <catena/links/convolution_2d.hpp>
#include <catena/links/linear.hpp>
