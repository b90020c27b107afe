package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Sequence;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Queue;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.Test;

/** The choice of requests for the background, and their order. */
class LargeRequestExecutorTest {
    private static final MemorySegment LARGE =
            MemorySegment.ofArray(new byte[(int) LargeRequestExecutor.LARGE_BYTES + 1]);
    private static final MemorySegment SMALL = MemorySegment.ofArray(new byte[1000]);

    private final Queue<Runnable> background = new ArrayDeque<>();
    private final LargeRequestExecutor requests = new LargeRequestExecutor(this::execute);
    private boolean hasEnded;
    private boolean hasNoThread;
    private final List<String> submitted = new ArrayList<>();
    private final List<String> released = new ArrayList<>();
    private final List<ErrorCode> observer = new ArrayList<>();

    @Test
    void acceptsRequestsWithExpensiveChecks() {
        assertThat(requests.accepts(request("a", "BYTES", LARGE))).isTrue();
        assertThat(requests.accepts(request("x".repeat(300_000), "FP32", SMALL)))
                .isTrue();
    }

    @Test
    void leavesRequestsWithCheapChecksToTheirThreads() {
        assertThat(requests.accepts(request("a", "BYTES", SMALL))).isFalse();
        assertThat(requests.accepts(request("a", "FP32", LARGE))).isFalse();
    }

    @Test
    void submitsInTheBackground() {
        submit(request("a", "BYTES", LARGE));
        assertThat(submitted).isEmpty();

        runAll();

        assertThat(submitted).containsExactly("a");
        assertThat(released).isEmpty();
    }

    @Test
    void keepsTheOrderOfASequence() {
        submit(request("a", "BYTES", LARGE, 7));

        assertThat(requests.accepts(request("b", "FP32", SMALL, 7))).isTrue();
        assertThat(requests.accepts(request("c", "FP32", SMALL, 8))).isFalse();
        assertThat(requests.accepts(request("d", "FP32", SMALL))).isFalse();
        submit(request("b", "FP32", SMALL, 7));
        runAll();
        assertThat(submitted).containsExactly("a", "b");
        assertThat(requests.accepts(request("e", "FP32", SMALL, 7))).isFalse();
    }

    @Test
    void submitsAWaitingRequestOfASequenceWhenTheThreadsHaveEnded() {
        submit(request("a", "BYTES", LARGE, 7));
        submit(request("b", "FP32", SMALL, 7));
        hasEnded = true;
        runAll();

        assertThat(submitted).containsExactly("a", "b");
    }

    @Test
    void submitsARequestOfASequenceThoughTheOneBeforeFailedAndNoThreadStarts() {
        LargeRequestExecutor.Submission broken = new RecordingSubmission() {
            @Override
            public Cancellation submit(InferRequest accepted, ResponseObserver observer) {
                throw new IllegalStateException("says the test");
            }
        };
        requests.submit(request("a", "BYTES", LARGE, 7), new CapturingObserver(), broken);
        submit(request("b", "FP32", SMALL, 7));
        hasNoThread = true;
        runAll();

        assertThat(submitted).containsExactly("b");
        assertThat(requests.accepts(request("c", "FP32", SMALL, 7))).isFalse();
    }

    @Test
    void neverSubmitsACancelledRequest() {
        Cancellation handle = submit(request("a", "BYTES", LARGE));
        handle.cancel();
        runAll();

        assertThat(submitted).containsExactly("not submitted a");
        assertThat(released).containsExactly("a");
        assertThat(observer).containsExactly(ErrorCode.CANCELLED);
    }

    @Test
    void takesNoteOfACancelledRequestOfASequenceInItsTurn() {
        submit(request("a", "BYTES", LARGE, 7));
        Cancellation handle = submit(request("b", "FP32", SMALL, 7));
        submit(request("c", "FP32", SMALL, 7));
        handle.cancel();
        runAll();

        assertThat(submitted).containsExactly("a", "not submitted b", "c");
        assertThat(observer).containsExactly(ErrorCode.CANCELLED);
    }

    @Test
    void cancelsASubmittedRequest() {
        Cancellation handle = submit(request("a", "BYTES", LARGE));
        runAll();
        handle.cancel();

        assertThat(submitted).containsExactly("a", "cancelled a");
    }

    private Cancellation submit(InferRequest request) {
        return requests.submit(request, new CapturingObserver(), new RecordingSubmission());
    }

    private class RecordingSubmission implements LargeRequestExecutor.Submission {
        @Override
        public Cancellation submit(InferRequest accepted, ResponseObserver observer) {
            submitted.add(accepted.id());
            return () -> submitted.add("cancelled " + accepted.id());
        }

        @Override
        public void cancelled(InferRequest request) {
            submitted.add("not submitted " + request.id());
        }
    }

    private void execute(Runnable task) {
        if (hasEnded) {
            throw new RejectedExecutionException();
        }
        if (hasNoThread) {
            throw new OutOfMemoryError("no thread, says the test");
        }
        background.add(task);
    }

    private void runAll() {
        while (!background.isEmpty()) {
            background.remove().run();
        }
    }

    private InferRequest request(String id, String datatype, MemorySegment data) {
        return request(id, datatype, data, RequestOptions.DEFAULT);
    }

    private InferRequest request(String id, String datatype, MemorySegment data, long sequence) {
        return request(
                id,
                datatype,
                data,
                new RequestOptions(
                        0,
                        0,
                        OptionalLong.empty(),
                        Optional.of(new Sequence(new Sequence.Id.Numeric(sequence), false, false))));
    }

    private InferRequest request(String id, String datatype, MemorySegment data, RequestOptions options) {
        return new InferRequest(
                ModelRef.latest("m"),
                id,
                List.of(InputTensor.of("X", datatype, new long[] {1}, data, MemoryPlace.HOST)),
                List.of(),
                Map.of(),
                options,
                () -> released.add(id));
    }

    private final class CapturingObserver implements ResponseObserver {
        @Override
        public void onResponse(InferResponse response) {
            response.close();
        }

        @Override
        public void onCompleted() {
            throw new AssertionError("ended");
        }

        @Override
        public void onError(InferenceException error) {
            observer.add(error.code());
        }
    }
}
