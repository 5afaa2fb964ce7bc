// Prints a digest of every fatbin as it is registered, that is, where the program
// itself finds it, and the error of a launch (35 without a driver).
#include <cstdint>
#include <cstdio>
#include <cstring>

extern "C" int launch();
extern "C" void launch_more();

struct wrapper {
  uint32_t magic, version;
  const unsigned char *data;
  void *more;
};

extern "C" void **__real___cudaRegisterFatBinary(void *);
extern "C" void **__wrap___cudaRegisterFatBinary(void *w) {
  const unsigned char *p = ((wrapper *)w)->data;
  uint64_t size, h = 14695981039346656037u;  // FNV-1a
  memcpy(&size, p + 8, 8);
  for (uint64_t i = 0; i < size + 16; i++) h = (h ^ p[i]) * 1099511628211u;
  printf("fatbin %llu %016llx\n", (unsigned long long)size + 16, (unsigned long long)h);
  return __real___cudaRegisterFatBinary(w);
}

int main() {
  int r = launch();
  launch_more();
  printf("launched %d\n", r);
}
