package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests an input in a format with padding: three channels, which clients send as a vector of four. */
@Timeout(60)
final class PaddedInputTest {
    @TempDir
    private Path directory;

    @Test
    void clientsSendFullVectorsInTheShapeOfTheModel() throws Exception {
        TestPlugins.padded(Files.createDirectories(directory.resolve("plugins")));
        new TestModels(Files.createDirectories(directory.resolve("models"))).model("m", """
                platform: "tensorrt_plan" max_batch_size: 3
                input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 3, 1, 1 ] is_non_linear_format_io: true }
                output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 3 }
                instance_group { count: 1 kind: KIND_CPU }
                dynamic_batching { preferred_batch_size: 3 max_queue_delay_microseconds: 3600000000 }
                model_warmup { name: "w" batch_size: 1
                  inputs { key: "INPUT0" value { data_type: TYPE_FP32 dims: [ 3, 1, 1 ] zero_data: true } } }
                """);
        try (NereidServer server = NereidServer.start(
                ServerOptions.of(directory.resolve("models")).withPlugins(directory.resolve("plugins")))) {
            ModelRef model = ModelRef.latest("m");
            RecordingObserver first =
                    RecordingObserver.to(server, model, "INPUT0", new long[] {1, 3, 1, 1}, 1, 2, 3, 0);
            RecordingObserver second =
                    RecordingObserver.to(server, model, "INPUT0", new long[] {2, 3, 1, 1}, 4, 5, 6, 0, 7, 8, 9, 0);
            RecordingObserver unpadded =
                    RecordingObserver.to(server, model, "INPUT0", new long[] {1, 3, 1, 1}, 1, 2, 3);

            assertThat(first.response().values()).containsExactly(1f, 2f, 3f);
            assertThat(second.response().values()).containsExactly(4f, 5f, 6f, 7f, 8f, 9f);
            assertThat(unpadded.error().code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(unpadded.error().publicMessage())
                    .contains("input byte size mismatch for input 'INPUT0' for model 'm'. Expected 16, got 12");
        }
    }
}
