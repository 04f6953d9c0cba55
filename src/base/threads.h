#pragma once

#include <cstddef>
#include <functional>
#include <thread>

namespace cubist {

/// Waits until the thread is done, also where the waiting itself breaks off early: whoever went on
/// then would end the process, or pull the work's memory from under it.
void join(std::thread& thread);

/// For a thread's beginning: what its first exception needs of memory it has from then on. Where
/// the C++ library came with dlopen, memory that is not there when it is thrown would end the
/// process.
void make_room_to_throw();

/// Does `work` on `count` threads at once and waits for all of them. work(0) is done by the caller,
/// so it is done at all; where the machine gives fewer threads, those there are do it.
///
/// What work throws on any of them comes out here, once all are done.
///
/// work  called once a thread with its number, 0 ... count - 1; it takes tasks until there are
/// none.
///       Whoever waits for another's work in it must not wait for ever where that has thrown
void on_threads(std::size_t count, const std::function<void(unsigned)>& work);

/// Does the first by the caller and the second beside it, or after it where the machine gives no
/// second thread; waits for both.
void do_both(const std::function<void()>& first, const std::function<void()>& second);

}  // namespace cubist
