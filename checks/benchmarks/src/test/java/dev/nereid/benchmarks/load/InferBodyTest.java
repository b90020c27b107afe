package dev.nereid.benchmarks.load;

import static org.assertj.core.api.Assertions.assertThat;

import inference.ModelInferRequest;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

final class InferBodyTest {
    private final InferBody body = InferBody.of("INPUT0", 1L, 3L);

    @Test
    void putsTheContentBehindTheJsonPartOverHttp() {
        byte[] http = body.http();

        String header = new String(http, 0, body.headerLength(), StandardCharsets.UTF_8);
        assertThat(header)
                .isEqualTo("{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1,3],"
                        + "\"parameters\":{\"binary_data_size\":12}}],\"parameters\":{\"binary_data_output\":true}}");
        assertThat(ByteBuffer.wrap(Arrays.copyOfRange(http, body.headerLength(), http.length)))
                .isEqualTo(body.tensor());
    }

    @Test
    void sendsTheSameContentRawOverGrpc() {
        ModelInferRequest request = body.grpc("identity");

        assertThat(request.getModelName()).isEqualTo("identity");
        assertThat(request.getInputs(0).getShapeList()).containsExactly(1L, 3L);
        assertThat(request.getRawInputContents(0).asReadOnlyByteBuffer()).isEqualTo(body.tensor());
    }

    @Test
    void isNotMadeOfZeros() {
        assertThat(body.tensor().asFloatBuffer().get(0)).isNotZero();
    }
}
