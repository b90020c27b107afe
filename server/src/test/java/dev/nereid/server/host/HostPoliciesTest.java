package dev.nereid.server.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.nereid.scheduler.instance.Instance;
import dev.nereid.spi.Device;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests host policies, and the choice of the one that an instance follows. */
final class HostPoliciesTest {
    @TempDir
    private Path machine;

    @BeforeEach
    void setUp() throws IOException {
        file("cpu/online", "0-7\n");
        file("node/online", "0-1\n");
        file("node/node0/cpulist", "0-3\n");
        file("node/node1/cpulist", "4-7\n");
        file("node/node2/cpulist", "\n"); // a node of memory alone
    }

    @Test
    void namesThePolicyOfAnInstance() {
        assertThat(HostPolicies.name("", Device.CPU)).isEqualTo("cpu");
        assertThat(HostPolicies.name("", new Device(Device.Kind.GPU, 3))).isEqualTo("gpu_3");
        assertThat(HostPolicies.name("", new Device(Device.Kind.MODEL, 0))).isEqualTo("model");
        assertThat(HostPolicies.name("mine", Device.CPU)).isEqualTo("mine");
    }

    @Test
    void placesNothingWithoutASetting() {
        assertThat(HostPolicies.NONE.placement("cpu")).isSameAs(Instance.ThreadPlacement.ANYWHERE);
        HostPolicies policies = policies("mine,cpu-cores=1");
        assertThat(policies.placement("cpu")).isSameAs(Instance.ThreadPlacement.ANYWHERE);
        assertThat(policies.placement("mine")).isNotSameAs(Instance.ThreadPlacement.ANYWHERE);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "0 | 0",
                "0-3 | 0-3",
                "0-3,8 | 0-3,8",
                "8,0-3 | 0-3,8",
                "1,2,3,5-5 | 1-3,5",
                "0-1,1-2 | 0-2",
                "65535 | 65535"
            })
    void readsListsOfProcessors(String text, String normal) {
        assertThat(CpuSet.parse(text)).map(CpuSet::toString).contains(normal);
        assertThat(CpuSet.parse(normal)).isEqualTo(CpuSet.parse(text));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "a", "3-1", "-1", "1-", "1,,2", "1,", "65536", "0-99999999999", "1 2", "0x1"})
    void refusesOtherLists(String text) {
        assertThat(CpuSet.parse(text)).isEmpty();
    }

    @Test
    void setsOneBitForEachProcessor() {
        assertThat(CpuSet.parse("0,2,64").orElseThrow().words()).containsExactly(0b101, 1);
    }

    @Test
    void readsSettings() {
        assertThat(HostSetting.parse("gpu_0,cpu-cores=0-3,8"))
                .contains(new HostSetting("gpu_0", HostSetting.CPU_CORES, "0-3,8"));
        assertThat(HostSetting.parse("gpu_0,numa-node=1"))
                .contains(new HostSetting("gpu_0", HostSetting.NUMA_NODE, "1"));
        for (String wrong : List.of(
                "",
                "cpu",
                "cpu,cpu-cores",
                "cpu-cores=1",
                ",cpu-cores=1",
                "cpu,cores=1",
                "cpu,numa-node=a",
                "cpu,numa-node=-1",
                "cpu,cpu-cores=",
                "cpu,cpu-cores=b")) {
            assertThat(HostSetting.parse(wrong)).as(wrong).isEmpty();
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new HostSetting("cpu", "cores", "1"))
                .withMessage("cpu,cores=1 (expected: policy,cpu-cores=0-3,8 or policy,numa-node=N)");
    }

    @Test
    void takesTheProcessorsOfANode() {
        assertThat(HostPolicies.processors(settings("p,numa-node=1"), machine))
                .containsOnly(Map.entry("p", cpus("4-7")));
    }

    @Test
    void prefersProcessorsToTheirNode() {
        assertThat(HostPolicies.processors(settings("p,numa-node=1", "p,cpu-cores=4"), machine))
                .containsOnly(Map.entry("p", cpus("4")));
        assertThat(HostPolicies.processors(settings("p,cpu-cores=4", "p,numa-node=1", "q,cpu-cores=0"), machine))
                .containsOnly(Map.entry("p", cpus("4")), Map.entry("q", cpus("0")));
    }

    @Test
    void refusesWhatTheMachineDoesNotHave() {
        assertRefused("p,cpu-cores=6-8 (expected: processors among 0-7)", "p,cpu-cores=6-8");
        assertRefused("p,numa-node=5 (expected: a node of this machine that has processors, of 0-1)", "p,numa-node=5");
        assertRefused("p,numa-node=2 (expected: a node of this machine that has processors, of 0-1)", "p,numa-node=2");
    }

    @Test
    void theLastValueOfASettingCounts() {
        assertThat(HostPolicies.processors(
                        settings("p,cpu-cores=9", "q,cpu-cores=1", "p,numa-node=1", "p,cpu-cores=2"), machine))
                .containsOnly(Map.entry("p", cpus("2")), Map.entry("q", cpus("1")));
    }

    @Test
    void takesAnyProcessorWhereTheSystemListsNone() throws IOException {
        Files.delete(machine.resolve("cpu/online"));

        assertThat(HostPolicies.processors(settings("p,cpu-cores=99"), machine))
                .containsOnly(Map.entry("p", cpus("99")));
    }

    private void assertRefused(String text, String... settings) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> HostPolicies.processors(settings(settings), machine))
                .withMessage(text);
    }

    private static CpuSet cpus(String text) {
        return CpuSet.parse(text).orElseThrow();
    }

    private static HostPolicies policies(String... settings) {
        return new HostPolicies(
                HostPolicies.processors(settings(settings), Path.of("no-such-machine")),
                new ThreadAffinity(name -> Optional.empty()),
                (policy, problem) -> {});
    }

    private static List<HostSetting> settings(String... texts) {
        return List.of(texts).stream()
                .map(text -> HostSetting.parse(text).orElseThrow())
                .toList();
    }

    private void file(String name, String content) throws IOException {
        Path file = machine.resolve(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, content);
    }
}
