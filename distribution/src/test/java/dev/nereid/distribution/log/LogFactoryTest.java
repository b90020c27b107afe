package dev.nereid.distribution.log;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.Logger;

/** Escapes and limits of log lines with content from clients. */
class LogFactoryTest {
    private final ByteArrayOutputStream written = new ByteArrayOutputStream();
    private final AtomicLong nanos = new AtomicLong();
    private final Queue<Runnable> later = new ArrayDeque<>();
    private final LogFactory factory = new LogFactory(
            new PrintStream(written, false, StandardCharsets.UTF_8),
            InstantSource.fixed(Instant.EPOCH),
            nanos::get,
            later::add);
    private final Logger log = factory.getLogger("dev.nereid.http.Routes");

    @BeforeEach
    void nameTheThread() {
        Thread.currentThread().setName("loop");
    }

    @Test
    void writesDataBeforeTheText() {
        log.atInfo().addKeyValue("model", "m").addKeyValue("version", 1).log("loaded in {} ms", 5);

        assertThat(lines())
                .singleElement()
                .asString()
                .endsWith(" [loop] INFO Routes - model=m version=1 loaded in 5 ms");
        assertThat(lines().getFirst()).matches("\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d{3} .*");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"\n", "\r", "\u001b[31m", "\0", "\b", "\u007f", "\u0085", "\u009b", "\u202e", "\u2066", "\u2028"
            })
    void escapesWhatControlsATerminal(String control) {
        log.atWarn()
                .addKeyValue("id", "a" + control + "b")
                .setCause(new IllegalStateException("c" + control + "d", new RuntimeException("e" + control + "f")))
                .log("text " + control + "of " + "{}", "g" + control + "h");

        String text = written.toString(StandardCharsets.UTF_8);
        assertThat(text).doesNotContain(control.equals("\n") ? "a\n" : control);
        assertThat(lines().getFirst())
                .contains("id=a\\")
                .contains("text \\")
                .contains("g\\")
                .endsWith("h");
        assertThat(lines().get(1)).startsWith("java.lang.IllegalStateException: c\\");
        assertThat(lines())
                .anyMatch(line -> line.startsWith("\tat " + getClass().getName()));
        assertThat(lines()).anyMatch(line -> line.startsWith("Caused by: java.lang.RuntimeException: e\\"));
    }

    @Test
    void reportsFatalErrorsThatAreLoggedWhateverIsWritten() {
        List<Throwable> reported = new ArrayList<>();
        factory.reportFatalErrors(reported::add);
        factory.setLevels("off", "off");
        OutOfMemoryError fatal = new OutOfMemoryError("Java heap space");

        log.warn("task failed", fatal);
        log.atError().setCause(new IllegalStateException(fatal)).log("task failed");
        log.warn("task {} failed", 1, new OutOfMemoryError("Cannot reserve 8 bytes of direct buffer memory"));

        assertThat(reported).containsExactly(fatal, fatal);
        assertThat(written.size()).isZero();
    }

    @Test
    void writesOtherTextAsItIs() {
        log.warn("Grüße, 世界 😀 \\n");

        assertThat(lines().getFirst()).endsWith("Grüße, 世界 😀 \\n");
    }

    @Test
    void cutsLongValues() {
        log.atWarn().addKeyValue("id", "x".repeat(10_000_000)).log("y".repeat(10_000_000));

        assertThat(written.size()).isLessThan(25_000);
    }

    @Test
    void writesTenWarningsOfACauseInASecondAndThenTheirNumber() {
        for (int i = 0; i < 100_000; i++) {
            log.atError().addKeyValue("path", "/" + i).log("request not handled");
        }
        log.warn("something else");

        assertThat(lines()).hasSize(11);
        later.remove().run();
        assertThat(lines()).hasSize(12);
        assertThat(lines().getLast()).endsWith("ERROR Routes - 99990 more suppressed: request not handled");
        assertThat(later).isEmpty();
        nanos.addAndGet(LogLimit.WINDOW_NANOS);
        log.error("request not handled");
        assertThat(lines()).hasSize(13);
    }

    /** Messages of libraries contain values of clients. */
    @Test
    void boundsTheWarningsOfALoggerWhateverTheirTexts() {
        for (int i = 0; i < 10_000; i++) {
            log.warn("stream " + i + " was reset");
        }

        assertThat(lines()).hasSize(LogLimit.MAX_LOGGER_LINES);
        later.remove().run();
        assertThat(lines()).hasSize(LogLimit.MAX_LOGGER_LINES + 1);
        assertThat(lines().getLast()).endsWith("9950 more suppressed");
    }

    @Test
    void boundsNeitherInfoNorDebugLinesNorFailedLoads() {
        factory.setLevels("debug", "warn");
        Logger loading = factory.getLogger("dev.nereid.server.lifecycle.ModelLifecycle");
        for (int i = 0; i < 500; i++) {
            log.info("changed");
            log.debug("request failed");
            loading.error("model failed to load");
        }

        assertThat(lines()).hasSize(1500);
    }

    @Test
    void hasALevelForTheServerAndOneForLibraries() {
        Logger library = factory.getLogger("io.netty.Channel");
        Logger backend = factory.getLogger("nereid.onnx");
        assertThat(log.isDebugEnabled()).isFalse();
        assertThat(library.isInfoEnabled()).isFalse();

        factory.setLevels("trace", "off");

        assertThat(log.isTraceEnabled()).isTrue();
        assertThat(backend.isTraceEnabled()).isTrue();
        library.error("broken");
        assertThat(lines()).isEmpty();
    }

    private List<String> lines() {
        return written.toString(StandardCharsets.UTF_8).lines().toList();
    }

    /** A throwable of a plugin, of which nothing can be read. */
    @SuppressWarnings("OverrideThrowableToString") // what a plugin may do
    private static final class UnreadableError extends Error {
        private static final long serialVersionUID = 1L;

        @Override
        public String toString() {
            throw new StackOverflowError();
        }

        @Override
        public StackTraceElement[] getStackTrace() {
            throw new IllegalStateException("no frames");
        }
    }

    @Test
    void neverThrowsToTheThreadThatLogs() {
        for (LogFormat format : LogFormat.values()) {
            factory.setFormat(format);
            Object value = new Object() {
                @Override
                public String toString() {
                    throw new NoClassDefFoundError("gone");
                }
            };
            assertThatCode(() -> {
                        log.atError()
                                .addKeyValue("id", value)
                                .setCause(new UnreadableError())
                                .log("execution failed");
                        log.warn("text of {}", value);
                        log.warn("text", new UnreadableError());
                    })
                    .as("%s", format)
                    .doesNotThrowAnyException();
        }
        assertThat(lines()).anyMatch(line -> line.contains("execution failed"));
    }
}
