package dev.nereid.cuda;

/**
 * A GPU of this machine. Immutable.
 *
 * @param id its number, from 0 in the order of the driver
 * @param name its name, such as {@code NVIDIA H100 80GB HBM3}
 * @param uuid its identity, {@code GPU-} and five groups of hexadecimal digits
 * @param major the major part of its compute capability
 * @param minor the minor part of its compute capability
 * @param memoryBytes the size of its memory in bytes
 */
public record Gpu(int id, String name, String uuid, int major, int minor, long memoryBytes) {
    /** Returns the compute capability as text, such as {@code 9.0}. */
    public String computeCapability() {
        return major + "." + minor;
    }
}
