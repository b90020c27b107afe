package dev.nereid.cuda;

import java.util.OptionalDouble;
import java.util.OptionalLong;

/**
 * Report of one GPU at one time; a value that it does not report is empty. Immutable.
 *
 * @param uuid its identity, {@code GPU-} and five groups of hexadecimal digits
 * @param utilization the part of the time in which kernels were executed, 0 to 1
 * @param memoryBytes the size of its memory in bytes
 * @param watts the power that it draws
 * @param wattsLimit the power that it may draw
 * @param joules the energy that it has consumed since its driver was loaded
 */
public record GpuReading(
        String uuid,
        OptionalDouble utilization,
        OptionalLong memoryBytes,
        OptionalLong memoryBytesInUse,
        OptionalDouble watts,
        OptionalDouble wattsLimit,
        OptionalDouble joules) {}
