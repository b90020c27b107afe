package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.MarkdownPage;
import dev.nereid.distribution.testing.PageScript;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The day of an operator, by the commands of its page, and the figures on it. */
@Timeout(300)
@Tag("slow")
final class OperationsIT {
    private static final String ARCHIVE = "nereid-0.1.0-SNAPSHOT.tar.gz";
    private static final int STEPS = 10;
    private static final long MIB = 1 << 20;

    /** All commands take half a minute. */
    private static final Duration DAY = Duration.ofMinutes(4);

    @TempDir
    private Path root;

    @BeforeAll
    static void needsPrograms() throws Exception {
        for (String program : List.of("prometheus", "jq", "openssl", "curl")) {
            Tool.require(program);
        }
    }

    @Test
    void theDayInTenCommands() throws Exception {
        MarkdownPage day = MarkdownPage.of("docs/operations.md").section("A day in ten commands");
        assertThat(day.commands()).hasSize(STEPS);
        Files.createSymbolicLink(root.resolve(ARCHIVE), InstalledServer.HOME.resolveSibling(ARCHIVE));

        String out = run(String.join("", day.commands()));

        assertThat(out).contains("\"0.1.0-SNAPSHOT\"").containsPattern("(?m)^15$");
        assertThat(out).containsPattern("(?m)^stopped at 20\\d\\d-\\d\\d-\\d\\dT");
        assertThat(out).containsPattern("(?m)^add_sub +1 +onnxruntime +valid$");
        assertEveryAcceptedRequestCompleted(out);
        assertTheLogIsCleanAndOfThreeStarts();
    }

    /** Under load the statuses are 200, until the server refuses a request or a connection. */
    private static void assertEveryAcceptedRequestCompleted(String out) {
        Map<String, Integer> counts = Pattern.compile("(?m)^ *(\\d+) (\\d{3})$")
                .matcher(out)
                .results()
                .collect(Collectors.toMap(count -> count.group(2), count -> Integer.valueOf(count.group(1))));
        assertThat(counts.keySet()).isSubsetOf("000", "200", "503");
        assertThat(counts.get("000")).as("connections refused").isEqualTo(1);
        assertThat(counts.get("200")).as("requests completed").isGreaterThanOrEqualTo(20);
        assertThat(counts.getOrDefault("503", 0)).as("requests refused").isLessThan(5);
    }

    private void assertTheLogIsCleanAndOfThreeStarts() throws IOException {
        List<String> log = Files.readAllLines(root.resolve("var/log/nereid/nereid.log"));
        assertThat(log).allMatch(line -> line.startsWith("{\"time\":\"") && line.endsWith("}"));
        assertThat(log)
                .filteredOn(line -> line.contains("\"message\":\"serving\""))
                .hasSize(3);
        assertThat(log)
                .filteredOn(line -> line.contains("\"message\":\"stopped\""))
                .hasSize(3);
        assertThat(log).noneMatch(line -> line.contains("\"level\":\"ERROR\"") || line.contains("did you mean"));
    }

    /** Runs commands with the paths of the page below the directory of the test, and ports that are free. */
    private String run(String commands) throws IOException, InterruptedException {
        String moved = commands;
        for (String path : List.of("/opt/nereid", "/var/", "/etc/nereid")) {
            moved = moved.replace(path, root + path);
        }
        Map<String, Integer> ports = Map.of(
                "localhost:8000", PageScript.freePort(),
                "localhost:8002", PageScript.freePort(),
                "localhost:9090", PageScript.freePort());
        String settings = "move() { sed -i 's#=/var/#=" + root + "/var/#; s#=/etc/#=" + root + "/etc/#'"
                + " " + root + "/etc/nereid/nereid.env; sed -i 's#localhost:8002#localhost:"
                + ports.get("localhost:8002") + "#' " + root + "/opt/nereid-1/deploy/prometheus/prometheus.yml; }\n";
        moved = moved.replaceFirst("(?m)^certificate$", "certificate\nmove");
        for (Map.Entry<String, Integer> port : ports.entrySet()) {
            moved = moved.replace(port.getKey(), "localhost:" + port.getValue());
        }
        Path output = root.resolve("output.txt");
        ProcessBuilder shell = new ProcessBuilder(
                        "/bin/sh",
                        "-c",
                        "trap 'kill $server $prometheus $load 2>/dev/null || true' EXIT\nset -e\n" + settings + moved)
                .directory(root.toFile())
                .redirectErrorStream(true)
                .redirectOutput(output.toFile());
        shell.environment()
                .putAll(Map.of(
                        "NEREID_HTTP_PORT", String.valueOf(ports.get("localhost:8000")),
                        "NEREID_METRICS_PORT", String.valueOf(ports.get("localhost:8002")),
                        "NEREID_GRPC_PORT", "0",
                        "JAVA_HOME", System.getProperty("java.home")));
        Process process = shell.start();
        boolean ended = process.waitFor(DAY.toSeconds(), TimeUnit.SECONDS);
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        String out = Files.readString(output);
        assertThat(ended).as(out).isTrue();
        assertThat(process.exitValue()).as(out).isZero();
        return out;
    }

    /** The heap is what the JVM makes of the memory; the other columns follow from it. */
    @Test
    void theTableOfMemoryIsRight() throws Exception {
        String page = Files.readString(InstalledServer.CHECKOUT.resolve("docs/operations.md"));
        Matcher row = Pattern.compile(
                        "\\| (\\d+) GiB \\| (\\d+) MiB \\| (\\d+) MiB \\| (\\d+) MiB \\| (\\d+) \\| (\\d+) MiB \\|")
                .matcher(page);
        int rows = 0;
        while (row.find()) {
            int gibibytes = Integer.parseInt(row.group(1));
            long heap = heap(gibibytes);
            long tensors = (gibibytes * 1024L * MIB - heap) / 2;
            assertThat(Stream.of(2, 3, 4, 5, 6).map(group -> Long.parseLong(row.group(group))))
                    .containsExactly(
                            heap / MIB,
                            tensors / MIB,
                            tensors * 3 / 4 / MIB,
                            Math.min(100_000, heap / (16 << 10)),
                            tensors / MIB);
            rows++;
        }
        assertThat(rows).isEqualTo(3);
    }

    /** Returns the largest heap that a server reports, with the collector of the launcher for three processors. */
    private static long heap(int gibibytes) throws IOException, InterruptedException {
        String collector = gibibytes < 2 ? "-XX:+UseSerialGC" : "-XX:+UseG1GC";
        InstalledServer.Result result = InstalledServer.run(
                Map.of("NEREID_JAVA_OPTIONS", collector + " -XX:MaxRAM=" + gibibytes + "g"),
                "demo",
                "--exit",
                "--http-port=0",
                "--grpc-port=0",
                "--metrics-port=0");
        assertThat(result.status()).as(result.err()).isZero();
        return Long.parseLong(result.out().replaceAll("(?s).*\nheap +(\\d+) .*", "$1"));
    }
}
