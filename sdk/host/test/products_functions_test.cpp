// Tests of F::batch_matmul, F::tensordot and F::einsum: values by plain sums, gradients, errors.
#include "nodes.hpp"

#include <map>

namespace {

// Sums products by the definition of einsum, with one letter for each axis and an explicit output.
Array plain_einsum(const std::string& inputs, const std::string& output, const Arrays& x) {
    std::map<char, std::int64_t> extents, index;
    std::vector<std::string> terms(1);
    for (const char c : inputs) c == ',' ? terms.emplace_back() : terms.back() += c;
    for (std::size_t i = 0; i < terms.size(); ++i)
        for (std::size_t d = 0; d < terms[i].size(); ++d) {
            std::int64_t& n = extents.try_emplace(terms[i][d], 1).first->second;
            n = n == 1 ? x[i].shape()[static_cast<int>(d)] : n;
        }
    std::string order = output;  // of loops
    for (const auto& [letter, n] : extents)
        if (order.find(letter) == std::string::npos) order += letter;
    std::vector<Doubles> data;
    for (const Array& a : x) data.push_back(values(a));
    std::vector<std::int64_t> shape;
    for (const char c : output) shape.push_back(extents[c]);
    Doubles y;
    const std::function<void(std::size_t)> loop = [&](std::size_t depth) {
        if (depth == output.size()) y.push_back(0);
        if (depth < order.size()) {
            for (std::int64_t i = 0; i < extents[order[depth]]; ++i) {
                index[order[depth]] = i;
                loop(depth + 1);
            }
            return;
        }
        double product = 1;
        for (std::size_t i = 0; i < terms.size(); ++i) {
            std::int64_t at = 0;
            for (std::size_t d = 0; d < terms[i].size(); ++d) {
                const std::int64_t n = x[i].shape()[static_cast<int>(d)];
                at = at * n + (n == 1 ? 0 : index[terms[i][d]]);
            }
            product *= data[i][static_cast<std::size_t>(at)];
        }
        y.back() += product;
    };
    loop(0);
    return Array::from(y, Shape(shape));
}

void check_close(const Array& x, const Array& y) {
    REQUIRE(x.shape() == y.shape());
    const Doubles a = values(x), b = values(y);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]));
}

// Calls einsum on arrays and on variables, and compares. plain: the subscripts for plain_einsum,
// if they differ.
void check_einsum(const std::string& subscripts, std::initializer_list<Shape> shapes,
                  std::string plain = "") {
    CAPTURE(subscripts);
    if (plain.empty()) plain = subscripts;
    const std::size_t arrow = plain.find("->");
    Arrays x;
    for (const Shape& shape : shapes) x.push_back(draw(shape));
    const Array expected = plain_einsum(plain.substr(0, arrow), plain.substr(arrow + 2), x);
    check_close(F::einsum(subscripts, x), expected);
    Variables v;
    for (const Array& a : x) v.emplace_back(a);
    check_close(F::einsum(subscripts, v).data(), expected);
}

void check_gradients(const std::function<Variable(const Variables&)>& f, const Arrays& x) {
    Variables v(x.begin(), x.end());
    const Arrays gy = {draw(f(v).shape())};
    Arrays ggx;
    for (const Array& a : x) ggx.push_back(draw(a.shape()));
    const auto list = [&](const Variables& inputs) { return Variables{f(inputs)}; };
    gradient_check::check_backward(list, x, gy);
    gradient_check::check_double_backward(list, x, gy, ggx);
}

Array arr_of(std::initializer_list<double> values) {
    return Array::from(values, {static_cast<std::int64_t>(values.size())});
}

template <class E, class F>
std::string message(const F& f) {
    try {
        f();
    } catch (const E& e) {
        return e.what();
    }
    return "nothing thrown";
}

}  // namespace

TEST_CASE("einsum of one operand") {
    check_einsum("ij->ij", {{2, 3}});
    check_einsum("ij->ji", {{2, 3}});
    check_einsum("ij->", {{2, 3}});
    check_einsum("ijk->j", {{2, 3, 4}});
    check_einsum("ijk->ki", {{2, 3, 4}});
    check_einsum("->", {{}});
    check_einsum("ii->i", {{3, 3}});
    check_einsum("ii->", {{3, 3}});
    check_einsum("iji->ji", {{2, 3, 2}});
    check_einsum("iii->i", {{3, 3, 3}});
    check_einsum("iijj->ij", {{2, 2, 3, 3}});
    check_einsum("ijij->ji", {{2, 3, 2, 3}});
    check_einsum("ii->i", {{1, 3}});
    check_einsum("ii->i", {{0, 0}});
    check_einsum("ij->j", {{0, 2}});
}

TEST_CASE("einsum of two operands") {
    for (const char* s :
         {"ij,jk->ik", "ij,jk->ki", "ji,jk->ik", "ji,kj->ik", "ij,kj->ki", "ji,kj->ki"})
        check_einsum(s, {{3, 3}, {3, 3}});
    check_einsum("ij,jk->ik", {{2, 3}, {3, 4}});
    check_einsum("ij,kj->ki", {{2, 3}, {4, 3}});
    check_einsum("i,i->", {{5}, {5}});
    check_einsum("i,j->ij", {{2}, {3}});
    check_einsum("i,j->ji", {{2}, {3}});
    check_einsum("i,j->", {{2}, {3}});
    check_einsum("i,ij->j", {{2}, {2, 3}});
    check_einsum("ij,j->i", {{2, 3}, {3}});
    check_einsum("ij,ij->i", {{2, 3}, {2, 3}});
    check_einsum("ij,ji->i", {{2, 3}, {3, 2}});
    check_einsum("ij,ij->i", {{2, 600}, {2, 600}});
    check_einsum("ij,ji->", {{2, 3}, {3, 2}});
    check_einsum("ij,ij->ij", {{2, 3}, {2, 3}});
    check_einsum("ij,ji->ij", {{2, 3}, {3, 2}});
    check_einsum("ij,jk->k", {{2, 3}, {3, 4}});
    check_einsum("ijk,k->", {{2, 3, 4}, {4}});
    check_einsum(",ij->ij", {{}, {2, 3}});
    check_einsum("bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}});
    check_einsum("ijb,jkb->kbi", {{3, 4, 2}, {4, 5, 2}});
    check_einsum("bthd,bshd->bhts", {{2, 3, 2, 4}, {2, 5, 2, 4}});
    check_einsum("bhts,bshd->bthd", {{2, 2, 3, 5}, {2, 5, 2, 4}});
    check_einsum("ijkl,klm->mij", {{2, 3, 4, 2}, {4, 2, 3}});
    check_einsum("ijkl,lkm->mij", {{2, 3, 4, 2}, {2, 4, 3}});
    check_einsum("abc,cad->dbc", {{2, 3, 4}, {4, 2, 5}});
    check_einsum("ii,ij->ij", {{2, 2}, {2, 3}});
    check_einsum("ij,jk->ik", {{2, 0}, {0, 4}});
    check_einsum("ij,jk->ik", {{0, 3}, {3, 4}});
    check_einsum("bij,bjk->bik", {{0, 3, 4}, {0, 4, 5}});
    check_einsum("aBc,cB->Ba", {{2, 3, 4}, {4, 3}});
}

TEST_CASE("einsum: axes of length 1 broadcast") {
    check_einsum("ij,jk->ik", {{2, 1}, {3, 4}});
    check_einsum("ij,jk->ik", {{1, 3}, {3, 1}});
    check_einsum("ij,jk->ijk", {{2, 1}, {3, 4}});
    check_einsum("bij,bjk->bik", {{1, 3, 4}, {2, 4, 5}});
    check_einsum("ij,jk->ik", {{2, 1}, {1, 4}});
    check_einsum("ij->ji", {{1, 1}});
    check_einsum("i,i->i", {{1}, {0}});
}

TEST_CASE("einsum: the implicit output, spaces and ellipses") {
    check_einsum("ij,jk", {{2, 3}, {3, 4}}, "ij,jk->ik");
    check_einsum("ba", {{2, 3}}, "ba->ab");
    check_einsum("bA", {{2, 3}}, "bA->Ab");
    check_einsum("ii", {{3, 3}}, "ii->");
    check_einsum("ji,i", {{2, 3}, {3}}, "ji,i->j");
    check_einsum(" i j , j k -> i k ", {{2, 3}, {3, 4}}, "ij,jk->ik");
    check_einsum("...ij,...jk->...ik", {{2, 3, 4}, {2, 4, 5}}, "xij,xjk->xik");
    check_einsum("...ij,...jk", {{2, 3, 4}, {2, 4, 5}}, "xij,xjk->xik");
    check_einsum("...ij,...jk->...ik", {{3, 4}, {2, 4, 5}}, "ij,xjk->xik");
    check_einsum("...ij,...jk->...ik", {{6, 1, 3, 4}, {2, 4, 5}}, "xyij,yjk->xyik");
    check_einsum("...,...", {{2, 3}, {3}}, "xy,y->xy");
    check_einsum("i...->...", {{2, 3}}, "ix->x");
    check_einsum("i...j->j...i", {{2, 3, 4, 5}}, "ixyj->jxyi");
    check_einsum("i...i", {{2, 3, 2}}, "ixi->x");
    check_einsum("ij->...ij", {{2, 3}}, "ij->ij");
    check_einsum("...->...", {{}}, "->");
    check_einsum("a...,...b->...ba", {{2, 3, 1}, {4, 5}}, "axy,yb->xyba");
}

TEST_CASE("einsum of several operands, in pairs") {
    check_einsum("ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}});
    check_einsum("i,ij,j->", {{2}, {2, 3}, {3}});
    check_einsum("bi,ijk,bk->bj", {{2, 3}, {3, 4, 5}, {2, 5}});
    check_einsum("ab,bc,cd,de->ea", {{2, 3}, {3, 2}, {2, 4}, {4, 3}});
    check_einsum("i,j,k->kij", {{2}, {3}, {4}});
    check_einsum("ij,ij,ij->", {{2, 3}, {2, 3}, {2, 3}});
    check_einsum("ij,ik,il->jkl", {{2, 3}, {2, 4}, {2, 5}});
    check_einsum(",,->", {{}, {}, {}});
    // 10,000 x 10,000 elements if the first two were multiplied first, 10 if the last two are.
    const Array x = Array::ones({10'000}, Dtype::float64);
    CHECK(F::einsum("i,j,j->i", {x, x, x}).to_vector<double>()[0] == 10'000);
}

TEST_CASE("einsum with separate operands") {
    const Array a = draw({2, 3}), b = draw({3, 4});
    check_close(F::einsum("ij,jk->ik", a, b), F::matmul(a, b));
    check_close(F::einsum("ij,jk->ik", Variable(a), Variable(b)).data(), F::matmul(a, b));
    check_close(F::einsum("ij->ji", a), F::transpose(a));
}

TEST_CASE("einsum: gradients of first and second order") {
    const auto check = [](const char* subscripts, std::initializer_list<Shape> shapes) {
        CAPTURE(subscripts);
        Arrays x;
        for (const Shape& shape : shapes) x.push_back(draw(shape));
        check_gradients([&](const Variables& v) { return F::einsum(subscripts, v); }, x);
    };
    check("ij,jk->ki", {{2, 3}, {3, 2}});
    check("iji->ji", {{2, 3, 2}});
    check("...ij,jk->...ik", {{2, 2, 3}, {3, 2}});
    check("bij,bkj->bik", {{1, 2, 3}, {2, 2, 3}});
    check("bi,bi->b", {{2, 3}, {2, 3}});
    check("i,ij,j->", {{2}, {2, 3}, {3}});
    check("ij->", {{2, 3}});
}

TEST_CASE("einsum of one operand is a new variable") {
    const Variable x(draw({2, 3}));
    const Variable y = F::einsum("ij->ij", {x});
    y.set_grad(Array::ones({2, 3}, Dtype::float64));
    y.backward();
    CHECK(values(x.grad()) == Doubles(6, 1.0));
}

TEST_CASE("einsum: dtypes do not depend on the length of sums") {
    const auto dot = [](const Array& a, const Array& b) { return F::einsum("bi,bi->b", a, b); };
    for (const std::int64_t n : {3, 512, 513, 2000}) {
        CAPTURE(n);
        const Array i = F::arange(2 * n).reshape({2, n});
        const Array mask = i > 0, f = i.astype(Dtype::float32);
        const auto check = [&](const Array& y, Dtype dtype) {
            CHECK(y.dtype() == dtype);
            CHECK(values(y)[0] == static_cast<double>(n * (n - 1) / 2));
        };
        check(dot(i, mask), Dtype::int64);
        check(dot(i.astype(Dtype::int32), mask), Dtype::int32);
        check(dot(mask, f), Dtype::float32);
        check(dot(i, mask.astype(Dtype::float64)), Dtype::float64);
        check(F::einsum("bi,bi->b", Variable(f), Variable(mask)).data(), Dtype::float32);
        const Array bytes = Array::full({1, n}, 255, Dtype::uint8);  // 255 * 255 is 1 modulo 256
        CHECK(values(dot(bytes, bytes))[0] == static_cast<double>(n % 256));
        CHECK(dot(bytes, bytes).dtype() == Dtype::uint8);
        CHECK_THROWS_WITH_AS((void)dot(f, f.astype(Dtype::float16)),
                             "[catena.einsum] operands[1]: expected float32 as operands[0], got float16",
                             DtypeError);
    }
}

TEST_CASE("einsum and tensordot of integers are exact") {
    const std::int64_t big = (std::int64_t{1} << 53) + 1;
    const Array a = Array::from<std::int64_t>({big, 1, 2, 3}, {2, 2});
    const Array b = Array::from<std::int64_t>({1, 0, 2, 1}, {2, 2});
    const std::vector<std::int64_t> expected = {big + 2, 1, 8, 3};
    CHECK(F::einsum("ij,jk->ik", a, b).to_vector<std::int64_t>() == expected);
    CHECK(F::tensordot(a, b, 1).to_vector<std::int64_t>() == expected);
    CHECK(values(F::einsum("ij->j", a > 2)) == Doubles{1, 1});
}

TEST_CASE("einsum adds products of half precision in float32") {
    for (const Dtype half : {Dtype::float16, Dtype::bfloat16}) {
        const Array x = arr_of({300, 300, 300}).astype(half);
        const Array y = arr_of({300, -300, 0.5}).astype(half);  // 90000 is beyond float16
        CHECK(values(F::einsum("bi,bi->b", x.reshape({1, 3}), y.reshape({1, 3}))) == Doubles{150});
        CHECK(values(F::einsum("i,i->", x, y)) == Doubles{150});
        const Array small = arr_of({0.5, 0.5, 0.5}).astype(half);
        CHECK(values(F::einsum("i,i,i->", x, y, small)) == Doubles{75});
        CHECK(F::einsum("i,i,i->i", x, y, small).dtype() == half);
    }
}

TEST_CASE("einsum refuses wrong subscripts") {
    const Array m = draw({2, 3});
    const auto error = [&](std::string_view subscripts, const Arrays& x) {
        return message<InvalidError>([&] { F::einsum(subscripts, x); });
    };
    CHECK(error("i1", {m}) ==
          "[catena.einsum] subscripts: expected letters, \",\", \"...\" and one "
          "\"->\", not '1', got \"i1\"");
    CHECK(error("i.j", {m}) ==
          "[catena.einsum] subscripts: expected letters, \",\", \"...\" and one "
          "\"->\", not '.', got \"i.j\"");
    CHECK(error("ij->i->j", {m}) ==
          "[catena.einsum] subscripts: expected letters, \",\", \"...\" and "
          "one \"->\", not '-', got \"ij->i->j\"");
    CHECK(error("ij->i,j", {m}) ==
          "[catena.einsum] subscripts: expected letters, \",\", \"...\" and "
          "one \"->\", not ',', got \"ij->i,j\"");
    CHECK(error("...i...", {m}) ==
          "[catena.einsum] subscripts: expected one \"...\" at most in a term, got \"...i...\"");
    CHECK(error("ij,jk", {m}) ==
          "[catena.einsum] subscripts: expected a term for each of 1 operands, "
          "separated by \",\", got \"ij,jk\"");
    CHECK(error("ij", {m, m}) ==
          "[catena.einsum] subscripts: expected a term for each of 2 operands, "
          "separated by \",\", got \"ij\"");
    CHECK(error("ij->ik", {m}) ==
          "[catena.einsum] subscripts: expected 'k' of the output in an input, got \"ij->ik\"");
    CHECK(error("ij->ii", {m}) ==
          "[catena.einsum] subscripts: expected 'i' once in the output, got \"ij->ii\"");
    CHECK(error("i...->i", {m}) ==
          "[catena.einsum] subscripts: expected \"...\" in the output, because "
          "operands have axes for it, got \"i...->i\"");
    CHECK(error("", {}) == "[catena.einsum] inputs: expected 1 or more, got 0");
    CHECK(error("ij,ij", {m, Array()}) ==
          "[catena.einsum] operands[1]: expected an array, got none");
}

TEST_CASE("einsum refuses operands that do not match") {
    const Array m = draw({2, 3});
    const auto error = [&](std::string_view subscripts, const Arrays& x) {
        return message<ShapeError>([&] { F::einsum(subscripts, x); });
    };
    CHECK(error("ij,ijk", {m, m}) ==
          "[catena.einsum] operands[1].ndim: expected 3 by \"ij,ijk\", got 2");
    CHECK(error("ijk...", {m}) ==
          "[catena.einsum] operands[0].ndim: expected at least 3 by \"ijk...\", got 2");
    CHECK(error("ij,jk", {m, m}) ==
          "[catena.einsum] operands[1].shape[0]: expected 3 or 1 for 'j', got 2 in (2, 3)");
    CHECK(error("ii", {m}) ==
          "[catena.einsum] operands[0].shape[1]: expected 2 or 1 for 'i', got 3 in (2, 3)");
    CHECK(error("...,...", {m, draw({2})}) ==
          "[catena.einsum] operands[1].shape[0]: expected 3 or 1 for \"...\", got 2 in (2,)");
}

TEST_CASE("tensordot") {
    const Array a = draw({2, 3, 4}), b = draw({3, 4, 5});
    check_close(F::tensordot(a, b), plain_einsum("ijk,jkl", "il", {a, b}));
    const Array v = draw({4});
    check_close(F::tensordot(a, v, 1), plain_einsum("ijk,k", "ij", {a, v}));
    check_close(F::tensordot(a, b, {1}, {0}), plain_einsum("ijk,jlm", "iklm", {a, b}));
    check_close(F::tensordot(a, b, {2, 1}, {1, 0}), plain_einsum("ijk,jkl", "il", {a, b}));
    check_close(F::tensordot(a, b, {-1, -2}, {-2, 0}), plain_einsum("ijk,jkl", "il", {a, b}));
    check_close(F::tensordot(a, b, 0), plain_einsum("ijk,lmn", "ijklmn", {a, b}));
    check_close(F::tensordot(a, a, 3), plain_einsum("ijk,ijk", "", {a, a}));
    CHECK(F::tensordot(draw({2, 0}), draw({0, 3}), 1).to_vector<double>() == Doubles(6, 0.0));
    check_gradients(
        [](const Variables& x) {
            return F::tensordot(x[0], x[1], {1, 0}, {1, 0});
        },
        {draw({2, 3, 2}), draw({2, 3})});
}

TEST_CASE("tensordot refuses axes that do not match") {
    const Array a = draw({2, 3}), b = draw({3, 4});
    CHECK(message<ShapeError>([&] { F::tensordot(a, b, 3); }) ==
          "[tensordot] axes: expected 0 to 2, for (2, 3) and (3, 4), got 3");
    CHECK(message<ShapeError>([&] { F::tensordot(a, b, -1); }) ==
          "[tensordot] axes: expected 0 to 2, for (2, 3) and (3, 4), got -1");
    CHECK(message<ShapeError>([&] { F::tensordot(a, b, 2); }) ==
          "[catena.tensordot] b.shape[0]: expected 2, as a.shape[0], got 3");
    CHECK(message<ShapeError>([&] {
              F::tensordot(a, b, {0, 1}, {0});
          }) == "[catena.tensordot] axes_b: expected 2 axes, as many as axes_a, got 1");
    CHECK(message<ShapeError>([&] { F::tensordot(a, b, {2}, {0}); }) ==
          "[catena.tensordot] axes_a: expected from -2 to 1, got 2");
    CHECK(message<InvalidError>([&] {
              F::tensordot(a, b, {0, -2}, {0, 1});
          }) == "[catena.tensordot] axes_a: expected each axis once, got -2 twice");
    CHECK(message<InvalidError>([&] { F::tensordot(a, Array(), 1); }) ==
          "[catena.tensordot] b: expected an array, got none");
}

TEST_CASE("batch_matmul") {
    const Array a = draw({2, 3, 4}), b = draw({2, 4, 5});
    check_close(F::batch_matmul(a, b), plain_einsum("bij,bjk", "bik", {a, b}));
    check_close(F::batch_matmul(b, a, true, true), plain_einsum("bji,bkj", "bik", {b, a}));
    const Array u = draw({2, 4}), v = draw({2, 4});
    const Array dots = plain_einsum("bi,bi", "b", {u, v});
    check_close(F::batch_matmul(u, v, true), F::reshape(dots, {2, 1, 1}));
    check_close(F::batch_matmul(u, v, false, true), plain_einsum("bi,bj", "bij", {u, v}));
    check_close(F::batch_matmul(a, u), F::reshape(plain_einsum("bij,bj", "bi", {a, u}), {2, 3, 1}));
    CHECK(F::batch_matmul(Variable(a), Variable(b)).shape() == Shape{2, 3, 5});
    CHECK(message<ShapeError>([&] {
              F::batch_matmul(a, draw({1, 4, 5}));
          }) == "[catena.batch_matmul] b.shape[0]: expected 2, got 1");
    CHECK(message<ShapeError>([&] { F::batch_matmul(draw({4}), b); }) ==
          "[catena.batch_matmul] a.ndim: expected 2 or 3, got 1");
    CHECK(message<InvalidError>([&] { F::batch_matmul(Array(), b); }) ==
          "[catena.batch_matmul] a: expected an array, got none");
}
