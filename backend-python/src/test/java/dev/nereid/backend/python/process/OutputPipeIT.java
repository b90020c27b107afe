package dev.nereid.backend.python.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Reads the output of real processes. */
class OutputPipeIT {
    private static final Duration LONG = Duration.ofSeconds(60);

    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    private final OutputPipe pipe = OutputPipe.open();
    private final OutputReader reader = OutputReader.start(pipe.input(), "output", lines::add, System::nanoTime);

    OutputPipeIT() throws IOException {}

    @AfterEach
    void closes() throws Exception {
        reader.close();
        pipe.close();
        assertThat(reader.awaitEnd(LONG)).isTrue();
    }

    private Process sh(String script) throws IOException {
        try {
            return new ProcessBuilder("sh", "-c", script)
                    .redirectErrorStream(true)
                    .redirectOutput(pipe.redirect())
                    .start();
        } finally {
            pipe.started();
        }
    }

    @Test
    void readsOutputAndErrorsUntilTheEnd() throws Exception {
        Process process = sh("echo out; echo err >&2; printf last; exit 3");

        assertThat(reader.awaitEnd(LONG)).isTrue();
        assertThat(process.waitFor()).isEqualTo(3);
        assertThat(lines).containsExactly("out", "err", "last");
        assertThat(reader.lastLines()).containsExactly("out", "err", "last");
    }

    @Test
    void closesWhileAChildKeepsTheOutputOpen() throws Exception {
        Process process = sh("sleep 1000 & echo $!");
        long child = Long.parseLong(lines.poll(60, TimeUnit.SECONDS));
        try {
            assertThat(process.waitFor()).isZero();
            assertThat(reader.awaitEnd(Duration.ofMillis(100))).isFalse();

            reader.close();

            assertThat(reader.awaitEnd(LONG)).isTrue();
        } finally {
            ProcessHandle.of(child).ifPresent(ProcessHandle::destroyForcibly);
        }
    }

    @Test
    void closesWhileTheProcessPrints() throws Exception {
        Process process = sh("while :; do echo flood flood flood; done");
        assertThat(lines.poll(60, TimeUnit.SECONDS)).isNotNull();

        reader.close();

        assertThat(reader.awaitEnd(LONG)).isTrue();
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue(); // by SIGPIPE
    }

    @Test
    void endsWhenTheProcessCannotBeStarted() throws Exception {
        assertThat(startFails()).isTrue();

        assertThat(reader.awaitEnd(LONG)).isTrue();
        assertThat(lines).isEmpty();
    }

    private boolean startFails() {
        try {
            new ProcessBuilder("/no/such/program")
                    .redirectErrorStream(true)
                    .redirectOutput(pipe.redirect())
                    .start();
            return false;
        } catch (IOException _) {
            return true;
        } finally {
            pipe.started();
        }
    }

    @Test
    void boundsAFloodOfAProcess() throws Exception {
        Process process = sh("head -c 50000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo; echo done");

        assertThat(process.waitFor()).isZero();
        assertThat(reader.awaitEnd(LONG)).isTrue();
        assertThat(reader.lastLines()).hasSize(20).endsWith("done");
        assertThat(lines)
                .hasSizeLessThan(60_000)
                .anySatisfy(line -> assertThat(line).matches("… \\d+ lines \\(\\d+ bytes\\) of output left out"));
    }

    @Test
    void leavesNoDescriptors() throws Exception {
        List<Path> before = descriptors();
        for (int i = 0; i < 20; i++) {
            try (OutputPipe one = OutputPipe.open();
                    OutputReader read = OutputReader.start(one.input(), "output", _ -> {}, System::nanoTime)) {
                one.started();
                assertThat(read.awaitEnd(LONG)).isTrue();
            }
        }

        assertThat(descriptors()).hasSizeLessThan(before.size() + 20);
    }

    private static List<Path> descriptors() throws IOException {
        try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
            return all.toList();
        }
    }
}
