package dev.nereid.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.FakeClock;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.Test;

final class TransportLogFilterTest {
    private final FakeClock clock = new FakeClock();
    private final TransportLogFilter logs = new TransportLogFilter(clock);

    private String logged(int times) {
        PrintStream before = System.err;
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        System.setErr(new PrintStream(text, true, StandardCharsets.UTF_8));
        try {
            for (int i = 0; i < times; i++) {
                LogRecord message = new LogRecord(Level.WARNING, "Stream Error");
                message.setThrown(new IllegalStateException("stream " + i));
                assertThat(logs.isLoggable(message))
                        .as("left to the JVM's own log")
                        .isFalse();
            }
        } finally {
            System.setErr(before);
        }
        return text.toString(StandardCharsets.UTF_8);
    }

    @Test
    void writesOneLineASecond() {
        assertThat(logged(100_000).length()).isLessThan(1_000);
        clock.advance(Duration.ofSeconds(1));
        assertThat(logged(10).length()).isLessThan(1_000);
    }

    @Test
    void leavesErrorsToTheHandlers() {
        LogRecord caused = new LogRecord(Level.WARNING, "task failed");
        caused.setThrown(new IllegalStateException(new OutOfMemoryError("Java heap space")));
        LogRecord thrown = new LogRecord(Level.WARNING, "task failed");
        thrown.setThrown(new AssertionError("broken"));

        assertThat(logs.isLoggable(caused)).isTrue();
        assertThat(logs.isLoggable(thrown)).isTrue();
    }
}
