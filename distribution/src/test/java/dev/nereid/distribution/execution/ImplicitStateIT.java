package dev.nereid.distribution.execution;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.Value;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** An ONNX model whose state the server keeps: OUTPUT0 = INPUT0 + INPUT1 and OUTPUT1 = INPUT0 - INPUT1. */
class ImplicitStateIT {
    private static final String CONFIG = """
            platform: "onnxruntime_onnx"
            max_batch_size: 4
            input { name: "INPUT0" data_type: TYPE_INT32 dims: [ 4 ] }
            output { name: "%s" data_type: TYPE_INT32 dims: [ 4 ] }
            sequence_batching {
              max_sequence_idle_microseconds: 900000000
              %s
              state { input_name: "INPUT1" output_name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 4 ] }
            }
            instance_group { count: 2 kind: KIND_CPU }
            """;

    @TempDir
    private Path directory;

    @RegisterExtension
    private final ServerExtension server = new ServerExtension(() -> TestServer.of(models()));

    private Repository models() {
        Path model = TestPaths.checkout().resolve("examples/models/add_sub/1/model.onnx");
        return new Repository(directory)
                .onnx("direct", model, CONFIG.formatted("OUTPUT1", "direct { }"))
                .onnx("oldest", model, CONFIG.formatted("OUTPUT1", "oldest { max_candidate_sequences: 8 }"))
                .onnx("listed", model, CONFIG.formatted("OUTPUT0", "oldest { max_candidate_sequences: 8 }"));
    }

    @Test
    void theServerKeepsTheSum() throws IOException {
        for (String model : List.of("direct", "oldest")) {
            assertThat(send(model, 5, 1, "\"sequence_start\":true")).isEqualTo(5);
            assertThat(send(model, 7, 2, "\"sequence_start\":true")).isEqualTo(7);
            assertThat(send(model, 1, 1, "\"a\":0")).isEqualTo(1 - 5);
            assertThat(send(model, 10, 2, "\"a\":0")).isEqualTo(10 - 7);
            assertThat(send(model, 2, 1, "\"sequence_end\":true")).isEqualTo(2 - (5 + 1));
            assertThat(send(model, 3, 1, "\"sequence_start\":true")).isEqualTo(3);
            assertThat(send(model, 0, 2, "\"sequence_end\":true")).isEqualTo(-17);
        }
    }

    @Test
    void theClientGetsAStateThatIsListed() throws IOException {
        assertThat(send("listed", 5, 1, "\"sequence_start\":true")).isEqualTo(5);
        assertThat(send("listed", 6, 1, "\"a\":0")).isEqualTo(11);
        assertThat(send("listed", 7, 1, "\"a\":0")).isEqualTo(18);
    }

    private int send(String model, int value, int id, String flag) throws IOException {
        String body = "{\"parameters\":{\"sequence_id\":" + id + "," + flag + "},\"inputs\":[{\"name\":\"INPUT0\","
                + "\"datatype\":\"INT32\",\"shape\":[1,4],\"data\":[" + value + ",0,0,0]}]}";
        Value data = server.connection()
                .exchange(("POST /v2/models/" + model + "/infer HTTP/1.1\r\nHost: x\r\nContent-Length: " + body.length()
                                + "\r\n\r\n" + body)
                        .getBytes(UTF_8))
                .json()
                .getFieldsOrThrow("outputs")
                .getListValue()
                .getValues(0)
                .getStructValue()
                .getFieldsOrThrow("data");
        return (int) data.getListValue().getValues(0).getNumberValue();
    }
}
