package dev.nereid.distribution.log;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.plugin.PluginLogger;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

/** Tests the messages that a model logs, in the log of the installed server. */
final class PluginLogTest {
    private final ByteArrayOutputStream written = new ByteArrayOutputStream();
    private final LogFactory factory = (LogFactory) LoggerFactory.getILoggerFactory();
    private final PluginLogger log = new PluginLogger("python", "m");
    private PrintStream before = System.err;

    @BeforeEach
    void begin() {
        before = factory.writeTo(new PrintStream(written, true, StandardCharsets.UTF_8));
        factory.setFormat(LogFormat.ISO8601);
    }

    @AfterEach
    void end() {
        factory.writeTo(before);
        factory.setFormat(LogFormat.DEFAULT);
        factory.setLevels("info", "warn");
    }

    @Test
    void hasTheFileAndLineOfTheCaller() {
        log.log(Level.WARNING, "model.py", 12, "loaded {} {0}");
        log.log(Level.DEBUG, "model.py", 13, "not written");

        assertThat(written.toString(StandardCharsets.UTF_8))
                .matches("\\S+ W " + ProcessHandle.current().pid() + " model\\.py:12] loaded \\{} \\{0}\n");
    }

    /** Models receive changes of this level. */
    @Test
    void knowsItsLevel() {
        factory.setLevels("info", "warn");
        assertThat(log.isLoggable(Level.DEBUG)).isFalse();
        assertThat(log.isLoggable(Level.INFO)).isTrue();

        factory.setLevels("debug", "warn");
        assertThat(log.isLoggable(Level.DEBUG)).isTrue();
        log.log(Level.DEBUG, "model.py", 14, "written");
        assertThat(written.toString(StandardCharsets.UTF_8)).endsWith(" model.py:14] written\n");
    }
}
