package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.pytorch.presets.TorchLibrary;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the settings that PyTorch has once for the process. A model that asks for another value says so in its log. */
class ProcessSettingsTest {
    @TempDir
    private Path directory;

    private CheckedBackend test;

    @BeforeEach
    void open() {
        ScriptFiles.write(directory, "def forward(self, x: Tensor) -> Tensor:\n    return x\n");
        test = new CheckedBackend(directory);
    }

    @AfterEach
    void close() {
        test.close();
        TorchLibrary library = ScriptFiles.library(); // as they are at first
        library.profiling(true);
        library.executor(true);
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.FP32, Shape.of(1)))
                .output(TensorSpec.of("OUTPUT__0", DataType.FP32, Shape.of(1)));
    }

    /** Settings of a model whose executions may take any time, since its input may have any size. */
    private static ModelSettingsBuilder openSettings() {
        return ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.FP32, Shape.of(Shape.VARIABLE)))
                .output(TensorSpec.of("OUTPUT__0", DataType.FP32, Shape.of(Shape.VARIABLE)));
    }

    private List<String> warnings() {
        return test.log().stream().filter(line -> line.startsWith("WARNING ")).toList();
    }

    @ParameterizedTest
    @ValueSource(strings = {"ENABLE_JIT_PROFILING", "ENABLE_JIT_EXECUTOR"})
    void differentTruth(String name) {
        test.load(settings());
        test.with(name, "false").load(settings());
        test.load(settings());
        assertThat(warnings()).isEmpty();

        test.with(name, "true").load(settings());

        assertThat(warnings())
                .containsExactly(
                        "WARNING " + name + ": true, for all models of the process: an earlier one has set false");
    }

    @Test
    void truthIsApplied() {
        test.with("ENABLE_JIT_PROFILING", "false")
                .with("ENABLE_JIT_EXECUTOR", "0")
                .load(settings());

        assertThat(torch.getProfilingMode().get()).isFalse();
        assertThat(torch.getExecutorMode().get()).isFalse();

        test.with("ENABLE_JIT_PROFILING", "true")
                .with("ENABLE_JIT_EXECUTOR", "1")
                .load(settings());

        assertThat(torch.getProfilingMode().get()).isTrue();
        assertThat(torch.getExecutorMode().get()).isTrue();
    }

    @Test
    void differentThreadsForTasks() {
        test.with("INTER_OP_THREAD_COUNT", "3").load(settings());
        long actual = torch.get_num_interop_threads();
        int earlier = warnings().size(); // another test of the process may have been the first

        test.with("INTER_OP_THREAD_COUNT", Long.toString(actual)).load(settings());
        assertThat(warnings()).hasSize(earlier);
        test.with("INTER_OP_THREAD_COUNT", Long.toString(actual + 1)).load(settings());

        assertThat(warnings().getLast())
                .isEqualTo("WARNING INTER_OP_THREAD_COUNT: " + (actual + 1) + " has no effect: the process has "
                        + actual + " threads since its first model (expected: the same for all models)");
    }

    @Test
    void aLoadThatFailsChangesNothing() {
        test.with("ENABLE_JIT_PROFILING", "false");

        assertThatThrownBy(() -> test.load(ModelSettings.builder("m", 1))).isInstanceOf(BackendException.class);

        assertThat(torch.getProfilingMode().get()).isTrue();
    }

    /** Returns the number of threads of the OpenBLAS that this process has loaded. */
    @SuppressWarnings("restricted") // a function of the library
    private static int openBlasThreads() throws Throwable {
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
            String library = lines.filter(line -> line.endsWith("/libopenblas.so.0"))
                    .map(line -> line.substring(line.indexOf('/')))
                    .findFirst()
                    .orElseThrow();
            return (int) Linker.nativeLinker()
                    .downcallHandle(
                            SymbolLookup.libraryLookup(library, Arena.global()).findOrThrow("openblas_get_num_threads"),
                            FunctionDescriptor.of(ValueLayout.JAVA_INT))
                    .invokeExact();
        }
    }

    @Test
    void fewestThreadsOfAllModels() throws Throwable {
        test.with("INTRA_OP_THREAD_COUNT", "2").load(openSettings());
        assertThat(openBlasThreads()).isEqualTo(2);
        test.with("INTRA_OP_THREAD_COUNT", "1").load(openSettings());
        assertThat(openBlasThreads()).isEqualTo(1);
        test.with("INTRA_OP_THREAD_COUNT", "2").load(openSettings());
        assertThat(openBlasThreads()).isEqualTo(1);
    }

    @Test
    void shortExecutionsDoNotCount() throws Throwable {
        test.with("INTRA_OP_THREAD_COUNT", "1").load(settings());
        test.with("INTRA_OP_THREAD_COUNT", "2").load(openSettings());
        assertThat(openBlasThreads()).isEqualTo(2);
    }

    @Test
    void givenThreadsOfOpenBlas() throws Throwable {
        try (CheckedBackend given = new CheckedBackend(directory, Map.of("openblas-thread-count", "2"))) {
            given.with("INTRA_OP_THREAD_COUNT", "1").load(openSettings());
            assertThat(openBlasThreads()).isEqualTo(2);
        }
    }

    @ParameterizedTest
    @CsvSource({"0", "-1", "1025"})
    void threadsOfOpenBlas(String value) {
        assertThatThrownBy(() -> new CheckedBackend(directory, Map.of("openblas-thread-count", value)))
                .isInstanceOf(BackendException.class)
                .hasMessageStartingWith("openblas-thread-count: " + value)
                .hasMessageEndingWith("(expected: 1 to 1024)");
    }
}
