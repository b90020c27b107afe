package dev.nereid.grpc.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.grpc.testing.RecordedCase;
import dev.nereid.grpc.testing.TestMessages;
import inference.ModelInferRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests that recorded requests are read as by the generated class. */
final class RecordedRequestsTest {
    @Test
    void readsEveryRecordedRequest() throws IOException {
        Path recording = Path.of("../../shared/golden/grpc.jsonl");
        assumeTrue(Files.isRegularFile(recording), "../shared/golden is absent");
        int read = 0;
        for (RecordedCase recorded : RecordedCase.read(recording)) {
            if (recorded.message() instanceof ModelInferRequest request) {
                read++;
                InferMessage message = InferMessageReader.read(TestMessages.cut(request.toByteArray(), List.of(13)));

                assertThat(InferMessageReaderProperties.generated(message))
                        .as(recorded.toString())
                        .isEqualTo(request);
            }
        }
        assertThat(read).isGreaterThan(110);
    }
}
