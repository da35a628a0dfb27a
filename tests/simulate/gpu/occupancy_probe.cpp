// Reads configurations from the input, one a line, and prints the blocks of a multiprocessor as
// NVIDIA's cuda_occupancy.h computes them.
#include <initializer_list>
#include <climits>
#include <cstdio>
#include <cstring>
#include "cuda_occupancy.h"

int main() {
    int major, minor, threads, registers, shared, most_threads, shared_of_sm, reserved;
    while (scanf("%d %d %d %d %d %d %d %d", &major, &minor, &threads, &registers, &shared,
                 &most_threads, &shared_of_sm, &reserved) == 8) {
        cudaOccDeviceProp device;
        memset(&device, 0, sizeof device);
        device.computeMajor = major;
        device.computeMinor = minor;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = most_threads;
        device.regsPerBlock = 65536;
        device.regsPerMultiprocessor = 65536;
        device.warpSize = 32;
        device.sharedMemPerBlock = 48 * 1024;
        device.sharedMemPerMultiprocessor = shared_of_sm;
        device.numSms = 1;
        device.sharedMemPerBlockOptin = shared_of_sm - reserved;
        device.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes kernel;
        memset(&kernel, 0, sizeof kernel);
        kernel.maxThreadsPerBlock = 1024;
        kernel.numRegs = registers;
        kernel.sharedSizeBytes = shared;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = 0;
        cudaOccDeviceState state;
        cudaOccResult result;
        cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
            &result, &device, &kernel, &state, threads, 0);
        printf("%d\n", error ? -1 : result.activeBlocksPerMultiprocessor);
    }
}
