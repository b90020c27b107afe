package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.jdi.FloatValue;
import com.sun.jdi.StackFrame;
import com.sun.jdi.event.BreakpointEvent;
import dev.nereid.distribution.testing.Debugger;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.MarkdownPage;
import dev.nereid.distribution.testing.PageScript;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Runs the commands of {@code docs/debugging-plugins.md}, with a debugger in the role of the IDE. */
@Tag("slow")
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class DebuggingIT {
    private static final String WRITTEN_PORT = "5005";
    private static final String LISTENING = "Listening for transport dt_socket";
    private static final long TIMEOUT_SECONDS = 300;

    @TempDir
    private Path directory;

    private final List<String> seen = new ArrayList<>();
    private final CompletableFuture<Void> listening = new CompletableFuture<>();

    @Test
    void theDebuggerStopsInAPluginAndSwapsItsCode() throws Exception {
        int port = PageScript.freePort();
        Process script = PageScript.start(
                MarkdownPage.of("docs/debugging-plugins.md"), directory, Map.of(WRITTEN_PORT, String.valueOf(port)));
        CompletableFuture<String> output = CompletableFuture.supplyAsync(() -> text(script), InstalledServer.BLOCKING);
        try {
            listening.orTimeout(TIMEOUT_SECONDS, TimeUnit.SECONDS).join();
            Debugger debugger = Debugger.attach(port);
            Set<Long> loaders = debugger.follow("Scale", "scaled", stop -> {
                show(stop);
                debugger.redefine(stop.location().declaringType(), changed());
            });

            assertThat(script.waitFor()).as(output.join()).isZero();
            assertThat(seen)
                    .containsExactly("instance/scaled/1/scaled_0", "scaled", "apply", "Scale.java", "value = 1.0");
            assertThat(output.join())
                    .containsSubsequence("[2.0,5.0,-6.0]", "[2.0,7.5,-9.0]", "[3.0,7.5,-9.0]", "[4.0,10.0,-12.0]")
                    .containsPattern("\\[instance/scaled/1/scaled_0] DEBUG scaled - scaled 3 values")
                    .doesNotContain("watchdog");
            assertThat(loaders).as("class loaders of the old and the new jar").hasSizeGreaterThan(1);
        } finally {
            script.descendants().forEach(ProcessHandle::destroy);
            script.destroy();
        }
    }

    /** Keeps what an IDE shows at a breakpoint. */
    private void show(BreakpointEvent stop) throws Exception {
        StackFrame frame = stop.thread().frame(0);
        seen.add(stop.thread().name());
        seen.add(stop.location().method().name());
        seen.add(stop.thread().frame(1).location().method().name());
        seen.add(stop.location().sourceName());
        seen.add("value = " + ((FloatValue) frame.getValue(frame.visibleVariableByName("value"))).value());
    }

    /** Compiles the change that the page describes, in memory of the IDE. */
    private byte[] changed() throws IOException {
        Path source = directory.resolve("changed/Scale.java");
        Files.createDirectories(source.getParent());
        Files.writeString(
                source, Files.readString(directory.resolve("scale/Scale.java")).replace("2 * value", "3 * value"));
        int status = ToolProvider.findFirst("javac")
                .orElseThrow()
                .run(
                        System.out,
                        System.err,
                        "-g",
                        "-proc:none",
                        "-cp",
                        System.getProperty("java.class.path"),
                        "-d",
                        source.getParent().toString(),
                        source.toString());
        assertThat(status).isZero();
        return Files.readAllBytes(source.resolveSibling("Scale.class"));
    }

    /** Returns what the commands print, and notices when a JVM waits for its debugger. */
    private String text(Process script) {
        StringBuilder text = new StringBuilder();
        try (BufferedReader lines = script.inputReader(StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                text.append(line).append('\n');
                if (line.contains(LISTENING)) {
                    listening.complete(null);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        listening.completeExceptionally(new AssertionError("no debug port: " + text));
        return text.toString();
    }
}
