package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Tests the behavior of the fake on which tests of front ends rely. */
class FakeInferenceServerTest {
    private final FakeInferenceServer server = new FakeInferenceServer(new NoMemory());
    private final Recorder recorder = new Recorder();
    private final AtomicInteger released = new AtomicInteger();

    @Test
    void respondsWithTheInputsAndReleasesThemAfterTheResponse() {
        server.add(FakeModel.identity("identity", DataType.INT8, 0, -1));

        server.infer(request("identity"), recorder);

        InferResponse response = recorder.responses.getFirst();
        assertThat(response.outputs().getFirst().name()).isEqualTo("OUTPUT0");
        assertThat(response.isFinal()).isTrue();
        assertThat(released).hasValue(0);
        response.close();
        response.close();
        assertThat(released).hasValue(1);
    }

    @Test
    void completesACancelledRequestOnce() {
        List<ReceivedRequest> kept = new ArrayList<>();
        server.add(FakeModel.identity("later", DataType.INT8, 0, -1).responding(kept::add));

        server.infer(request("later"), recorder).cancel();
        kept.getFirst().respondWithInputs();

        assertThat(recorder.errors)
                .singleElement()
                .extracting(InferenceException::code)
                .isEqualTo(ErrorCode.CANCELLED);
        assertThat(recorder.responses).isEmpty();
        assertThat(kept.getFirst().isCancelled()).isTrue();
        assertThat(released).hasValue(1);
    }

    @Test
    void keepsTheInputsUntilTheLastResponseOfADecoupledRequestIsClosed() {
        server.add(FakeModel.identity("two", DataType.INT8, 0, -1).decoupled().responding(request -> {
            request.respond(List.of(request.input(0, "OUT")), Map.of(), false);
            request.respond(List.of(request.input(0, "OUT")), Map.of(), false);
            request.end();
        }));

        server.infer(request("two"), recorder);

        assertThat(recorder.responses).hasSize(2);
        assertThat(recorder.ends).hasValue(1);
        recorder.responses.getFirst().close();
        assertThat(released).hasValue(0);
        recorder.responses.getLast().close();
        assertThat(released).hasValue(1);
    }

    @Test
    void refusesARequestToAnUnknownModelAsTheServerDoes() {
        server.infer(request("none"), recorder);

        assertThat(recorder.errors).isEmpty();
        assertThat(recorder.refusals)
                .singleElement()
                .extracting(InferenceException::publicMessage)
                .isEqualTo("Request for unknown model: 'none' is not found");
        assertThat(released).hasValue(1);
    }

    @Test
    void failsARequestWhoseModelThrows() {
        server.add(FakeModel.identity("broken", DataType.INT8, 0, -1).responding(request -> {
            throw new InferenceException(ErrorCode.INTERNAL, "broken");
        }));

        server.infer(request("broken"), recorder);

        assertThat(recorder.refusals).isEmpty();
        assertThat(recorder.errors)
                .singleElement()
                .extracting(InferenceException::publicMessage)
                .isEqualTo("broken");
    }

    private InferRequest request(String model) {
        InputTensor input =
                InputTensor.of("INPUT0", "INT8", new long[] {2}, MemorySegment.ofArray(new byte[2]), MemoryPlace.HOST);
        return InferRequest.of(ModelRef.latest(model), List.of(input), released::incrementAndGet);
    }

    private static final class NoMemory implements TensorMemory {
        @Override
        public TensorBuffer allocate(long byteSize) {
            throw new InferenceException(ErrorCode.UNAVAILABLE, "no memory");
        }

        @Override
        public long bytesInUse() {
            return 0;
        }
    }

    private static final class Recorder implements ResponseObserver {
        final List<InferResponse> responses = new ArrayList<>();
        final List<InferenceException> errors = new ArrayList<>();
        final List<InferenceException> refusals = new ArrayList<>();
        final AtomicInteger ends = new AtomicInteger();

        @Override
        public void onResponse(InferResponse response) {
            responses.add(response);
        }

        @Override
        public void onCompleted() {
            ends.incrementAndGet();
        }

        @Override
        public void onError(InferenceException error) {
            errors.add(error);
        }

        @Override
        public void onRefused(InferenceException error) {
            refusals.add(error);
        }
    }
}
