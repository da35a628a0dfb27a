/* The names of HIP that generated code uses, so that a compiler without ROCm can check it. */
#pragma once
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

struct dim3_ {
    unsigned x, y, z;
};
extern "C" const __device__ dim3_ threadIdx, blockIdx;
__device__ void __syncthreads();
__device__ int atomicCAS(int *, int, int);
__device__ float __uint_as_float(unsigned);
__device__ unsigned __float_as_uint(float);
__device__ float expf(float);
__device__ double fabs(double);

#define VECTORS(type, name)                                            \
    struct name##2 { type x, y; };                                     \
    struct alignas(4 * sizeof(type)) name##4 { type x, y, z, w; };     \
    __device__ name##2 make_##name##2(type, type);                     \
    __device__ name##4 make_##name##4(type, type, type, type);
VECTORS(signed char, char)
VECTORS(float, float)
