#include "device_memory.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long device_address;

static struct {
  int (*init)(unsigned flags);
  int (*retain)(void** context, int device);
  int (*release)(int device);
  int (*push)(void* context);
  int (*pop)(void** context);
  int (*alloc)(device_address* address, size_t bytes);
  int (*free)(device_address address);
  int (*upload)(device_address to, const void* from, size_t bytes);
  int (*download)(void* to, device_address from, size_t bytes);
  int (*synchronize)(void* stream);
} driver;

static int (*get_proc_address)(const char*, void**, int, uint64_t, int*);

/* Through void**: ISO C has no cast between pointers to objects and to functions. */
static int find(const char* name, void** function) {
  int found = 0;
  return get_proc_address(name, function, 12000, 0, &found) == 0 && *function != NULL;
}

static int find_all(void) {
  return find("cuInit", (void**)&driver.init) &&
         find("cuDevicePrimaryCtxRetain", (void**)&driver.retain) &&
         find("cuDevicePrimaryCtxRelease", (void**)&driver.release) &&
         find("cuCtxPushCurrent", (void**)&driver.push) &&
         find("cuCtxPopCurrent", (void**)&driver.pop) &&
         find("cuMemAlloc", (void**)&driver.alloc) && find("cuMemFree", (void**)&driver.free) &&
         find("cuMemcpyHtoD", (void**)&driver.upload) &&
         find("cuMemcpyDtoH", (void**)&driver.download) &&
         find("cuStreamSynchronize", (void**)&driver.synchronize);
}

static void require(int result, const char* what) {
  if (result == 0) return;
  fprintf(stderr, "%s failed with CUDA error %d\n", what, result);
  exit(1);
}

int device_open(void) {
  const char* name = getenv("CUBIST_LIBCUDA");
  void* library = dlopen(name != NULL ? name : "libcuda.so.1", RTLD_NOW);
  void* context = NULL;
  if (library == NULL) {
    fprintf(stderr, "no CUDA driver: %s\n", dlerror());
    return 0;
  }
  *(void**)&get_proc_address = dlsym(library, "cuGetProcAddress_v2");
  if (get_proc_address == NULL || !find_all() || driver.init(0) != 0) {
    fprintf(stderr, "no usable CUDA driver or device\n");
    return 0;
  }
  require(driver.retain(&context, 0), "cuDevicePrimaryCtxRetain");
  require(driver.push(context), "cuCtxPushCurrent");
  return 1;
}

void device_close(void) {
  void* context = NULL;
  require(driver.pop(&context), "cuCtxPopCurrent");
  require(driver.release(0), "cuDevicePrimaryCtxRelease");
}

void* device_alloc(const void* host, size_t bytes) {
  device_address address = 0;
  require(driver.alloc(&address, bytes), "cuMemAlloc");
  if (host != NULL) require(driver.upload(address, host, bytes), "cuMemcpyHtoD");
  return (void*)(uintptr_t)address;
}

void device_read(void* host, const void* device, size_t bytes) {
  require(driver.download(host, (uintptr_t)device, bytes), "cuMemcpyDtoH");
}

void device_free(const void* device) { require(driver.free((uintptr_t)device), "cuMemFree"); }

void device_synchronize(void) { require(driver.synchronize(NULL), "cuStreamSynchronize"); }
