package dev.nereid.backend.python.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.python.execute.PythonServer;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;

/** Tests of the log and the metrics of models with a real Python. */
final class ReportsIT {
    private static final Logger NEREID = Logger.getLogger("nereid");

    @Test
    void logsWithItsLevels() {
        try (PythonServer server = PythonServer.scripted()) {
            assertThat(server.runText("""
                    import logging
                    pb.Logger.log_info("an info")
                    pb.Logger.log_warn("a warning ä")
                    pb.Logger.log_error("an error {0} %s")
                    pb.Logger.log("by level", pb.Logger.WARNING)
                    pb.Logger.log_verbose("hidden")
                    print("printed {0}")
                    print("to stderr", file=sys.stderr)
                    logging.getLogger("lib").warning("of logging")
                    threading.Thread(target=lambda: pb.Logger.log_info("of a thread")).start()
                    return [out("ok")]
                    """)).isEqualTo("ok");
            for (String line : List.of(
                    "INFO an info",
                    "WARNING a warning ä",
                    "SEVERE an error {0} %s",
                    "WARNING by level",
                    "INFO of a thread")) {
                String level = line.substring(0, line.indexOf(' '));
                String text = line.substring(level.length() + 1);
                PythonServer.await(
                        line,
                        () -> server.log().lines(text).stream()
                                .anyMatch(logged -> logged.startsWith(level + " ") && logged.contains(text)));
            }
            PythonServer.await(
                    "print",
                    () -> server.log().lines("[python scripted_0] printed {0}").size() == 1);
            PythonServer.await(
                    "stderr",
                    () -> server.log().lines("[python scripted_0] to stderr").size() == 1);
            PythonServer.await("logging", () -> server.log().lines("of logging").size() == 1);
            assertThat(server.log().lines("hidden")).isEmpty();
        }
    }

    @Test
    void followsTheLevelOfTheServer() {
        Level before = NEREID.getLevel();
        try (PythonServer server = PythonServer.scripted()) {
            String code = "pb.Logger.log_verbose('detail'); pb.Logger.log_info('usual'); return [out('ok')]";
            server.runText(code);
            PythonServer.await("info", () -> server.log().lines("usual").size() == 1);
            assertThat(server.log().lines("detail")).isEmpty();
            NEREID.setLevel(Level.ALL);
            PythonServer.await("verbose", () -> {
                server.runText(code);
                return !server.log().lines("detail").isEmpty();
            });
            NEREID.setLevel(Level.SEVERE);
            PythonServer.await("silence", () -> {
                int count = server.log().lines("usual").size();
                server.runText(code);
                server.runText("time.sleep(0.05); return [out('ok')]");
                return server.log().lines("usual").size() == count;
            });
        } finally {
            NEREID.setLevel(before);
        }
    }

    @Test
    void keepsMetrics() {
        try (PythonServer server = PythonServer.scripted()) {
            assertThat(server.runText("""
                    said = []
                    def tried(f):
                        try:
                            said.append(f())
                        except Exception as e:
                            said.append(f"{type(e).__name__}: {e}")
                    F = pb.MetricFamily
                    self.family = F(name="test_requests", description="d", kind=F.COUNTER)
                    a = self.family.Metric(labels={"k": "v"})
                    b = self.family.Metric(labels={"k": "v"})
                    a.increment(2); b.increment(3.5)
                    tried(a.value)
                    tried(lambda: a.increment(-1))
                    tried(lambda: a.set(1))
                    tried(lambda: a.observe(1))
                    gauge = F(name="test_gauge", description="d", kind=F.GAUGE)
                    g = gauge.Metric()
                    g.set(7); g.increment(-2)
                    tried(g.value)
                    tried(lambda: F(name="test_gauge", description="d", kind=F.COUNTER))
                    histogram = F(name="test_histogram", description="d", kind=F.HISTOGRAM)
                    h = histogram.Metric(labels={}, buckets=[0.1, 1])
                    h.observe(0.5)
                    tried(h.value)
                    tried(lambda: histogram.Metric(labels={}))
                    tried(lambda: histogram.Metric(labels={}, buckets=[2, 1]))
                    tried(lambda: gauge.Metric(labels={}, buckets=[1]))
                    tried(lambda: gauge.Metric(labels=[1]))
                    return [out("\\n".join(str(s) for s in said))]
                    """).lines().toList())
                    .satisfiesExactly(
                            line -> assertThat(line).isEqualTo("5.5"),
                            line -> assertThat(line)
                                    .contains(
                                            "Failed to increment metric value: ",
                                            "can only be incremented" + " monotonically by non-negative values."),
                            line -> assertThat(line)
                                    .contains("Failed to set metric value: ", "COUNTER does not support Set"),
                            line -> assertThat(line).contains("COUNTER does not support Observe"),
                            line -> assertThat(line).isEqualTo("5.0"),
                            line -> assertThat(line).contains("Error when creating MetricFamily: "),
                            line -> assertThat(line).contains("HISTOGRAM does not support Value"),
                            line -> assertThat(line).contains("Missing required buckets."),
                            line -> assertThat(line).contains("Error when creating Metric: "),
                            line -> assertThat(line).contains("Unexpected buckets found."),
                            line -> assertThat(line).contains("Failed to create metric. Labels must be a dictionary."));
        }
    }
}
