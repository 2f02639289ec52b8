// All links that come with catena.
#pragma once

#include <catena/links/linear.hpp>
