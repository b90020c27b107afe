package dev.nereid.backend.onnx.ort;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

class OrtLibraryTest {
    private static final Path MAPPINGS = Path.of("/proc/self/maps");

    @TempDir
    Path directory;

    @Test
    void isTheReleaseThatTheBindingWasMadeFor() throws IOException, OrtException {
        try (OrtLibrary library = TestModels.openLibrary()) {
            assertThat(library.version())
                    .startsWith(OrtApi.RELEASES)
                    .isEqualTo(TestModels.oracle().getVersion());
        }
    }

    @Test
    void refusesAFileThatIsNoLibrary() throws IOException {
        Path file = Files.writeString(directory.resolve("libonnxruntime.so"), "no library");

        assertThatThrownBy(() -> OrtLibrary.open(file, NativePlatform.current()))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    @Timeout(60)
    void isUnloadedByClosingAndLoadsAgain() throws IOException, OrtException, InterruptedException, ExecutionException {
        assumeTrue(Files.isReadable(MAPPINGS), "/proc/self/maps is absent");
        Path file = copyOfLibrary("first.so");
        OrtLibrary library = OrtLibrary.open(file, NativePlatform.current());
        onAThreadThatEnds(() -> runsOnce(library));
        assertThat(isMapped(file)).isTrue();

        library.close();
        while (isMapped(file)) {
            // The thread has ended for Java, but perhaps not yet for the C library, which checks again at each close.
            OrtLibrary.open(file, NativePlatform.current()).close();
        }

        try (OrtLibrary again = OrtLibrary.open(file, NativePlatform.current())) {
            assertThat(isMapped(file)).isTrue();
            runsOnce(again);
        }
    }

    @Test
    void livesSideBySideWithAnotherCopy() throws IOException, OrtException {
        Path file = copyOfLibrary("second.so");
        try (OrtLibrary one = TestModels.openLibrary()) {
            try (OrtLibrary other = OrtLibrary.open(file, NativePlatform.current())) {
                assertThat(other.environment()).isNotEqualTo(one.environment());
                runsOnce(other);
                runsOnce(one);
            }
            runsOnce(one);
        }
    }

    @Test
    void livesSideBySideWithItself() throws IOException, OrtException {
        try (OrtLibrary one = TestModels.openLibrary()) {
            try (OrtLibrary other = TestModels.openLibrary()) {
                runsOnce(other);
            }
            runsOnce(one);
        }
    }

    @Test
    void opensNoSessionOnceClosed() throws IOException, OrtException {
        OrtLibrary library = TestModels.openLibrary();
        library.close();

        assertThatThrownBy(() -> runsOnce(library))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("ONNX Runtime: closed (expected: open)");
    }

    @Test
    void sharesItsThreadPoolsAmongSessions() throws IOException, OrtException {
        Path file = copyOfLibrary("pools.so");
        OrtThreads threads = new OrtThreads(2, 1, false);
        try (OrtLibrary library = OrtLibrary.open(file, NativePlatform.current(), threads)) {
            assertThat(library.hasThreadPools()).isTrue();
            runsOnce(library, OrtSessionOptions.DEFAULTS.withSharedThreads());
            runsOnce(library); // with pools of its own
        }
    }

    private Path copyOfLibrary(String name) throws IOException {
        return Files.copy(TestModels.nativeLibrary(), directory.resolve(name));
    }

    private static void runsOnce(OrtLibrary library) throws OrtException {
        runsOnce(library, OrtSessionOptions.DEFAULTS);
    }

    private static void runsOnce(OrtLibrary library, OrtSessionOptions options) throws OrtException {
        try (OrtSession session = OrtSession.open(library, TestModels.model("add_sub.onnx"), options);
                OrtExecution execution = session.newExecution(Map.of());
                TestTensors tensors = new TestTensors()) {
            execution.begin();
            execution.input(0, tensors.floats(1, 2, 3, 4), 4);
            execution.input(1, tensors.floats(1, 1, 1, 1), 4);
            execution.output(1);
            execution.run();
            try (OrtValue difference = execution.takeOutput(1)) {
                assertThat(TestTensors.floats(difference.data())).containsExactly(0, 1, 2, 3);
            }
            execution.end();
        }
    }

    /** A thread that has run a model keeps the library mapped as long as it lives. */
    private static void onAThreadThatEnds(NativeWork work) throws InterruptedException, ExecutionException {
        FutureTask<Void> task = new FutureTask<>(() -> {
            work.run();
            return null;
        });
        Thread thread = new Thread(task);
        thread.start();
        thread.join();
        task.get();
    }

    private interface NativeWork {
        void run() throws OrtException;
    }

    private static boolean isMapped(Path file) throws IOException {
        return Files.readString(MAPPINGS).contains(file.toRealPath().toString());
    }
}
