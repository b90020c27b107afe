package dev.nereid.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeResponse;
import dev.nereid.testkit.LeakCheckingMemory;
import io.netty.buffer.ByteBuf;
import java.util.AbstractList;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Bodies that cannot be put together. */
class InferResponseWriterTest {
    private final FakeInferenceServer server = new FakeInferenceServer(new LeakCheckingMemory());
    private final AnswerForm form = new AnswerForm(
            RequestedOutputs.all(true), ContentCoding.IDENTITY, new CallMemory(server.memory(), server.sharedMemory()));

    @Test
    void anErrorOfTheJvmReleasesWhatWasCollected() {
        TextPieces text = new TextPieces(() -> false);
        text.add(new byte[10], 10);
        ByteBuf piece = text.toList().getFirst();
        InferResponse response = FakeResponse.of("m", 1, "", new NoMemory(), Map.of(), true);

        assertThatThrownBy(() -> InferResponseWriter.collect(response, form, text, 1))
                .isInstanceOf(OutOfMemoryError.class);

        assertThat(piece.refCnt()).isZero();
    }

    /** Stands for an output that no memory is left for. */
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
