#include "base/date.h"

#include "support/catch.h"

namespace cubist {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::sys_days;

TEST_CASE("a date is read as a day") {
  CHECK(parse_date("1970-01-01") == sys_days(days(0)));
  CHECK(parse_date("2000-02-29") == sys_days(days(11016)));
  CHECK(parse_date("9999-12-31"));
}

TEST_CASE("what is no day of the calendar is no date") {
  for (const char* bad :
       {"", "2027", "2027-02-29", "2027-13-01", "2027-00-10", "2027-01-00", "2027-01-32",
        "1969-12-31", "0000-01-01", "2027-1-01", "2027-01-1", "2027/01/01", "2027-01-01 ",
        "2027-01-01T00:00:00Z", "+027-01-01", "2027-01--1", "2027-01-\xd9\xa1"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_date(bad));
  }
}

TEST_CASE("a day is over when the next one begins in UTC") {
  const sys_days day = *parse_date("2027-01-31");
  CHECK_FALSE(is_over(day, day));
  CHECK_FALSE(is_over(day, day + hours(23)));
  CHECK(is_over(day, day + hours(24)));
  CHECK_FALSE(is_over(*parse_date("9999-12-31"), std::chrono::system_clock::now()));
}

}  // namespace
}  // namespace cubist
