package dev.nereid.http.infer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.http.body.ContentCoding;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.http.json.JsonChunks;
import dev.nereid.http.json.JsonMemoryLimiter;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeResponse;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.AbstractList;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Bodies whose collection fails. */
class InferResponseWriterTest {
    private final FakeInferenceServer server = new FakeInferenceServer(new LeakCheckingMemory());
    private final ResponseFormat form = new ResponseFormat(
            RequestedOutputs.all(true),
            ContentCoding.IDENTITY,
            new RequestMemory(server.memory(), server.sharedMemory()),
            null);

    @Test
    void anErrorOfTheJvmReleasesCollectedParts() {
        JsonMemoryLimiter memory = new JsonMemoryLimiter();
        JsonChunks text = new JsonChunks(() -> false, memory);
        text.add(text.allocate(10), 10);
        assertThat(memory.reserved()).isEqualTo(10);
        InferResponse response = FakeResponse.of("m", 1, "", new NoMemory(), Map.of(), true);

        assertThatThrownBy(() -> InferResponseWriter.collect(response, form, text, 1))
                .isInstanceOf(OutOfMemoryError.class);

        assertThat(memory.reserved()).isZero();
    }

    /** An output without memory for its copy. */
    private static final class NoMemory extends AbstractList<NamedTensor> {
        @Override
        public NamedTensor get(int index) {
            throw new OutOfMemoryError("no direct memory");
        }

        @Override
        public int size() {
            return 1;
        }
    }
}
