package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeModelContext;
import org.junit.jupiter.api.Test;

class OnnxParametersTest {
    @Test
    void declaresTheParametersThatItReads() {
        FakeModelContext context = TestBackend.model(
                ModelSettings.builder("m", 1)
                        .parameter("intra_op_thread_count", "1")
                        .parameter("inter_op_thread_count", "1")
                        .parameter("execution_mode", "0")
                        .parameter("enable_mem_arena", "1")
                        .parameter("enable_mem_pattern", "1")
                        .parameter("cudnn_conv_algo_search", "0")
                        .parameter("gpu_mem_limit", "1073741824")
                        .parameter("arena_extend_strategy", "0")
                        .parameter("do_copy_in_default_stream", "1")
                        .parameter("session.intra_op.allow_spinning", "0")
                        .parameter("execution_mod", "1")
                        .build(),
                1);

        assertThat(OnnxModelOptions.of(context, new OnnxBackendOptions(2, 0, 0, false, 4)))
                .isNotNull();

        assertThat(context.logger().lines())
                .filteredOn(line -> line.startsWith("WARNING"))
                .containsExactly("WARNING parameter 'execution_mod' is not declared");
    }
}
