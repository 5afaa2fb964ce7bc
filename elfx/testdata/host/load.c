// Loads a library and launches a kernel of it.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *h = dlopen(argv[1], RTLD_NOW);
  if (!h) return puts(dlerror()), 1;
  int (*launch)(void) = (int (*)(void))dlsym(h, "launch");
  printf("launched %d\n", launch());
  return 0;
}
