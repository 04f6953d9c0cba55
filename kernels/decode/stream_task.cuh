#pragma once

#include <cstdint>

#include "ptx.cuh"
#include "stream_load.cuh"
#include "stream_ptx.cuh"
#include "stream_work.cuh"

namespace cubist_decode {

/// A part of the CTA's range, in shared memory: what consumers would otherwise keep in registers
/// that their tiles need. There are two places, with barriers: there, done.
struct Task {
  Work work;
  Part part;
  bool is_none;  ///< there are no more parts
};

template <class V>
__device__ __forceinline__ Task* task_at(unsigned char* smem, int place) {
  static_assert(sizeof(Task) <= V::kTaskBytes, "two tasks lie in their places");
  return reinterpret_cast<Task*>(smem + V::kTaskOffset + place * V::kTaskBytes);
}
template <class V>
__device__ __forceinline__ std::uint32_t task_is_there(unsigned char* smem, int place) {
  return shared_address(smem + V::kTaskBarrierOffset + 8 * place);
}
template <class V>
__device__ __forceinline__ std::uint32_t task_is_done(unsigned char* smem, int place) {
  return shared_address(smem + V::kTaskBarrierOffset + 16 + 8 * place);
}

template <class V>
__device__ __forceinline__ void init_task_barriers(unsigned char* smem) {
  for (int place = 0; place < 2; ++place) {
    init_barrier(task_is_there<V>(smem, place), 1);
    init_barrier(task_is_done<V>(smem, place), 128 * V::kConsumers);
  }
}

/// One warp that has nothing else to do finds the parts, up to two ahead of the consumers.
template <class V>
__device__ __forceinline__ void find_tasks(const CubistDecodeParams& params, unsigned char* smem) {
  if (params.prefetch_kv == 0) wait_for_preceding_kernel();
  StreamSchedule schedule(params, V::kTileKv);
  Task task;
  StageCursor<2> cursor;
  do {
    task.is_none = !schedule.next(task.work, task.part);
    wait_barrier(task_is_done<V>(smem, cursor.stage), cursor.parity ^ 1U);
    if (threadIdx.x % 32 == 0) {
      *task_at<V>(smem, cursor.stage) = task;
      arrive(task_is_there<V>(smem, cursor.stage));
    }
    __syncwarp();
    cursor.advance();
  } while (!task.is_none);
}

/// A consumer: attend(work, part) for every part.
template <class V, class Attend>
__device__ __forceinline__ void attend_tasks(unsigned char* smem, Attend&& attend) {
  for (StageCursor<2> cursor;; cursor.advance()) {
    wait_barrier(task_is_there<V>(smem, cursor.stage), cursor.parity);
    const Task& task = *task_at<V>(smem, cursor.stage);
    if (task.is_none) return;
    attend(task.work, task.part);
    arrive(task_is_done<V>(smem, cursor.stage));
  }
}

}  // namespace cubist_decode
