package dev.nereid.distribution.flags;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.distribution.process.StartException;
import dev.nereid.server.host.HostPolicies;
import dev.nereid.server.host.HostSetting;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class HostFlagsTest {
    private static HostFlags read(String... arguments) throws UsageException {
        HostFlags host = new HostFlags();
        Flags flags = new Flags();
        host.declare(flags);
        flags.read(List.of(arguments), Map.of());
        return host;
    }

    @Test
    void takesProcessorsAndNodes() throws UsageException {
        HostFlags flags = read("--host-policy=cpu,cpu-cores=0", "--host-policy", "mine,numa-node=1");

        assertThat(flags.settings)
                .containsExactly(
                        new HostSetting("cpu", HostSetting.CPU_CORES, "0"),
                        new HostSetting("mine", HostSetting.NUMA_NODE, "1"));
        assertThat(read().settings).isEmpty();
    }

    @Test
    void refusesProcessorsThatTheMachineLacks() throws UsageException {
        HostFlags flags = read("--host-policy=cpu,cpu-cores=9999");

        assertThatThrownBy(() -> flags.policies())
                .isInstanceOf(StartException.class)
                .hasMessageMatching("--host-policy: cpu,cpu-cores=9999 \\(expected: processors among [-,0-9]+\\)");
    }

    @Test
    void refusesWhatIsNoSetting() {
        for (String wrong : List.of("cpu", "cpu-cores=1", "cpu,cores=1", "cpu,cpu-cores=a", "cpu,numa-node=x", "")) {
            assertThatThrownBy(() -> read("--host-policy=" + wrong))
                    .isInstanceOf(UsageException.class)
                    .hasMessage(
                            "--host-policy: '" + wrong + "' (expected: policy,cpu-cores=0-3,8 or policy,numa-node=N)");
        }
    }

    @Test
    void theLastValueOfASettingCounts() throws UsageException, StartException {
        HostPolicies policies = read("--host-policy=cpu,cpu-cores=65535", "--host-policy=cpu,cpu-cores=0")
                .policies();
        assertThat(policies).isNotSameAs(HostPolicies.NONE);
        HostFlags missing = read("--host-policy=cpu,cpu-cores=0", "--host-policy=cpu,cpu-cores=65535");

        assertThatThrownBy(() -> missing.policies())
                .isInstanceOf(StartException.class)
                .hasMessageStartingWith("--host-policy: cpu,cpu-cores=65535 (expected: processors among ");
    }

    @Test
    void takesParallelInstancesFromTheEnvironment() throws StartException {
        assertThat(HostFlags.parallel(Map.of())).isFalse();
        assertThat(HostFlags.parallel(Map.of(HostFlags.PARALLEL, ""))).isFalse();
        assertThat(HostFlags.parallel(Map.of(HostFlags.PARALLEL, "0"))).isFalse();
        assertThat(HostFlags.parallel(Map.of(HostFlags.PARALLEL, "1"))).isTrue();
        assertThat(HostFlags.parallel(Map.of(HostFlags.PARALLEL, "TRUE"))).isTrue();
        assertThatThrownBy(() -> HostFlags.parallel(Map.of(HostFlags.PARALLEL, "perhaps")))
                .isInstanceOf(StartException.class)
                .hasMessage("TRITON_PARALLEL_INSTANCE_LOADING: 'perhaps' (expected: true, on, 1, false, off or 0)");
    }
}
