// Differentiable operations. Each is linear, so its gradient is the adjoint operation.
#include <catena/cuda/device.hpp>
#include <catena/distributed/functions.hpp>
#include <catena/fail.hpp>
#include <catena/function_forms.hpp>
#include <catena/function_node.hpp>
#include <catena/functions.hpp>
#include <catena/share.hpp>

#include <numeric>

namespace catena::distributed {
namespace {

// The description of an array, sent before its elements.
struct Form {
    Shape shape;
    Dtype dtype;
    Device device;

    Form(const Variable& x) : shape(x.shape()), dtype(x.dtype()), device(x.device()) {}  // NOLINT
    Form(const Shape& s, Dtype t, Device d) : shape(s), dtype(t), device(d) {}
    Array empty() const { return Array::empty(shape, dtype, device); }
    Form with_rows(std::int64_t rows) const {
        Form result = *this;
        result.shape[0] = rows;
        return result;
    }
    // Counts of elements for counts of rows.
    Rows elements(const Rows& rows) const {
        std::int64_t row = 1;
        for (int i = 1; i < shape.ndim(); ++i) row *= shape[i];
        Rows result = rows;
        for (std::int64_t& each : result) each *= row;
        return result;
    }
};

std::int64_t total(const Rows& rows) {
    return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

Array delegate() { return Array::zeros({}, Dtype::float32, cuda::host()); }

// A linear operation, perhaps without input. The adjoint is that of the gradients.
class Operation final : public FunctionNode {
public:
    using Forward = std::function<Array(const Array& x)>;
    using Adjoint = std::function<Variable(const Variable& gy)>;

    Operation(const char* name, Forward forward, Adjoint adjoint)
        : name_(name), forward_(std::move(forward)), adjoint_(std::move(adjoint)) {}
    std::string label() const override { return name_; }

private:
    Arrays forward(ArraySpan x) override { return {forward_(x.empty() ? Array() : x[0])}; }
    Variables backward(Targets targets, VariableSpan gy) override {
        // A gradient that is constant here may not be constant on other ranks. If there are
        // gradients of second order, all ranks must compute them.
        const Variable g = gy[0].requires_grad() ? gy[0] : Variable(gy[0].data());
        Variable gx = adjoint_(g);
        if (targets.empty()) return {};
        return {gx};
    }

    const char* name_;
    Forward forward_;
    Adjoint adjoint_;
};

Variable call(const char* name, const Variable& x, Operation::Forward forward,
              Operation::Adjoint adjoint) {
    const auto node = std::make_shared<Operation>(name, std::move(forward), std::move(adjoint));
    return node->apply(x ? Variables{x} : Variables{})[0];
}

void require(const Variable& x, const char* name) {
    if (!x) fail<InvalidError>("[{}] x: expected a variable, got an empty handle", name);
}

void require_linear(Reduction reduction, const char* name) {
    if (reduction != Reduction::sum && reduction != Reduction::mean)
        fail<InvalidError>("[{}] reduction: expected sum or mean, got another one", name);
}

void require_root(const Communicator& comm, int rank, const char* name, const char* what = "root") {
    if (rank < 0 || rank >= comm.size())
        fail<InvalidError>("[{}] {}: expected a rank below {}, got {}", name, what, comm.size(),
                           rank);
}

// Throws unless the first axis of x can be divided.
void require_rows(const Communicator& comm, const Variable& x, const Rows& rows, bool divides,
                  const char* name) {
    require(x, name);
    if (x.ndim() < 1) fail<ShapeError>("[{}] x: expected at least one axis, got ()", name);
    const std::int64_t n = x.shape()[0];
    if (!rows.empty() && std::ssize(rows) != comm.size())
        fail<ShapeError>("[{}] rows: expected {} numbers, one for each rank, got {}", name,
                         comm.size(), rows.size());
    for (const std::int64_t each : rows)
        if (each < 0) fail<ShapeError>("[{}] rows: expected numbers >= 0, got {}", name, each);
    if (divides && rows.empty() && n % comm.size() != 0)
        fail<ShapeError>("[{}] x: expected a multiple of {} rows, got shape {}", name, comm.size(),
                         to_string(x.shape()));
    const std::int64_t expected = divides        ? total(rows)
                                  : rows.empty() ? n
                                                 : rows[static_cast<std::size_t>(comm.rank())];
    if (!rows.empty() && n != expected)
        fail<ShapeError>("[{}] x: expected {} rows as in the counts, got shape {}", name, expected,
                         to_string(x.shape()));
}

Variable scaled(const Variable& g, const Communicator& comm, Reduction reduction) {
    return reduction == Reduction::mean ? g * (1.0 / comm.size()) : g;
}

// ---- headers: form and gradient of an array that another rank has

struct Announced {
    Form form;
    bool requires_grad;
};
constexpr std::int64_t header_size = 3 + CATENA_MAX_NDIM;

bool records(const Variable& x) {
    return config().enable_backprop && x.requires_grad() && !x.is_volatile();
}

Array header_of(const Shape& shape, const Variable& x) {
    Rows values(header_size);
    values[0] = static_cast<std::int64_t>(x.dtype());
    values[1] = records(x) ? 1 : 0;
    values[2] = shape.ndim();
    std::copy(shape.begin(), shape.end(), values.begin() + 3);
    return Array::from(std::span<const std::int64_t>(values), {header_size}, cuda::host());
}
Array new_header() { return Array::zeros({header_size}, Dtype::int64, cuda::host()); }

Announced read_header(const Array& header) {
    const auto values = header.host<const std::int64_t>();
    const Shape shape(values.subspan(3, static_cast<std::size_t>(values[2])));
    return {{shape, static_cast<Dtype>(values[0]), Device::current()}, values[1] != 0};
}

// The received array, for a rank that passed no array but may have a delegate.
Variable received(const char* name, const Announced& announced, const Variable& before,
                  const std::function<Variable(const Variable&)>& receive) {
    if (before && (before.ndim() != 0 || before.dtype() != Dtype::float32))
        fail<InvalidError>(
            "[{}] x: expected none, or a delegate (float32 of shape ()), as another rank gives x, "
            "got {} of shape {}",
            name, catena::name(before.dtype()), to_string(before.shape()));
    const Variable own = before && before.device() != cuda::host()
                             ? catena::functions::copy(before, cuda::host())
                             : before;
    if (announced.requires_grad) return receive(own);
    Array y;
    {
        const no_backprop_mode scope;
        y = receive({}).data();
    }
    return own ? pseudo_connect(own, as_variable(y)) : as_variable(y);
}

// ---- operations whose receivers know the form

Variable bcast_known(const Communicator& comm, const Variable& x, int root, const Form& form) {
    return call(
        "bcast", x,
        [=](const Array& a) {
            const Array y = comm.rank() == root ? a : form.empty();
            comm.bcast(y, root).wait();
            return y;
        },
        [=](const Variable& gy) { return reduce(comm, gy, root); });
}

Variable scatter_known(const Communicator& comm, const Variable& x, int root, const Rows& rows,
                       const Form& form) {
    return call(
        "scatter", x,
        [=](const Array& a) {
            const Array y = form.empty();
            comm.scatter(comm.rank() == root ? a : Array(), y, root, form.elements(rows)).wait();
            return y;
        },
        [=](const Variable& gy) { return gather(comm, gy, root, rows); });
}

Variable recv_known(const Communicator& comm, const Variable& before, int from, int tag,
                    const Form& form);

Variable send_known(const Communicator& comm, const Variable& x, int to, int tag) {
    return call(
        "send", x,
        [=](const Array& a) {
            comm.send(a, to, tag).wait();
            return delegate();
        },
        [=, form = Form(x)](const Variable& gy) { return recv_known(comm, gy, to, tag, form); });
}

Variable recv_known(const Communicator& comm, const Variable& before, int from, int tag,
                    const Form& form) {
    return call(
        "recv", before,
        [=](const Array&) {
            const Array y = form.empty();
            comm.recv(y, from, tag).wait();
            return y;
        },
        [=](const Variable& gy) { return send_known(comm, gy, from, tag); });
}

class PseudoConnect final : public FunctionNode {
    Arrays forward(ArraySpan inputs) override {
        retain_inputs({0});
        return {inputs.begin() + 1, inputs.end()};
    }
    Variables backward(Targets, VariableSpan gy) override {
        // The value does not matter. The delegate itself leads gradients of second order back to it.
        Variables gx = get_retained_inputs();
        gx.insert(gx.end(), gy.begin(), gy.end());
        return gx;
    }
};

}  // namespace

Variable allreduce(const Communicator& comm, const Variable& x, Reduction reduction) {
    require(x, "allreduce");
    require_linear(reduction, "allreduce");
    return call(
        "allreduce", x,
        [=](const Array& a) {
            const Array y = Array::empty(a.shape(), a.dtype(), a.device());
            comm.allreduce(a, y, reduction).wait();
            return y;
        },
        [=](const Variable& gy) { return allreduce(comm, gy, reduction); });
}

Variable reduce(const Communicator& comm, const Variable& x, int root, Reduction reduction) {
    require(x, "reduce");
    require_linear(reduction, "reduce");
    require_root(comm, root, "reduce");
    return call(
        "reduce", x,
        [=](const Array& a) {
            const bool receives = comm.rank() == root;
            const Array y = receives ? Array::empty(a.shape(), a.dtype(), a.device()) : Array();
            comm.reduce(a, y, root, reduction).wait();
            return receives ? y : delegate();
        },
        [=, form = Form(x)](const Variable& gy) {
            return scaled(bcast_known(comm, gy, root, form), comm, reduction);
        });
}

Variable bcast(const Communicator& comm, const Variable& x, int root) {
    require_root(comm, root, "bcast");
    if (comm.rank() == root) require(x, "bcast");
    const Array header = comm.rank() == root ? header_of(x.shape(), x) : new_header();
    comm.bcast(header, root, {.label = "shape"}).wait();
    if (comm.rank() == root) return bcast_known(comm, x, root, x);
    const Announced announced = read_header(header);
    return received("bcast", announced, x, [&](const Variable& before) {
        return bcast_known(comm, before, root, announced.form);
    });
}

Variable allgather(const Communicator& comm, const Variable& x, Rows rows) {
    require_rows(comm, x, rows, false, "allgather");
    return call(
        "allgather", x,
        [=, form = Form(x)](const Array& a) {
            const std::int64_t n = rows.empty() ? form.shape[0] * comm.size() : total(rows);
            const Array y = form.with_rows(n).empty();
            comm.allgather(a, y, form.elements(rows)).wait();
            return y;
        },
        [=](const Variable& gy) { return reduce_scatter(comm, gy, Reduction::sum, rows); });
}

Variable reduce_scatter(const Communicator& comm, const Variable& x, Reduction reduction,
                        Rows rows) {
    require_rows(comm, x, rows, true, "reduce_scatter");
    require_linear(reduction, "reduce_scatter");
    return call(
        "reduce_scatter", x,
        [=, form = Form(x)](const Array& a) {
            const std::int64_t n = rows.empty() ? form.shape[0] / comm.size()
                                                : rows[static_cast<std::size_t>(comm.rank())];
            const Array y = form.with_rows(n).empty();
            comm.reduce_scatter(a, y, reduction, form.elements(rows)).wait();
            return y;
        },
        [=](const Variable& gy) { return scaled(allgather(comm, gy, rows), comm, reduction); });
}

Variable gather(const Communicator& comm, const Variable& x, int root, Rows rows) {
    require_root(comm, root, "gather");
    const bool receives = comm.rank() == root;
    if (!receives) rows.clear();
    require_rows(comm, x, rows, false, "gather");
    return call(
        "gather", x,
        [=, form = Form(x)](const Array& a) {
            const std::int64_t n = rows.empty() ? form.shape[0] * comm.size() : total(rows);
            const Array y = receives ? form.with_rows(n).empty() : Array();
            comm.gather(a, y, root, form.elements(rows)).wait();
            return receives ? y : delegate();
        },
        [=, form = Form(x)](const Variable& gy) {
            return scatter_known(comm, gy, root, rows, form);
        });
}

Variable scatter(const Communicator& comm, const Variable& x, int root, Rows rows) {
    require_root(comm, root, "scatter");
    const Array header = new_header();
    if (comm.rank() != root) {
        comm.scatter({}, header, root, {}, {.label = "shape"}).wait();
        const Announced announced = read_header(header);
        return received("scatter", announced, x, [&](const Variable& before) {
            return scatter_known(comm, before, root, {}, announced.form);
        });
    }
    require_rows(comm, x, rows, true, "scatter");
    if (rows.empty())
        rows.assign(static_cast<std::size_t>(comm.size()), x.shape()[0] / comm.size());
    const Array headers = Array::zeros({comm.size(), header_size}, Dtype::int64, cuda::host());
    Form own = x;
    for (int r = 0; r < comm.size(); ++r) {
        const Form form = Form(x).with_rows(rows[static_cast<std::size_t>(r)]);
        headers.view(r * header_size, {header_size}).copy_from(header_of(form.shape, x));
        if (r == root) own = form;
    }
    comm.scatter(headers, header, root, {}, {.label = "shape"}).wait();
    return scatter_known(comm, x, root, rows, own);
}

Variable alltoall(const Communicator& comm, const Variable& x, Rows send_rows, Rows recv_rows) {
    require_rows(comm, x, send_rows, true, "alltoall");
    if (send_rows.empty() != recv_rows.empty() ||
        (!recv_rows.empty() && std::ssize(recv_rows) != comm.size()))
        fail<ShapeError>(
            "[alltoall] recv_rows: expected as many numbers as in send_rows, {}, got {}",
            send_rows.size(), recv_rows.size());
    return call(
        "alltoall", x,
        [=, form = Form(x)](const Array& a) {
            const std::int64_t n = recv_rows.empty() ? form.shape[0] : total(recv_rows);
            const Array y = form.with_rows(n).empty();
            comm.alltoall(a, y, form.elements(send_rows), form.elements(recv_rows)).wait();
            return y;
        },
        [=](const Variable& gy) { return alltoall(comm, gy, recv_rows, send_rows); });
}

Variable send(const Communicator& comm, const Variable& x, int to, int tag) {
    require(x, "send");
    require_root(comm, to, "send", "to");
    comm.send(header_of(x.shape(), x), to, tag, {.label = "shape"}).wait();
    return send_known(comm, x, to, tag);
}

Variable recv(const Communicator& comm, int from, int tag, const Variable& before) {
    require_root(comm, from, "recv", "from");
    const Array header = new_header();
    comm.recv(header, from, tag, {.label = "shape"}).wait();
    const Announced announced = read_header(header);
    return received("recv", announced, before, [&](const Variable& d) {
        return recv_known(comm, d, from, tag, announced.form);
    });
}

Variables pseudo_connect(const Variable& before, VariableList x) {
    require(before, "pseudo_connect");
    Variables inputs{before};
    inputs.insert(inputs.end(), x.view().begin(), x.view().end());
    return apply<PseudoConnect>(inputs);
}
Variable pseudo_connect(const Variable& before, const Variable& x) {
    return pseudo_connect(before, VariableList(std::span(&x, 1)))[0];
}

// ---- ranks that compute the same loss

Variable copy_to_ranks(const Communicator& comm, const Variable& x) {
    require(x, "copy_to_ranks");
    return call(
        "copy_to_ranks", x, [](const Array& a) { return a; },
        [=](const Variable& gy) { return reduce_from_ranks(comm, gy); });
}

Variable reduce_from_ranks(const Communicator& comm, const Variable& x) {
    require(x, "reduce_from_ranks");
    return call(
        "reduce_from_ranks", x,
        [=](const Array& a) {
            const Array y = Array::empty(a.shape(), a.dtype(), a.device());
            comm.allreduce(a, y).wait();
            return y;
        },
        [=](const Variable& gy) { return copy_to_ranks(comm, gy); });
}

Variable scatter_to_ranks(const Communicator& comm, const Variable& x) {
    require(x, "scatter_to_ranks");
    if (x.ndim() < 1) fail<ShapeError>("[scatter_to_ranks] x: expected at least one axis, got ()");
    const std::int64_t size = x.shape()[x.ndim() - 1];
    return call(
        "scatter_to_ranks", x,
        [=](const Array& a) {
            const Range own = part_of(size, comm.rank(), comm.size());
            return catena::functions::get_item(a, {ellipsis, slice(own.begin, own.end)});
        },
        [=](const Variable& gy) { return gather_from_ranks(comm, gy, size); });
}

Variable gather_from_ranks(const Communicator& comm, const Variable& x, std::int64_t size) {
    require(x, "gather_from_ranks");
    const Range own = part_of(size, comm.rank(), comm.size());
    if (x.ndim() < 1 || x.shape()[x.ndim() - 1] != own.size())
        fail<ShapeError>(
            "[gather_from_ranks] x: expected {} elements along the last axis, rank {}'s of {}, got "
            "shape {}",
            own.size(), comm.rank(), size, to_string(x.shape()));
    return call(
        "gather_from_ranks", x,
        [=](const Array& a) {
            Shape shape = a.shape();
            const int last = shape.ndim() - 1;
            std::int64_t n = 1;
            for (int i = 0; i < last; ++i) n *= shape[i];
            const Array columns = catena::functions::transpose(a.reshape({n, own.size()}), {1, 0});
            const Array all = Array::empty({size, n}, a.dtype(), a.device());
            Rows counts;
            for (int r = 0; r < comm.size(); ++r)
                counts.push_back(n * part_of(size, r, comm.size()).size());
            comm.allgather(columns, all, counts).wait();
            shape[last] = size;
            return catena::functions::transpose(all, {1, 0}).reshape(shape);
        },
        [=](const Variable& gy) { return scatter_to_ranks(comm, gy); });
}

}  // namespace catena::distributed
