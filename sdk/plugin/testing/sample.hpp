// Rows of dtypes, and numbers for them.
#pragma once

#include "catena/testing/sample.hpp"
#include "testing/functions.hpp"

namespace catena::testing::detail {

Array draw(const Example::Input& in, catena_dtype dtype, unsigned seed);
std::optional<catena_meta> meta_of(const Example::Input& in, catena_dtype dtype);
// Shapes and dtypes of the inputs in a row of dtypes.
Metas metas_in(const catena_function& f, const Example& e, const Row& row);
// All rows of dtypes of a function's forward kernels, the widest floats first. A view has no kernel.
std::vector<Row> rows_of(const World& world, const catena_function& f);
// Whether the function gives outputs of the row's dtypes for inputs of the row's, and of a size that
// a test can afford. If not, *why says what infer() gives.
bool gives_row(World& world, const catena_function& f, const Metas& x, const OwnedAttrs& attrs,
               const Row& row, std::string* why = nullptr);

}  // namespace catena::testing::detail
