package dev.nereid.backend.python.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Parameters;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.FakeModelContext;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class ModelLogTest {
    private final FakeClock clock = new FakeClock();
    private final FakeDelays delays = new FakeDelays(clock);
    private final FakeModelContext context =
            new FakeModelContext(ModelSettings.builder("m", 1).build(), Path.of("m"));
    private final ModelLog model = new ModelLog(context, clock, delays);
    private final ProcessLog log = model.process("m_0");
    private final SentFrames sent = new SentFrames();

    /** A context that says once which level its log has. */
    private record SilentContext(FakeModelContext context) implements ModelContext {
        @Override
        public ModelSettings settings() {
            return context.settings();
        }

        @Override
        public Parameters parameters() {
            return context.parameters();
        }

        @Override
        public Path modelDirectory() {
            return context.modelDirectory();
        }

        @Override
        public Path versionDirectory() {
            return context.versionDirectory();
        }

        @Override
        public List<Device> instances() {
            return context.instances();
        }

        @Override
        public System.Logger logger() {
            return context.logger();
        }
    }

    private List<String> lines() {
        return context.logger().lines();
    }

    private static FrameReader line(int level, long line, String text) {
        return SentFrames.frame(
                FrameType.LOG,
                level,
                line,
                body -> body.text("/models/m/1/model.py").text(text));
    }

    @Test
    void writesLinesOfTheModelWithTheirPlace() {
        log.onLog(line(0, 7, "an {0} info"));
        log.onLog(line(1, 8, "a warning"));
        log.onLog(line(2, 9, "an error"));
        log.onLog(line(3, 10, "a detail"));

        assertThat(lines())
                .containsExactly(
                        "INFO /models/m/1/model.py:7] an {0} info",
                        "WARNING /models/m/1/model.py:8] a warning",
                        "ERROR /models/m/1/model.py:9] an error",
                        "DEBUG /models/m/1/model.py:10] a detail");
    }

    @Test
    void takesLineNumbersOfAnySize() {
        log.onLog(line(0, -1, "a"));
        log.onLog(line(0, 1L << 40, "b"));

        assertThat(lines())
                .containsExactly("INFO /models/m/1/model.py:2147483647] a", "INFO /models/m/1/model.py:2147483647] b");
    }

    @Test
    void writesWhatTheProcessPrintsWithTheInstance() {
        log.line("100% {0} 'done'");
        log.write(Level.WARNING, "slow");

        assertThat(lines()).containsExactly("INFO [python m_0] 100% {0} 'done'", "WARNING [python m_0] slow");
    }

    @Test
    void refusesMalformedLines() {
        assertThatThrownBy(() -> log.onLog(line(4, 1, "a")))
                .isInstanceOf(FrameException.class)
                .hasMessage("level of a log line: 4 (expected: 0 to 3)");
        assertThatThrownBy(() -> log.onLog(line(0, 1, "a".repeat(65537))))
                .isInstanceOf(FrameException.class)
                .hasMessage("text of a log line: 65537 bytes (expected: at most 65536)");
        assertThatThrownBy(() -> log.onLog(SentFrames.frame(
                        FrameType.LOG, 0, 1, body -> body.text("f".repeat(4097)).text(""))))
                .isInstanceOf(FrameException.class)
                .hasMessageStartingWith("file of a log line: 4097 bytes");
        assertThatThrownBy(() -> log.onLog(SentFrames.frame(FrameType.LOG, 0, 1, body -> body.u32(100))))
                .isInstanceOf(FrameException.class)
                .hasMessageStartingWith("file of a log line: 100 bytes in a frame");
        assertThat(lines()).isEmpty();
    }

    @Test
    void boundsTheLinesOfASecond() {
        for (int i = 0; i < ProcessLog.MAX_LINES + 3; i++) {
            log.onLog(line(0, 1, "a"));
        }
        assertThat(lines()).hasSize(ProcessLog.MAX_LINES);

        delays.advance(Duration.ofSeconds(1));
        log.onLog(line(0, 1, "b"));

        assertThat(lines().subList(ProcessLog.MAX_LINES, lines().size()))
                .containsExactly(
                        "WARNING [python m_0] … 3 lines of the model's log left out (expected: at most 5000 lines and"
                                + " 16 MiB a second)",
                        "INFO /models/m/1/model.py:1] b");
        assertThat(delays.size()).isZero();
    }

    @Test
    void boundsTheBytesOfASecond() {
        String text = "x".repeat(64 << 10);
        for (int i = 0; i < 300; i++) {
            log.onLog(line(0, 1, text));
        }

        assertThat(lines()).hasSize(255);
    }

    @Test
    void reportsAtTheEndWhatWasLeftOut() {
        for (int i = 0; i < ProcessLog.MAX_LINES + 1; i++) {
            log.onLog(line(0, 1, "a"));
        }
        log.close();

        assertThat(lines()).last().asString().startsWith("WARNING [python m_0] … 1 line of the model's log left out");
    }

    @Test
    void sendsLevelsNowAndAfterChanges() {
        assertThat(model.levels()).isEqualTo(15);
        log.sendLevels(sent);
        assertThat(sent.next(FrameType.LOG_LEVELS).id()).isEqualTo(15);

        context.logger().setLevel(Level.INFO);
        assertThat(sent.next(FrameType.LOG_LEVELS).id()).isEqualTo(7);
        context.logger().setLevel(Level.WARNING);
        assertThat(sent.next(FrameType.LOG_LEVELS).id()).isEqualTo(6);
        context.logger().setLevel(Level.ERROR);
        assertThat(sent.next(FrameType.LOG_LEVELS).id()).isEqualTo(4);
        context.logger().setLevel(Level.OFF);
        assertThat(sent.next(FrameType.LOG_LEVELS).id()).isZero();
        assertThat(model.levels()).isZero();
    }

    @Test
    void sendsAChangedLevelBeforeTheServerNotifies() {
        context.logger().setLevel(Level.INFO);
        ModelLog changing = new ModelLog(new SilentContext(context), clock, delays);
        ProcessLog process = changing.process("m_0");
        process.sendLevels(sent);
        assertThat(sent.next(FrameType.LOG_LEVELS).id()).isEqualTo(7);

        process.refreshLevels();
        assertThat(sent.isEmpty()).isTrue();
        context.logger().setLevel(Level.DEBUG);
        process.refreshLevels();
        process.refreshLevels();

        assertThat(sent.next(FrameType.LOG_LEVELS).id()).isEqualTo(15);
        assertThat(sent.isEmpty()).isTrue();
        context.logger().setLevel(Level.ERROR);
        process.refreshLevels();
        assertThat(sent.next(FrameType.LOG_LEVELS).id()).isEqualTo(4);
    }

    @Test
    void writesErrorsWithTheirTextFirstAndTheTracebackInPlaceOfItsFrames() {
        log.error("Failed: ValueError: a\n\nAt:\n  model.py(3): execute\n", "Traceback …\nValueError: a");
        log.error("ValueError: b\n\nAt:\n  model.py(3): execute\n", "");

        assertThat(lines())
                .containsExactly(
                        "ERROR [python m_0] Failed: ValueError: a\nTraceback …\nValueError: a",
                        "ERROR [python m_0] ValueError: b\n\nAt:\n  model.py(3): execute\n");
    }

    @Test
    void boundsTheErrorsOfASecond() {
        for (int i = 0; i < ProcessLog.MAX_LINES + 3; i++) {
            log.error("a", "b");
        }
        assertThat(lines()).hasSize(ProcessLog.MAX_LINES);
    }

    @Test
    void sendsLevelsToAllProcessesThatLive() {
        ProcessLog other = model.process("m_1");
        SentFrames sentToOther = new SentFrames();
        log.sendLevels(sent);
        other.sendLevels(sentToOther);
        int _ = sent.next(FrameType.LOG_LEVELS).count();
        int _ = sentToOther.next(FrameType.LOG_LEVELS).count();

        log.close();
        context.logger().setLevel(Level.DEBUG);

        assertThat(sent.isEmpty()).isTrue();
        assertThat(sentToOther.next(FrameType.LOG_LEVELS).id()).isEqualTo(15);
        model.close();
        context.logger().setLevel(Level.INFO);
        assertThat(sentToOther.isEmpty()).isTrue();
    }
}
