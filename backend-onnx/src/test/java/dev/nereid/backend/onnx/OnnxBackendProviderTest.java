package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.testkit.FakeBackendContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OnnxBackendProviderTest {
    @Test
    void isFoundAsAServiceThatCanWorkHere() {
        BackendProvider provider =
                ServiceLoader.load(BackendProvider.class).findFirst().orElseThrow();

        assertThat(provider).isInstanceOf(OnnxBackendProvider.class);
        assertThat(provider.name()).isEqualTo("onnxruntime");
        assertThat(provider.platforms()).containsExactly("onnxruntime_onnx");
        assertThat(provider.unavailable()).isEmpty();
    }

    @Test
    void makesItsInstancesInParallelEachWithAThreadOfItsOwn() {
        try (Backend backend = new OnnxBackendProvider().create(TestBackend.context(Map.of()))) {
            assertThat(backend.traits().execution()).isEqualTo(BackendTraits.Execution.LONG);
            assertThat(backend.traits().parallelInstances()).isTrue();
        }
    }

    /** Otherwise a machine with GPUs would place instances on them that this build cannot run there. */
    @Test
    void prefersTheCpuWithoutAProviderForGpus() {
        try (Backend backend = new OnnxBackendProvider().create(TestBackend.context(Map.of()))) {
            assertThat(backend.traits().preferredGroups())
                    .containsExactly(BackendTraits.PreferredGroup.of(Device.Kind.CPU, 2));
            assertThat(backend.traits().places()).doesNotContain(MemoryPlace.Kind.GPU);
        }
    }

    @Test
    void logsItsVersionAndThreadsThatAllModelsShare() {
        FakeBackendContext context =
                TestBackend.context(Map.of("enable-global-threadpool", "1", "inter_op_thread_count", "2"));

        new OnnxBackendProvider().create(context).close();

        assertThat(context.logger().lines())
                .containsExactly("INFO loaded ONNX Runtime 1.28.0, one pool of threads for all models,"
                        + " intra-op threads 4, inter-op threads 2");
    }

    @ParameterizedTest
    @CsvSource({
        "intra_op_thread_count, '', integral number, a whole number",
        "inter_op_thread_count, many, integral number, a whole number",
        "default-max-batch-size, -9999999999, integral number, a whole number",
        "enable-global-threadpool, 2, boolean, true or false",
    })
    void refusesSettingsThatMakeNoSense(String name, String value, String type, String expected) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> new OnnxBackendProvider().create(TestBackend.context(Map.of(name, value))))
                .withMessage(
                        "failed to convert '%s' to %s; --backend-config=backend,%s (expected: %s)",
                        value, type, name, expected)
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void keepsPathsOfTheMachineOutOfItsErrors(@TempDir Path directory) throws IOException {
        Path file = Files.createFile(directory.resolve("file"));

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> new OnnxBackendProvider().create(new FakeBackendContext(Map.of(), file, 1)))
                .withMessage("the library of ONNX Runtime could not be loaded")
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.UNAVAILABLE);
    }
}
