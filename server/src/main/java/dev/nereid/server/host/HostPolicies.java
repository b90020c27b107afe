package dev.nereid.server.host;

import dev.nereid.scheduler.instance.Instance;
import dev.nereid.spi.Device;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Thread placements of instances by the names of host policies. Immutable but for the warnings already logged; safe for
 * use by any thread.
 *
 * <p>If the operating system does not support thread affinity, threads run anywhere, and each policy is reported by one
 * warning.
 */
public final class HostPolicies {
    private static final Logger LOG = LoggerFactory.getLogger(HostPolicies.class);
    private static final Path MACHINE = Path.of("/sys/devices/system");

    /** No policy: threads run anywhere. */
    public static final HostPolicies NONE =
            new HostPolicies(Map.of(), ThreadAffinity.ofTheSystem(), HostPolicies::warn);

    private final Map<String, Instance.ThreadPlacement> placements = new HashMap<>();

    /**
     * Creates policies.
     *
     * @param policies the processors of each
     * @param affinity binds threads to processors
     * @param warning receives a policy that cannot be applied, and the reason
     */
    HostPolicies(Map<String, CpuSet> policies, ThreadAffinity affinity, BiConsumer<String, String> warning) {
        policies.forEach((policy, processors) -> {
            AtomicBoolean warned = new AtomicBoolean();
            placements.put(
                    policy,
                    () -> affinity.bind(processors).ifPresent(problem -> {
                        if (warned.compareAndSet(false, true)) {
                            warning.accept(policy, problem);
                        }
                    }));
        });
    }

    /**
     * Looks up the processors of policies on this machine.
     *
     * @param settings the settings of all policies; of a policy with both, the processors apply and not the node
     * @throws IllegalArgumentException if a setting names processors or a node that the machine does not have
     */
    public static HostPolicies of(List<HostSetting> settings) {
        return new HostPolicies(processors(settings, MACHINE), ThreadAffinity.ofTheSystem(), HostPolicies::warn);
    }

    /**
     * Looks up the processors of each policy. The last value of a duplicate setting applies.
     *
     * @param machine the directory in which the operating system describes processors and nodes; may be missing
     */
    static Map<String, CpuSet> processors(List<HostSetting> settings, Path machine) {
        Map<String, CpuSet> policies = new HashMap<>();
        Map<String, HostSetting> last = new LinkedHashMap<>();
        settings.forEach(setting -> last.put(setting.policy() + "," + setting.name(), setting));
        for (HostSetting setting : last.values()) {
            if (setting.name().equals(HostSetting.CPU_CORES)) {
                policies.put(setting.policy(), processors(setting, machine));
            } else {
                CpuSet node = node(setting, machine);
                if (!last.containsKey(setting.policy() + "," + HostSetting.CPU_CORES)) {
                    policies.put(setting.policy(), node);
                }
            }
        }
        return policies;
    }

    private static CpuSet processors(HostSetting setting, Path machine) {
        CpuSet requested = CpuSet.parse(setting.value()).orElseThrow();
        Optional<CpuSet> online = read(machine.resolve("cpu/online"));
        if (online.isPresent() && !requested.isWithin(online.get())) {
            throw new IllegalArgumentException(setting + " (expected: processors among " + online.get() + ")");
        }
        return requested;
    }

    private static CpuSet node(HostSetting setting, Path machine) {
        int number = Integer.parseInt(setting.value());
        return read(machine.resolve("node/node" + number + "/cpulist"))
                .orElseThrow(() -> new IllegalArgumentException(setting + " (expected: a node of this machine that has"
                        + " processors"
                        + read(machine.resolve("node/online"))
                                .map(nodes -> ", of " + nodes)
                                .orElse("")
                        + ")"));
    }

    private static Optional<CpuSet> read(Path file) {
        try {
            return CpuSet.parse(Files.readString(file));
        } catch (IOException e) { // another operating system, or no such node
            return Optional.empty();
        }
    }

    /**
     * Names the policy of an instance.
     *
     * @param explicit the policy that its group names; empty for none
     * @param device where it runs
     * @return {@code explicit}, or else {@code cpu}, {@code gpu_} with the number of the processor, or {@code model}
     */
    public static String name(String explicit, Device device) {
        if (!explicit.isEmpty()) {
            return explicit;
        }
        return switch (device.kind()) {
            case CPU -> "cpu";
            case GPU -> "gpu_" + device.id();
            case MODEL -> "model";
        };
    }

    /**
     * Returns the placement of the threads of a policy.
     *
     * @param policy the policy's name
     * @return {@link Instance.ThreadPlacement#ANYWHERE} if nothing was set for it
     */
    public Instance.ThreadPlacement placement(String policy) {
        return placements.getOrDefault(policy, Instance.ThreadPlacement.ANYWHERE);
    }

    private static void warn(String policy, String problem) {
        LOG.atWarn()
                .addKeyValue("policy", policy)
                .addKeyValue("reason", problem)
                .log("threads are not kept on the processors of their host policy (policy '{}'): {}", policy, problem);
    }
}
