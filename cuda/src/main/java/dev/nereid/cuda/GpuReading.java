package dev.nereid.cuda;

import java.util.OptionalDouble;
import java.util.OptionalLong;

/**
 * What one GPU reports at one time; what it does not report is empty. Immutable.
 *
 * @param uuid its identity, {@code GPU-} and five groups of hexadecimal digits
 * @param utilization the part of the time in which kernels were executed, 0 to 1
 * @param memoryBytes the size of its memory in bytes
 * @param memoryBytesInUse how much of it all processes use, in bytes
 * @param watts what it draws
 * @param wattsLimit what it may draw
 * @param joules what it has consumed since its driver was loaded
 */
public record GpuReading(
        String uuid,
        OptionalDouble utilization,
        OptionalLong memoryBytes,
        OptionalLong memoryBytesInUse,
        OptionalDouble watts,
        OptionalDouble wattsLimit,
        OptionalDouble joules) {}
