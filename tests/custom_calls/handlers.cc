// Handlers of XLA's FFI, made with the headers that jaxlib brings, for test_jaxlib.py.
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// A state that is made once per call site.
struct Counter {
    static ffi::TypeId id;
    static ffi::TypeInfo info;
    static int alive;
    explicit Counter(int64_t start) : count(start) { alive++; }
    ~Counter() { alive--; }
    std::atomic<int64_t> count;
};
int Counter::alive = 0;
ffi::TypeId Counter::id = {};
ffi::TypeInfo Counter::info = ffi::MakeTypeInfo<Counter>();

extern "C" int alive() { return Counter::alive; }
extern "C" void *counter_id() { return &Counter::id; }
extern "C" void *counter_info() { return &Counter::info; }

static ffi::ErrorOr<std::unique_ptr<Counter>> Start(ffi::Dictionary attributes) {
    auto start = attributes.get<int64_t>("start");
    if (!start.has_value()) return ffi::Unexpected(ffi::Error::InvalidArgument("start is missing"));
    return std::make_unique<Counter>(*start);
}

// result = operand * scale.k + the sum of add + how often it ran + the length of the name
static ffi::Error Execute(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y, Counter *counter,
                          ffi::ScratchAllocator scratch, ffi::ThreadPool pool, std::string_view name,
                          ffi::Span<const int64_t> add, ffi::Dictionary scale, int64_t) {
    if (!scratch.Allocate(1000, 64)) return ffi::Error::Internal("no scratch memory");
    std::atomic<int> done{0};
    for (int i = 0; i < 4; i++) pool.Schedule([&] { done++; });
    while (done < 4) std::this_thread::yield();
    auto k = scale.get<float>("k");
    if (!k.has_value()) return ffi::Error::InvalidArgument("k is missing");
    float more = static_cast<float>(++counter->count) + static_cast<float>(name.size());
    for (int64_t v : add) more += static_cast<float>(v);
    for (size_t i = 0; i < x.element_count(); i++) y->typed_data()[i] = x.typed_data()[i] * *k + more;
    return ffi::Error::Success();
}

// A copy that is ready later.
static ffi::Future Later(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, ffi::Token, bool fail) {
    auto promise = std::make_shared<ffi::Promise>();
    ffi::Future future(*promise);
    std::thread([=]() mutable {
        std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
        if (fail)
            promise->SetError(ffi::Error::Internal("it failed later"));
        else
            promise->SetAvailable();
    }).detach();
    return future;
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(start, Start, ffi::Ffi::BindInstantiate().Attrs());
XLA_FFI_DEFINE_HANDLER_SYMBOL(execute, Execute,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Ctx<ffi::State<Counter>>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Ctx<ffi::ThreadPool>()
                                  .Attr<std::string_view>("name")
                                  .Attr<ffi::Span<const int64_t>>("add")
                                  .Attr<ffi::Dictionary>("scale")
                                  .Attr<int64_t>("start"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    later, Later,
    ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Arg<ffi::Token>().Attr<bool>("fail"));
