package dev.nereid.backend.tensorrt.presets;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.backend.tensorrt.runtime.BuildRequest;
import dev.nereid.backend.tensorrt.runtime.TensorRtRuntime;
import dev.nereid.cuda.GpuDiscovery;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Loads the libraries of TensorRT, up to the point where it asks for a device. */
final class NvInferLoaderTest {
    @TempDir
    private Path cache;

    @Test
    void namesTheMissingLibrary() {
        assumeTrue(System.getProperty("tensorrt.directory", "").isEmpty(), "TensorRT is installed");
        Path nowhere = cache.resolve("natives");

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> new NvInferLoader(List.of(nowhere), cache).load())
                .withMessage("TensorRT unavailable: libnvinfer.so.10: cannot open shared object file: No such file or"
                        + " directory; not in [" + nowhere + "] either. Build the plugin with -Dtensorrt, or name the"
                        + " directory of TensorRT 10 by --backend-config=tensorrt,library-directory=DIR")
                .matches(e -> e.code() == ErrorCode.UNAVAILABLE);
    }

    @Test
    void loadsTensorRtAndSaysThatThereIsNoDevice() {
        String directory = System.getProperty("tensorrt.directory", "");
        assumeTrue(!directory.isEmpty(), "no TensorRT: -Dtensorrt adds it (1.1 GB)");

        TensorRtRuntime runtime = new NvInferLoader(List.of(Path.of(directory)), cache).load();

        assertThat(runtime.version()).startsWith("10.");
        assumeTrue(GpuDiscovery.run().gpus().isEmpty(), "there is a GPU");
        try (Arena arena = Arena.ofShared()) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> runtime.deserialize(arena.allocate(64)))
                    .withMessageStartingWith("TensorRT unavailable: no runtime: ")
                    .matches(e -> e.code() == ErrorCode.UNAVAILABLE);
        }
        assertThatExceptionOfType(BackendException.class)
                .as("before anything of the builder is loaded")
                .isThrownBy(() -> runtime.build(new BuildRequest(cache.resolve("model.onnx"), "FP32", 0, Map.of())))
                .withMessageStartingWith("TensorRT unavailable: no runtime: ");
    }
}
