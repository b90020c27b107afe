package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The launcher's choice of collector and heap. */
@Tag("slow")
final class LauncherIT {
    private static final String OPTIONS = "NEREID_JAVA_OPTIONS";
    private static final String SERIAL = "-XX:+UseSerialGC";
    private static final String G1 = "-XX:+UseG1GC";
    private static final String HEAP = "-Xms40m -XX:NewSize=24m";

    @TempDir
    private Path directory;

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-XX:+UseG1GC",
                "-XX:+UseParallelGC",
                "-XX:+UseSerialGC",
                "-XX:+UseZGC",
                "-Xmx32m",
                "-Xmx33554432",
                "-XX:MaxHeapSize=32m",
                "-Xmx128m -Xms64m -XX:+UseG1GC",
                "-Xmn8m",
                "-XX:NewSize=64m",
                "-XX:MaxRAMPercentage=10",
                "-XX:InitialHeapSize=16m"
            })
    void startsWithTheOptionsOfTheUser(String options) throws IOException, InterruptedException {
        InstalledServer.Result result = InstalledServer.run(Map.of(OPTIONS, options), "--version");

        assertThat(result.err()).isEmpty();
        assertThat(result.status()).isZero();
    }

    @ParameterizedTest
    @ValueSource(strings = {"JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"})
    void startsWithACollectorFromAVariableOfTheJvm(String variable) throws IOException, InterruptedException {
        InstalledServer.Result result = InstalledServer.run(Map.of(variable, "-XX:+UseParallelGC"), "--version");

        assertThat(result.status()).as(result.err()).isZero();
    }

    @Test
    void servesInAHeapThatIsSmallerThanItsOwnFirstOne() throws IOException, InterruptedException {
        InstalledServer.Result result = InstalledServer.run(
                Map.of(OPTIONS, "-Xmx32m"), "demo", "--exit", "--http-port=0", "--grpc-port=0", "--metrics-port=0");

        assertThat(result.status()).as(result.err()).isZero();
        assertThat(result.out()).contains("over HTTP: seven", "over gRPC: seven");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                // processors, memory in MB, memory.max in MB, cpu.max
                "0      | 16000 | max  | max 100000    | -XX:+UseSerialGC",
                "0-1    | 16000 | max  | max 100000    | -XX:+UseSerialGC",
                "0-2    | 16000 | max  | max 100000    | -XX:+UseG1GC",
                "0,4,8  | 16000 | max  | max 100000    | -XX:+UseG1GC",
                "1,3    | 16000 | max  | max 100000    | -XX:+UseSerialGC",
                "0-15   | 1900  | max  | max 100000    | -XX:+UseSerialGC",
                "0-15   | 16000 | 1024 | max 100000    | -XX:+UseSerialGC",
                "0-15   | 16000 | 4096 | max 100000    | -XX:+UseG1GC",
                "0-15   | 16000 | max  | 200000 100000 | -XX:+UseSerialGC",
                "0-15   | 16000 | max  | 250000 100000 | -XX:+UseG1GC"
            })
    void choosesTheCollectorByTheMachine(String cpus, long megabytes, String limit, String quota, String collector)
            throws IOException, InterruptedException {
        Path group = Files.createDirectories(directory.resolve("cgroup/server/inner"));
        Files.writeString(group.getParent().resolve("memory.max"), bytes(limit) + "\n");
        Files.writeString(group.resolve("cpu.max"), quota + "\n");

        assertThat(arguments(machine(cpus, megabytes, "0::/server/inner\n"), Map.of()))
                .contains(collector + " " + HEAP);
    }

    @Test
    void readsLimitsOfTheFirstVersionOfControlGroups() throws IOException, InterruptedException {
        // As in a container, where the group is mounted as the root.
        Path memory = Files.createDirectories(directory.resolve("cgroup/memory"));
        Files.writeString(memory.resolve("memory.limit_in_bytes"), bytes("1024") + "\n");
        Path launcher = machine("0-15", 16000, "5:cpu,cpuacct:/box\n4:memory:/box\n0::/\n");

        assertThat(arguments(launcher, Map.of())).contains(SERIAL);

        Files.writeString(memory.resolve("memory.limit_in_bytes"), Long.MAX_VALUE / 4096 * 4096 + "\n");
        assertThat(arguments(launcher, Map.of())).contains(G1);

        Path cpu = Files.createDirectories(directory.resolve("cgroup/cpu/box"));
        Files.writeString(cpu.resolve("cpu.cfs_period_us"), "100000\n");
        Files.writeString(cpu.resolve("cpu.cfs_quota_us"), "-1\n");
        assertThat(arguments(launcher, Map.of())).contains(G1);

        Files.writeString(cpu.resolve("cpu.cfs_quota_us"), "150000\n");
        assertThat(arguments(launcher, Map.of())).contains(SERIAL);
    }

    @Test
    void keepsTheOptionsOfTheUser() throws IOException, InterruptedException {
        Path launcher = machine("0-1", 16000, "0::/\n");

        assertThat(arguments(launcher, Map.of(OPTIONS, "-XX:+UseParallelGC")))
                .contains(HEAP, "-XX:+UseParallelGC")
                .doesNotContain(SERIAL);
        assertThat(arguments(launcher, Map.of(OPTIONS, "-Xmx39m")))
                .contains(SERIAL)
                .doesNotContain("-Xms", "NewSize");
        assertThat(arguments(launcher, Map.of(OPTIONS, "-Xmx40m"))).contains(SERIAL, HEAP);
        assertThat(arguments(launcher, Map.of(OPTIONS, "-Xmx1g -Xms256m")))
                .contains(SERIAL, "-Xmx1g -Xms256m")
                .doesNotContain(HEAP);
    }

    private static String bytes(String megabytes) {
        return megabytes.equals("max") ? megabytes : "" + Long.parseLong(megabytes) * 1024 * 1024;
    }

    /** The launcher on a machine that is written down in files. */
    private Path machine(String cpus, long megabytes, String groups) throws IOException {
        Path proc = Files.createDirectories(directory.resolve("proc"));
        Files.writeString(proc.resolve("status"), "Name:\tsh\nCpus_allowed:\tff\nCpus_allowed_list:\t" + cpus + "\n");
        Files.writeString(proc.resolve("meminfo"), "MemTotal: " + megabytes * 1024 + " kB\nMemFree: 1 kB\n");
        Files.writeString(proc.resolve("cgroup"), groups);
        Path bin = Files.createDirectories(directory.resolve("home/bin"));
        String script = Files.readString(InstalledServer.HOME.resolve("bin/nereid"))
                .replace("/proc/self/", proc + "/")
                .replace("/proc/meminfo", proc + "/meminfo")
                .replace("/sys/fs/cgroup", directory.resolve("cgroup").toString());
        return Files.writeString(bin.resolve("nereid"), script);
    }

    /** Returns the arguments that the launcher starts the JVM with. */
    private String arguments(Path launcher, Map<String, String> environment) throws IOException, InterruptedException {
        Path jdk = directory.resolve("jdk");
        Path java = Files.createDirectories(jdk.resolve("bin")).resolve("java");
        Files.writeString(java, "#!/bin/sh\necho \"$@\"\n");
        assertThat(java.toFile().setExecutable(true)).isTrue();
        Files.writeString(jdk.resolve("release"), "JAVA_VERSION=\"25.0.1\"\n");
        ProcessBuilder builder = new ProcessBuilder("/bin/sh", launcher.toString()).redirectErrorStream(true);
        builder.environment().keySet().removeIf(name -> name.contains("JAVA"));
        builder.environment().putAll(environment);
        builder.environment().put("JAVA_HOME", jdk.toString());
        Process process = builder.start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(output).isZero();
        return output;
    }
}
