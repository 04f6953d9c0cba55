#ifndef CUBIST_EXPORT_H_
#define CUBIST_EXPORT_H_

/* Everything else in the library is hidden. */
#if defined(__GNUC__) || defined(__clang__)
#define CUBIST_API __attribute__((visibility("default")))
#else
#define CUBIST_API
#endif

#endif /* CUBIST_EXPORT_H_ */
