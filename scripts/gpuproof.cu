// A host program for scripts/gpuproof: the runtime loads its kernel from the fatbin inside
// it, patched or not. It prints a checksum of the result, and fails where CUDA does.
#include <cstdint>
#include <cstdio>
#include <vector>

static void check(cudaError_t err, const char *what)
{
	if (err != cudaSuccess) {
		fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(err));
		exit(1);
	}
}

// 123 is the constant that a patch makes 124.
__global__ void add(const uint32_t *in, uint32_t *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = in[i] + 123;
}

int main()
{
	const int n = 1 << 20;
	std::vector<uint32_t> host(n);
	for (int i = 0; i < n; i++)
		host[i] = i * 2654435761u;
	uint32_t *in, *out;
	check(cudaMalloc(&in, 4 * n), "cudaMalloc");
	check(cudaMalloc(&out, 4 * n), "cudaMalloc");
	check(cudaMemcpy(in, host.data(), 4 * n, cudaMemcpyHostToDevice), "cudaMemcpy");
	add<<<n / 256, 256>>>(in, out, n);
	check(cudaGetLastError(), "launch");
	check(cudaMemcpy(host.data(), out, 4 * n, cudaMemcpyDeviceToHost), "cudaMemcpy");
	uint64_t sum = 0; // of every element and its place
	for (int i = 0; i < n; i++)
		sum = sum * 31 + host[i];
	printf("%016llx\n", (unsigned long long)sum);
	return 0;
}
