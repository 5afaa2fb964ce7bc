/*
 * A stand-in for libcuda.so.1. Memory of the GPU is memory of the process; kernels are
 * those of testdata/ptx/proof.ptx, computed here, at the time they are launched; those of
 * gemm.ptx and ffma.ptx do nothing.
 *
 * What the instructions of a module say decides how its kernels behave:
 *
 *   an LDG with evict first (EF)       takes 8 microseconds instead of 10
 *   an LDG with evict unchanged (EU)   an illegal address
 *   an LDG with no allocate (NA)       never ends
 *   an LDG with last use (LU)          crashes the driver
 *   an LDG with prefetch LTC256B       changes the last element of saxpy's y
 *   an FFMA with a stall count below 4 and an FFMA behind it
 *                                      adds 1 to each result of chain
 *
 * With FAKECUDA_TAME set, only the first and the last of these. FAKECUDA_SM is the compute
 * capability (90 if not set); FAKECUDA_INIT is what cuInit does: nothing, return an error by
 * its number, or crash.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Result;
typedef uint64_t Ptr;

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

typedef struct {
	int efirst, fault, hang, crash, prefetch, hasty;
	size_t size;
	uint8_t image[];
} Module;

typedef struct {
	Module *module;
	char name[64];
} Function;

static Result sticky;    /* error that every later call returns */
static int hanging;      /* a kernel that never ends is running */
static int failing;      /* a kernel has used an illegal address */
static double now;       /* the GPU's clock in microseconds */
static size_t taken;     /* memory in use */

static const size_t MEMORY = (size_t)1 << 30;

Result cuInit(unsigned flags)
{
	const char *s = getenv("FAKECUDA_INIT");
	(void)flags;
	if (!s)
		return OK;
	if (!strcmp(s, "crash"))
		abort();
	return atoi(s);
}

Result cuDriverGetVersion(int *v) { *v = 13010; return OK; }
Result cuDeviceGetCount(int *n) { *n = 1; return OK; }
Result cuDeviceGet(int *d, int n) { *d = n; return OK; }
Result cuDevicePrimaryCtxRetain(void **ctx, int d) { (void)d; *ctx = &sticky; return OK; }
Result cuCtxSetCurrent(void *ctx) { return ctx == &sticky ? OK : INVALID_VALUE; }

Result cuDeviceGetName(char *name, int size, int d)
{
	(void)d;
	snprintf(name, size, "Fake GPU");
	return OK;
}

Result cuDeviceGetAttribute(int *v, int attr, int d)
{
	const char *s = getenv("FAKECUDA_SM");
	int sm = s ? atoi(s) : 90;
	(void)d;
	switch (attr) {
	case 16: *v = 2; return OK;
	case 38: *v = 1 << 20; return OK;
	case 75: *v = sm / 10; return OK;
	case 76: *v = sm % 10; return OK;
	case 97: *v = 232448; return OK;
	}
	return INVALID_VALUE;
}

Result cuGetErrorName(Result r, const char **s)
{
	switch (r) {
	case OUT_OF_MEMORY: *s = "CUDA_ERROR_OUT_OF_MEMORY"; return OK;
	case 100: *s = "CUDA_ERROR_NO_DEVICE"; return OK;
	case INVALID_IMAGE: *s = "CUDA_ERROR_INVALID_IMAGE"; return OK;
	case NOT_FOUND: *s = "CUDA_ERROR_NOT_FOUND"; return OK;
	case ILLEGAL_ADDRESS: *s = "CUDA_ERROR_ILLEGAL_ADDRESS"; return OK;
	}
	*s = NULL;
	return INVALID_VALUE;
}

Result cuGetErrorString(Result r, const char **s)
{
	switch (r) {
	case OUT_OF_MEMORY: *s = "out of memory"; return OK;
	case 100: *s = "no CUDA-capable device is detected"; return OK;
	case INVALID_IMAGE: *s = "device kernel image is invalid"; return OK;
	case NOT_FOUND: *s = "named symbol not found"; return OK;
	case ILLEGAL_ADDRESS: *s = "an illegal memory access was encountered"; return OK;
	}
	*s = NULL;
	return INVALID_VALUE;
}

/* ffma tells whether an FFMA with an immediate operand stands at offset i. */
static int ffma(const Module *m, size_t i)
{
	uint64_t lo;
	if (i + 16 > m->size)
		return 0;
	memcpy(&lo, m->image + i, 8);
	return (lo & 0xfff) == 0x823;
}

/* look finds out how a module's kernels behave. */
static void look(Module *m)
{
	size_t i;
	for (i = 0; i + 16 <= m->size; i += 16) {
		uint64_t lo, hi;
		memcpy(&lo, m->image + i, 8);
		memcpy(&hi, m->image + i + 8, 8);
		if ((lo & 0xfff) == 0x981) {
			switch (hi >> 20 & 7) { /* bits 84-86 */
			case 0: m->efirst = 1; break;
			case 3: m->crash = 1; break;
			case 4: m->fault = 1; break;
			case 5: m->hang = 1; break;
			}
			m->prefetch |= (hi >> 4 & 3) == 3; /* bits 68-69 */
		}
		if (ffma(m, i) && ffma(m, i + 16) && (hi >> 41 & 15) < 4) /* bits 105-108 */
			m->hasty = 1;
	}
	if (getenv("FAKECUDA_TAME"))
		m->fault = m->hang = m->crash = m->prefetch = 0;
}

/* imageSize is the end of the image: of one of its header tables, which are last. */
static size_t imageSize(const uint8_t *p)
{
	uint64_t shoff, phoff;
	uint16_t shnum, phnum;
	size_t a, b;
	memcpy(&phoff, p + 32, 8);
	memcpy(&shoff, p + 40, 8);
	memcpy(&phnum, p + 56, 2);
	memcpy(&shnum, p + 60, 2);
	a = shoff + 64 * (size_t)shnum;
	b = phoff + 56 * (size_t)phnum;
	return a > b ? a : b;
}

Result cuModuleLoadData(void **module, const void *image)
{
	Module *m;
	size_t size;
	if (memcmp(image, "\177ELF", 4))
		return INVALID_IMAGE;
	size = imageSize(image);
	m = calloc(1, sizeof *m + size);
	m->size = size;
	memcpy(m->image, image, size);
	look(m);
	*module = m;
	return OK;
}

/* The last ones do nothing. */
static const char *kernels[] = {"copy32", "copy64", "copy128", "saxpy", "reduce", "histogram", "chain", "ffma_loop", "sgemm", "columns", "snake"};
enum { IDLE = 7 };

Result cuModuleGetFunction(void **function, void *module, const char *name)
{
	size_t i;
	for (i = 0; i < sizeof kernels / sizeof *kernels; i++)
		if (!strcmp(name, kernels[i])) {
			Function *f = calloc(1, sizeof *f);
			f->module = module;
			strcpy(f->name, name);
			*function = f;
			return OK;
		}
	return NOT_FOUND;
}

Result cuFuncSetAttribute(void *f, int attr, int v)
{
	(void)f;
	return attr == 8 && v <= 232448 ? OK : INVALID_VALUE;
}

Result cuMemAlloc_v2(Ptr *p, size_t size)
{
	if (sticky)
		return sticky;
	if (size > MEMORY - taken)
		return OUT_OF_MEMORY;
	taken += size;
	/* The size stands in front, where 16 bytes keep the alignment. */
	*p = (Ptr)malloc(size + 16) + 16;
	*(size_t *)(*p - 16) = size;
	memset((void *)*p, 0xaa, size);
	return OK;
}

Result cuMemFree_v2(Ptr p)
{
	taken -= *(size_t *)(p - 16);
	free((void *)(p - 16));
	return sticky;
}

Result cuMemcpyHtoD_v2(Ptr d, const void *h, size_t n)
{
	if (!sticky)
		memcpy((void *)d, h, n);
	return sticky;
}

Result cuMemcpyDtoH_v2(void *h, Ptr d, size_t n)
{
	if (!sticky)
		memcpy(h, (void *)d, n);
	return sticky;
}

Result cuMemcpyDtoDAsync_v2(Ptr d, Ptr s, size_t n, void *stream)
{
	(void)stream;
	if (!sticky)
		memcpy((void *)d, (void *)s, n);
	return sticky;
}

Result cuMemsetD8Async(Ptr d, unsigned char v, size_t n, void *stream)
{
	(void)stream;
	if (!sticky)
		memset((void *)d, v, n);
	return sticky;
}

Result cuEventCreate(void **e, unsigned flags)
{
	(void)flags;
	*e = calloc(1, sizeof(double));
	return sticky;
}

Result cuEventRecord(void *e, void *stream)
{
	(void)stream;
	*(double *)e = now;
	return sticky;
}

Result cuEventElapsedTime(float *ms, void *a, void *b)
{
	*ms = (float)((*(double *)b - *(double *)a) / 1000);
	return sticky;
}

/* tree adds up the 256 elements of a block as the kernel reduce does. */
static float tree(const float *in)
{
	float part[256];
	int s, t;
	memcpy(part, in, sizeof part);
	for (s = 128; s; s /= 2)
		for (t = 0; t < s; t++)
			part[t] += part[t + s];
	return part[0];
}

static float links(float v)
{
	int i;
	for (i = 0; i < 16; i++) {
		uint32_t bits = 0x3f800000 + 0x1000 * i;
		float f;
		memcpy(&f, &bits, 4);
		v = fmaf(v, f, 1);
	}
	return v;
}

static Result compute(const Function *f, const uint8_t *p, size_t size, uint32_t blocks, uint32_t threads)
{
	Ptr a, b;
	uint32_t n, i;
	float x;
	if (!strcmp(f->name, "saxpy")) {
		if (size != 24)
			return INVALID_VALUE;
		memcpy(&n, p, 4);
		memcpy(&x, p + 4, 4);
		memcpy(&a, p + 8, 8);
		memcpy(&b, p + 16, 8);
		for (i = 0; i < n && i < blocks * threads; i++)
			((float *)b)[i] = fmaf(x, ((float *)a)[i], ((float *)b)[i]);
		if (f->module->prefetch)
			((float *)b)[n - 1] += 1;
		return OK;
	}
	for (i = IDLE; i < sizeof kernels / sizeof *kernels; i++)
		if (!strcmp(f->name, kernels[i]))
			return OK;
	memcpy(&a, p, 8);
	memcpy(&b, p + 8, 8);
	if (!strcmp(f->name, "chain")) {
		for (i = 0; i < blocks * threads; i++)
			((float *)b)[i] = links(((float *)a)[i]) + f->module->hasty;
		return size == 16 ? OK : INVALID_VALUE;
	}
	if (!strcmp(f->name, "reduce")) {
		for (i = 0; i < blocks; i++)
			((float *)b)[i] = tree((float *)a + 256 * i);
		return size == 16 ? OK : INVALID_VALUE;
	}
	if (size != 20)
		return INVALID_VALUE;
	memcpy(&n, p + 16, 4);
	if (!strcmp(f->name, "histogram")) {
		for (i = 0; i < 4 * n; i++)
			((uint32_t *)b)[((uint8_t *)a)[i]]++;
		return OK;
	}
	memcpy((void *)b, (void *)a, (size_t)n * (atoi(f->name + 4) / 8));
	return OK;
}

Result cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		      unsigned shared, void *stream, void **params, void **extra)
{
	Function *f = function;
	(void)shared;
	if (sticky)
		return sticky;
	if (stream || params || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] || gx * gy * gz == 0 || bx * by * bz > 1024)
		return INVALID_VALUE;
	if (f->module->crash)
		abort();
	if (f->module->fault) {
		failing = 1; /* cuCtxSynchronize reports it */
		return OK;
	}
	now += f->module->efirst ? 8 : 10;
	hanging |= f->module->hang;
	return compute(f, extra[1], *(size_t *)extra[3], gx * gy * gz, bx * by * bz);
}

Result cuCtxSynchronize(void)
{
	while (hanging)
		pause();
	if (failing)
		sticky = ILLEGAL_ADDRESS;
	return sticky;
}
