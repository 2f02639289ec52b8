// ExtensionCall: orders calls into extensions on the queue, and reports calls and failures.
#include <catena/extension_call.hpp>

#include <catena/core/extend/context.hpp>
#include <catena/core/extend/order.hpp>

#include <catena/fail.hpp>

namespace catena {

ExtensionCall::ExtensionCall(Device device) {
    static_assert(sizeof(catena_ctx) <= sizeof(context_));
    auto* ctx = new (context_) catena_ctx;
    ctx->device = device.state();
    if (device) queue_ = &recorded(*Stream::current(device).queue());
}

ExtensionCall::~ExtensionCall() {
    if (!written_.empty()) {
        const std::uint64_t ticket = queue_->async ? queue_->advance() : 0;
        for (const Ref<ArrayBody>& body : written_) {
            after_write(*body, *queue_, ticket);
            seal(*body);
        }
    }
    if (named_) {
        std::uint64_t bytes = 0;
        for (const Ref<ArrayBody>& body : written_) bytes += body->tensor.nbytes;
        named_->end(bytes);
    }
    context()->~catena_ctx();
}

catena_ctx* ExtensionCall::context() noexcept {
    return std::launder(reinterpret_cast<catena_ctx*>(context_));
}

void* ExtensionCall::dev() const noexcept {
    return queue_ ? backend_device(Device(&queue_->device)) : nullptr;
}

catena_stream* ExtensionCall::stream() const noexcept { return queue_ ? queue_->native : nullptr; }

ArrayBody& ExtensionCall::need(const Array& array) const {
    ArrayBody& body = need_memory(array);
    if (!queue_ || body.device != &queue_->device)
        fail<DeviceError>("[call] device: expected {}, got an array on {}",
                          queue_ ? Device(&queue_->device).name() : "none", array.device().name());
    return body;
}

const catena_tensor* ExtensionCall::reads(const Array& array) {
    ArrayBody& body = need(array);
    before_read(body, *queue_);
    return &body.tensor;
}

catena_tensor* ExtensionCall::writes(const Array& array) {
    ArrayBody& body = need(array);
    before_write(body, *queue_);
    written(body);
    unseal(body);
    written_.push_back(Ref<ArrayBody>(&body));
    return &body.tensor;
}

void ExtensionCall::runs(CallName name, const char* kind) noexcept {
    if (!queue_) return;
    note_launch(*queue_, name);
    if (!named_) named_.emplace(*queue_, name, kind);
}

bool ExtensionCall::makes_room(catena_status status) noexcept {
    return make_room(*context(), status);
}

void ExtensionCall::check(catena_status status, std::string_view what) {
    if (status == CATENA_OK) return;
    if (what.empty() && !context()->error.empty()) throw_status(status, context()->error);
    throw_failure(*context(), status, std::string(what));
}

}  // namespace catena
