package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeModelContext;
import org.junit.jupiter.api.Test;

class OnnxParametersTest {
    @Test
    void readsEachOfItsParameters() {
        FakeModelContext context = TestBackend.model(
                        ModelSettings.builder("m", 1).build(), 1)
                .withParameter("intra_op_thread_count", "1")
                .withParameter("inter_op_thread_count", "1")
                .withParameter("execution_mode", "0")
                .withParameter("enable_mem_arena", "1")
                .withParameter("enable_mem_pattern", "1")
                .withParameter("cudnn_conv_algo_search", "0")
                .withParameter("gpu_mem_limit", "1073741824")
                .withParameter("arena_extend_strategy", "0")
                .withParameter("do_copy_in_default_stream", "1")
                .withParameter("session.intra_op.allow_spinning", "0")
                .withParameter("execution_mod", "1");

        assertThat(OnnxModelOptions.of(context, new OnnxBackendOptions(2, 0, 0, false, 4)))
                .isNotNull();

        assertThat(context.unreadParameters()).containsExactly("execution_mod");
    }
}
