#ifndef CUBIST_TESTS_CAPI_CHECK_H_
#define CUBIST_TESTS_CAPI_CHECK_H_

/* Just enough to test in C99: a failed check prints where and what, and the program ends with 1. */

#include <stdio.h>
#include <string.h>

extern int check_failures;

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      ++check_failures;                                                       \
    }                                                                         \
  } while (0)

/* The call ends with this status, and its message has this phrase ("" = any). */
#define CHECK_STATUS(expected, phrase, call)                                                       \
  do {                                                                                             \
    const cubist_status check_status = (call);                                                     \
    const char* check_text = cubist_last_error_message();                                          \
    if (check_status != (expected) || strstr(check_text, (phrase)) == NULL) {                      \
      fprintf(stderr, "%s:%d: %s\n  gave %s: %s\n  not %s with '%s'\n", __FILE__, __LINE__, #call, \
              cubist_status_string(check_status), check_text, cubist_status_string(expected),      \
              (phrase));                                                                           \
      ++check_failures;                                                                            \
    }                                                                                              \
  } while (0)

#define CHECK_OK(call) CHECK_STATUS(CUBIST_STATUS_OK, "", call)

#endif /* CUBIST_TESTS_CAPI_CHECK_H_ */
