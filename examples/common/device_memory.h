#ifndef CUBIST_EXAMPLES_DEVICE_MEMORY_H_
#define CUBIST_EXAMPLES_DEVICE_MEMORY_H_

#include <stddef.h>

/* A context and device memory by libcuda, in place of the framework (PyTorch, the CUDA runtime,
 * ...) that a real application has them from. */

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the first device's primary context current. 0 where there is no driver or device; says why
 * on standard error. */
int device_open(void);
void device_close(void);

/* These end the program when the driver refuses. `host` NULL: not filled. */
void* device_alloc(const void* host, size_t bytes);
void device_read(void* host, const void* device, size_t bytes);
void device_free(const void* device);
void device_synchronize(void);

#ifdef __cplusplus
}
#endif

#endif /* CUBIST_EXAMPLES_DEVICE_MEMORY_H_ */
