#include "gpu_session.h"

#include "driver/device_query.h"

namespace cubist::tools {
namespace {

/// A CUevent that goes away with the object.
class Event {
 public:
  explicit Event(driver::Driver& driver) : driver_(driver) {}
  ~Event() {
    if (event_ != nullptr) driver_.table().cuEventDestroy(event_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  Status create() {
    return driver_.check(driver_.table().cuEventCreate(&event_, 0), "cuEventCreate");
  }
  Status record() {
    return driver_.check(driver_.table().cuEventRecord(event_, nullptr), "cuEventRecord");
  }
  cuda::CUevent get() const { return event_; }

 private:
  driver::Driver& driver_;
  cuda::CUevent event_ = nullptr;
};

bool has_events(const driver::DriverTable& table) {
  return table.cuEventCreate != nullptr && table.cuEventRecord != nullptr &&
         table.cuEventSynchronize != nullptr && table.cuEventElapsedTime != nullptr &&
         table.cuEventDestroy != nullptr;
}

}  // namespace

Result<std::unique_ptr<GpuSession>> GpuSession::open(driver::Driver& driver, int ordinal) {
  std::unique_ptr<GpuSession> session(new GpuSession(driver, ordinal));
  CUBIST_RETURN_IF_ERROR(session->start());
  return session;
}

Status GpuSession::start() {
  CUBIST_RETURN_IF_ERROR(driver_.init());
  cuda::CUcontext context = nullptr;
  CUBIST_RETURN_IF_ERROR(driver_.check(driver_.table().cuDevicePrimaryCtxRetain(&context, ordinal_),
                                       "cuDevicePrimaryCtxRetain"));
  retained_ = true;
  CUBIST_RETURN_IF_ERROR(
      driver_.check(driver_.table().cuCtxPushCurrent(context), "cuCtxPushCurrent"));
  pushed_ = true;
  return {};
}

GpuSession::~GpuSession() {
  const driver::DriverTable& table = driver_.table();
  for (const cuda::CUdeviceptr address : allocations_) table.cuMemFree(address);
  cuda::CUcontext popped = nullptr;
  if (pushed_) table.cuCtxPopCurrent(&popped);
  if (retained_) table.cuDevicePrimaryCtxRelease(ordinal_);
}

Result<std::uint64_t> GpuSession::allocate(std::uint64_t bytes) {
  if (bytes == 0) return 0;
  cuda::CUdeviceptr address = 0;
  Status status = driver_.check(driver_.table().cuMemAlloc(&address, bytes), "cuMemAlloc");
  if (!status) return forward_error(status, fmt::format("{} bytes of device memory", bytes));
  allocations_.push_back(address);
  return address;
}

Result<std::uint64_t> GpuSession::upload(const void* from, std::uint64_t bytes) {
  CUBIST_ASSIGN_OR_RETURN(const std::uint64_t address, allocate(bytes));
  if (bytes == 0) return address;
  CUBIST_RETURN_IF_ERROR(
      driver_.check(driver_.table().cuMemcpyHtoD(address, from, bytes), "cuMemcpyHtoD"));
  return address;
}

Status GpuSession::download(void* to, std::uint64_t from, std::uint64_t bytes) {
  if (bytes == 0) return {};
  return driver_.check(driver_.table().cuMemcpyDtoH(to, from, bytes), "cuMemcpyDtoH");
}

Status GpuSession::fill(std::uint64_t address, std::uint8_t byte, std::uint64_t bytes) {
  if (bytes == 0) return {};
  return driver_.check(driver_.table().cuMemsetD8Async(address, byte, bytes, nullptr),
                       "cuMemsetD8Async");
}

Status GpuSession::synchronize() {
  return driver_.check(driver_.table().cuStreamSynchronize(nullptr), "cuStreamSynchronize");
}

Result<double> GpuSession::time(const std::function<Status()>& queue) {
  if (!has_events(driver_.table())) {
    CUBIST_RETURN_IF_ERROR(queue());
    return -1.0;
  }
  Event start(driver_);
  Event stop(driver_);
  CUBIST_RETURN_IF_ERROR(start.create());
  CUBIST_RETURN_IF_ERROR(stop.create());
  CUBIST_RETURN_IF_ERROR(start.record());
  CUBIST_RETURN_IF_ERROR(queue());
  CUBIST_RETURN_IF_ERROR(stop.record());
  CUBIST_RETURN_IF_ERROR(
      driver_.check(driver_.table().cuEventSynchronize(stop.get()), "cuEventSynchronize"));
  float milliseconds = 0.0F;
  CUBIST_RETURN_IF_ERROR(
      driver_.check(driver_.table().cuEventElapsedTime(&milliseconds, start.get(), stop.get()),
                    "cuEventElapsedTime"));
  return static_cast<double>(milliseconds) * 1000.0;
}

Result<OpenGpu> open_gpu(int ordinal) {
  OpenGpu gpu;
  CUBIST_ASSIGN_OR_RETURN(gpu.driver, driver::Driver::open());
  CUBIST_ASSIGN_OR_RETURN(gpu.device, driver::query_device(*gpu.driver, ordinal));
  CUBIST_ASSIGN_OR_RETURN(gpu.session, GpuSession::open(*gpu.driver, ordinal));
  return gpu;
}

}  // namespace cubist::tools
