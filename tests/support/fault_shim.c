/* Preloaded into the tool by tests: makes chosen calls of the C library fail.
 *
 *   CUBIST_TEST_FAULTS="CALL:ERRNO[:PART[:NTH]],..."
 *
 * CALL fails with ERRNO (a number) for paths (or descriptors of files) that contain PART: every
 * time, or only the NTH time, counted from 1. What a network file system does, on any disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { kMaxRules = 16, kMaxText = 128 };

struct rule {
  char call[kMaxText];
  int error_number;
  char part[kMaxText];
  int nth;
  int seen;
};

static struct rule rules[kMaxRules];
static int num_rules = -1;

static void read_rules(void) {
  num_rules = 0;
  const char* text = getenv("CUBIST_TEST_FAULTS");
  char copy[2048];
  if (text == NULL || strlen(text) >= sizeof(copy)) return;
  strcpy(copy, text);
  char* place = NULL;
  for (char* one = strtok_r(copy, ",", &place); one != NULL && num_rules < kMaxRules;
       one = strtok_r(NULL, ",", &place)) {
    struct rule* rule = &rules[num_rules];
    memset(rule, 0, sizeof(*rule));
    if (sscanf(one, "%127[^:]:%d:%127[^:]:%d", rule->call, &rule->error_number, rule->part,
               &rule->nth) >= 2) {
      ++num_rules;
    }
  }
}

static int fails(const char* call, const char* path) {
  if (num_rules < 0) read_rules();
  for (int i = 0; i < num_rules; ++i) {
    struct rule* rule = &rules[i];
    if (strcmp(rule->call, call) != 0) continue;
    if (rule->part[0] != '\0' && (path == NULL || strstr(path, rule->part) == NULL)) continue;
    ++rule->seen;
    if (rule->nth != 0 && rule->seen != rule->nth) continue;
    errno = rule->error_number;
    return 1;
  }
  return 0;
}

static int fails_on(const char* call, int fd) {
  char link[64];
  char path[PATH_MAX];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  path[length < 0 ? 0 : length] = '\0';
  return fails(call, path);
}

#define REAL(name) __typeof__(name)* real_##name = (__typeof__(name)*)dlsym(RTLD_NEXT, #name)

int open(const char* path, int flags, ...) {
  REAL(open);
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return fails("open", path) ? -1 : real_open(path, flags, mode);
}

ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  REAL(pread);
  return fails_on("pread", fd) ? -1 : real_pread(fd, buffer, size, offset);
}

ssize_t write(int fd, const void* buffer, size_t size) {
  REAL(write);
  return fails_on("write", fd) ? -1 : real_write(fd, buffer, size);
}

int fsync(int fd) {
  REAL(fsync);
  return fails_on("fsync", fd) ? -1 : real_fsync(fd);
}

int syncfs(int fd) {
  REAL(syncfs);
  return fails_on("syncfs", fd) ? -1 : real_syncfs(fd);
}

int flock(int fd, int operation) {
  REAL(flock);
  return fails_on("flock", fd) ? -1 : real_flock(fd, operation);
}

int fcntl(int fd, int command, ...) {
  REAL(fcntl);
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return fails_on("fcntl", fd) ? -1 : real_fcntl(fd, command, argument);
}

int fchmod(int fd, mode_t mode) {
  REAL(fchmod);
  return fails_on("fchmod", fd) ? -1 : real_fchmod(fd, mode);
}

int mkdir(const char* path, mode_t mode) {
  REAL(mkdir);
  return fails("mkdir", path) ? -1 : real_mkdir(path, mode);
}

int rename(const char* from, const char* to) {
  REAL(rename);
  return fails("rename", to) ? -1 : real_rename(from, to);
}

int link(const char* from, const char* to) {
  REAL(link);
  return fails("link", to) ? -1 : real_link(from, to);
}

int unlink(const char* path) {
  REAL(unlink);
  return fails("unlink", path) ? -1 : real_unlink(path);
}

/* The whole path of a name in an open folder. */
static const char* path_at(int folder, const char* name, char* out, size_t size) {
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
  ssize_t length = name[0] == '/' || folder == AT_FDCWD ? 0 : readlink(link, out, size - 1);
  if (length < 0) length = 0;
  snprintf(out + length, size - (size_t)length, "%s%s", length == 0 ? "" : "/", name);
  return out;
}

static int fails_at(const char* call, int folder, const char* name) {
  char path[2 * PATH_MAX];
  return fails(call, path_at(folder, name, path, sizeof(path)));
}

/* The calls that end in "at" are the same calls to a rule. Folders that are only passed through
 * (O_PATH) do not count. */
int openat(int folder, const char* name, int flags, ...) {
  REAL(openat);
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  if ((flags & O_PATH) == 0 && fails_at("open", folder, name)) return -1;
  return real_openat(folder, name, flags, mode);
}

int mkdirat(int folder, const char* name, mode_t mode) {
  REAL(mkdirat);
  return fails_at("mkdir", folder, name) ? -1 : real_mkdirat(folder, name, mode);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  REAL(renameat);
  return fails_at("rename", to_folder, to) ? -1 : real_renameat(from_folder, from, to_folder, to);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  REAL(linkat);
  if (fails_at("link", to_folder, to)) return -1;
  return real_linkat(from_folder, from, to_folder, to, flags);
}

int unlinkat(int folder, const char* name, int flags) {
  REAL(unlinkat);
  return fails_at("unlink", folder, name) ? -1 : real_unlinkat(folder, name, flags);
}

long syscall(long number, ...) {
  REAL(syscall);
  long a[6];
  va_list arguments;
  va_start(arguments, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_renameat2 && fails_at("renameat2", (int)a[2], (const char*)a[3])) return -1;
  return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
