package dev.nereid.distribution.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.AccumulatorModel;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TestPaths;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Sequences of a model are counted, over its reload, too. */
class SequenceMetricsIT {
    private static final int SECONDS = 20;
    private static final String START = "\"sequence_start\":true";
    private static final String END = "\"sequence_end\":true";

    @TempDir
    private Path directory;

    @Test
    void sequencesAreCountedOverAReload() throws Exception {
        Repository models =
                new Repository(directory).copyOf(TestPaths.checkout().resolve("examples/plugin-models/sequence"));
        Path config = directory.resolve("sequence/config.pbtxt");
        String text = Files.readString(config).replace("microseconds: 5000000", "microseconds: 900000000")
                + "instance_group [ { count: 2 kind: KIND_CPU } ]\n";
        Files.writeString(config, text);
        try (InstalledServer server = InstalledServer.serve(
                models.directory(),
                "--model-control-mode=explicit",
                "--load-model=sequence",
                "--backend-directory=" + TestPaths.checkout().resolve("examples/plugins"))) {
            send(server, 1, START);
            send(server, 2, START);
            send(server, 3, START + "," + END);
            Eventually.holds("ended", SECONDS, () -> lines(server).contains(ended("end", 1)));
            assertThat(lines(server))
                    .contains(
                            gauge("live", 2),
                            gauge("backlog", 0),
                            gauge("slots_used", 2),
                            gauge("slots", 16),
                            gauge("state_bytes", 0),
                            ended("idle", 0));

            Files.writeString(config, text + "parameters { key: \"p\" value { string_value: \"x\" } }\n");
            assertThat(server.post("/v2/repository/models/sequence/load", "{}").statusCode())
                    .isEqualTo(200);
            send(server, 4, START);
            assertThat(lines(server)).contains(gauge("live", 3), gauge("slots_used", 3), ended("end", 1));
            send(server, 1, END);
            send(server, 4, END);
            Eventually.holds("ended", SECONDS, () -> lines(server).contains(ended("end", 3)));
            assertThat(lines(server)).contains(gauge("live", 1));

            assertThat(server.get("/v2/models/sequence/stats").body()).doesNotContain("sequence_");
        }
    }

    @Test
    void statesAreCountedWhileTheirSequencesLive() throws Exception {
        Repository models = new Repository(directory);
        new AccumulatorModel("FP32", "INT64", false)
                .addTo(models, "sums", "max_sequence_idle_microseconds: 900000000 direct { }", false);
        try (InstalledServer server = InstalledServer.serve(models.directory())) {
            sum(server, 1, START);
            sum(server, 2, START);
            Eventually.holds("states", SECONDS, () -> lines(server).contains(state("bytes", 2 * Float.BYTES)));
            sum(server, 1, END);
            Eventually.holds("one left", SECONDS, () -> lines(server).contains(state("bytes", Float.BYTES)));
            sum(server, 2, "\"a\":0");
            sum(server, 2, END);
            Eventually.holds("none left", SECONDS, () -> lines(server).contains(state("bytes", 0)));
            assertThat(lines(server))
                    .anyMatch(line -> line.startsWith(state("copies_total", 0).replace(" 0", " ")));
        }
    }

    private static void sum(InstalledServer server, int id, String flags) throws IOException, InterruptedException {
        String body = "{\"parameters\":{\"sequence_id\":" + id + "," + flags
                + "},\"inputs\":[{\"name\":\"INPUT\",\"datatype\":\"FP32\",\"shape\":[1,1],\"data\":[1]}]}";
        assertThat(server.post("/v2/models/sums/infer", body).statusCode()).isEqualTo(200);
    }

    private static String state(String name, int value) {
        return "nereid_sequence_state_" + name + "{model=\"sums\",version=\"1\"} " + value;
    }

    private static void send(InstalledServer server, int id, String flags) throws IOException, InterruptedException {
        String body = "{\"parameters\":{\"sequence_id\":" + id + "," + flags
                + "},\"inputs\":[{\"name\":\"INPUT\",\"datatype\":\"INT32\",\"shape\":[1,1],\"data\":[1]}]}";
        assertThat(server.post("/v2/models/sequence/infer", body).statusCode()).isEqualTo(200);
    }

    private static String gauge(String name, int value) {
        return "nereid_sequence_" + name + "{model=\"sequence\",version=\"1\"} " + value;
    }

    private static String ended(String reason, int count) {
        return "nereid_sequence_ended_total{model=\"sequence\",reason=\"" + reason + "\",version=\"1\"} " + count;
    }

    private static List<String> lines(InstalledServer server) {
        try {
            return server.metrics("GET", "/metrics").body().lines().toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }
}
