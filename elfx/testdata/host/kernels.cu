// Kernels for the host programs of the tests that grow fatbins.
#include <cuda_runtime.h>

template <int N> __global__ void saxpy(int n, float a, const float *__restrict__ x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll
  for (int k = 0; k < N; k++) s += x[(i * N + k) % n] * a;
  if (i < n) y[i] += s;
}
template __global__ void saxpy<1>(int, float, const float *, float *);
template __global__ void saxpy<64>(int, float, const float *, float *);

#ifdef RDC
extern __device__ float square(float);
__global__ void squares(float *x) { x[threadIdx.x] = square(x[threadIdx.x]); }
#endif

extern "C" int launch() {
  saxpy<1><<<1, 1>>>(0, 0, nullptr, nullptr);
  return (int)cudaGetLastError();
}
