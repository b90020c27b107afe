package dev.nereid.server.host;

import static java.util.Objects.requireNonNull;

import java.util.Optional;

/**
 * One setting of a host policy: processors or a NUMA node. Immutable.
 *
 * @param policy the policy's name: {@code cpu}, {@code gpu_0} and so on, {@code model}, or one that an
 *     {@code instance_group} names
 * @param name {@value #CPU_CORES} or {@value #NUMA_NODE}
 * @param value processors such as {@code 0-3,8}, or the number of a node
 */
public record HostSetting(String policy, String name, String value) {
    /** The processors that threads run on. */
    public static final String CPU_CORES = "cpu-cores";

    /** The NUMA node with the processors that threads run on. */
    public static final String NUMA_NODE = "numa-node";

    public static final String EXPECTED = "policy,cpu-cores=0-3,8 or policy,numa-node=N";

    public HostSetting {
        requireNonNull(policy, "policy");
        requireNonNull(name, "name");
        requireNonNull(value, "value");
        boolean right = switch (name) {
            case CPU_CORES -> CpuSet.parse(value).isPresent();
            case NUMA_NODE -> value.matches("\\d{1,5}");
            default -> false;
        };
        if (policy.isEmpty() || !right) {
            throw new IllegalArgumentException(policy + "," + name + "=" + value + " (expected: " + EXPECTED + ")");
        }
    }

    /**
     * Parses a setting of the command line.
     *
     * @param text {@code policy,setting=value}
     * @return the setting; empty if the text is none
     */
    public static Optional<HostSetting> parse(String text) {
        int comma = text.indexOf(',');
        int equal = text.indexOf('=');
        if (comma < 0 || equal < comma) {
            return Optional.empty();
        }
        try {
            return Optional.of(new HostSetting(
                    text.substring(0, comma), text.substring(comma + 1, equal), text.substring(equal + 1)));
        } catch (IllegalArgumentException e) {
            return Optional.empty();
        }
    }

    @Override
    public String toString() {
        return policy + "," + name + "=" + value;
    }
}
