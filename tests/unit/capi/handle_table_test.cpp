#include "capi/handle_table.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "support/catch.h"

using namespace cubist;
using Catch::Matchers::Contains;

namespace {

struct Handle;

struct Object {
  explicit Object(int number) : value(number) { ++alive; }
  ~Object() { --alive; }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  int value;
  static inline std::atomic<int> alive{0};
};

using Table = capi::HandleTable<Object, Handle, 3>;

Handle* add(Table& table, int value) { return table.add(std::make_unique<Object>(value)).value(); }

}  // namespace

TEST_CASE("a handle leads to its object until it is removed") {
  static Table* const table = new Table("thing");  // tables live as long as the process
  Handle* handle = add(*table, 5);
  CHECK((*table->find(handle))->value == 5);
  CHECK((*table->remove(handle))->value == 5);
  CHECK(Object::alive == 0);
  const auto gone = table->find(handle);
  REQUIRE_FALSE(gone.has_value());
  CHECK(gone.error().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(gone.error().message(), Contains("thing handle") && Contains("destroyed already"));
  CHECK_FALSE(table->remove(handle).has_value());
}

TEST_CASE("a slot that is used again has another handle") {
  static Table* const table = new Table("thing");  // tables live as long as the process
  Handle* first = add(*table, 1);
  CHECK(table->remove(first).has_value());
  Handle* second = add(*table, 2);
  CHECK(first != second);
  CHECK_FALSE(table->find(first).has_value());
  CHECK((*table->find(second))->value == 2);
  CHECK(table->remove(second).has_value());
}

TEST_CASE("NULL, foreign and made-up handles are refused without looking behind them") {
  static Table* const table = new Table("thing");  // tables live as long as the process
  Handle* handle = add(*table, 1);
  CHECK_THAT(table->find(nullptr).error().message(), Contains("the thing is NULL"));
  const auto number = reinterpret_cast<std::uint64_t>(handle);
  for (const std::uint64_t made_up :
       {std::uint64_t{3}, number ^ 1, number + (std::uint64_t{1} << 32), number + 16,
        ~std::uint64_t{0}, std::uint64_t{0x10}, number & 0xffffffff,
        number & ~std::uint64_t{0xf0}}) {
    CHECK_FALSE(table->find(reinterpret_cast<Handle*>(made_up)).has_value());
    CHECK_FALSE(table->remove(reinterpret_cast<Handle*>(made_up)).has_value());
  }
  CHECK(table->remove(handle).has_value());
}

TEST_CASE("more handles than one chunk holds are all different") {
  static Table* const table = new Table("thing");  // tables live as long as the process
  std::vector<Handle*> handles;
  for (int i = 0; i < 1000; ++i) handles.push_back(add(*table, i));
  CHECK(std::set<Handle*>(handles.begin(), handles.end()).size() == 1000);
  for (int i = 0; i < 1000; ++i)
    CHECK((*table->find(handles[static_cast<std::size_t>(i)]))->value == i);
  for (Handle* handle : handles) CHECK(table->remove(handle).has_value());
  CHECK(Object::alive == 0);
}

TEST_CASE("threads make, find and remove at once") {
  static Table* const table = new Table("thing");  // tables live as long as the process
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        Handle* handle = add(*table, t * 10000 + i);
        const auto found = table->find(handle);
        if (!found || (*found)->value != t * 10000 + i) ++wrong;
        if (!table->remove(handle)) ++wrong;
        if (table->find(handle)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(Object::alive == 0);
}
