package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.CallOptions;
import dev.nereid.api.Cancellation;
import dev.nereid.api.InferCall;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
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

/** Which calls are checked in the background, and in which order. */
class LargeCallsTest {
    private static final MemorySegment LARGE = MemorySegment.ofArray(new byte[(int) LargeCalls.LARGE + 1]);
    private static final MemorySegment SMALL = MemorySegment.ofArray(new byte[1000]);

    private final Queue<Runnable> background = new ArrayDeque<>();
    private final LargeCalls calls = new LargeCalls(this::execute);
    private boolean hasEnded;
    private boolean hasNoThread;
    private final List<String> submitted = new ArrayList<>();
    private final List<String> released = new ArrayList<>();
    private final List<ErrorCode> told = new ArrayList<>();

    @Test
    void takesCallsWithMuchToBeChecked() {
        assertThat(calls.takes(call("a", "BYTES", LARGE))).isTrue();
        assertThat(calls.takes(call("x".repeat(300_000), "FP32", SMALL))).isTrue();
    }

    @Test
    void leavesCallsToTheirThreadsWithLittleToBeChecked() {
        assertThat(calls.takes(call("a", "BYTES", SMALL))).isFalse();
        assertThat(calls.takes(call("a", "FP32", LARGE))).isFalse();
    }

    @Test
    void submitsInTheBackground() {
        submit(call("a", "BYTES", LARGE));
        assertThat(submitted).isEmpty();

        runAll();

        assertThat(submitted).containsExactly("a");
        assertThat(released).isEmpty();
    }

    @Test
    void keepsTheOrderOfASequence() {
        submit(call("a", "BYTES", LARGE, 7));

        assertThat(calls.takes(call("b", "FP32", SMALL, 7))).isTrue();
        assertThat(calls.takes(call("c", "FP32", SMALL, 8))).isFalse();
        assertThat(calls.takes(call("d", "FP32", SMALL))).isFalse();
        submit(call("b", "FP32", SMALL, 7));
        runAll();
        assertThat(submitted).containsExactly("a", "b");
        assertThat(calls.takes(call("e", "FP32", SMALL, 7))).isFalse();
    }

    @Test
    void submitsACallOfASequenceThatWaitsWhenTheThreadsHaveEnded() {
        submit(call("a", "BYTES", LARGE, 7));
        submit(call("b", "FP32", SMALL, 7));
        hasEnded = true;
        runAll();

        assertThat(submitted).containsExactly("a", "b");
    }

    @Test
    void submitsACallOfASequenceThoughTheOneBeforeBrokeAndNoThreadStarts() {
        LargeCalls.Submission broken = (taken, observer) -> {
            throw new IllegalStateException("says the test");
        };
        calls.submit(call("a", "BYTES", LARGE, 7), new Told(), broken);
        submit(call("b", "FP32", SMALL, 7));
        hasNoThread = true;
        runAll();

        assertThat(submitted).containsExactly("b");
        assertThat(calls.takes(call("c", "FP32", SMALL, 7))).isFalse();
    }

    @Test
    void neverSubmitsACallThatWasWithdrawn() {
        Cancellation handle = submit(call("a", "BYTES", LARGE));
        handle.cancel();
        runAll();

        assertThat(submitted).isEmpty();
        assertThat(released).containsExactly("a");
        assertThat(told).containsExactly(ErrorCode.CANCELLED);
    }

    @Test
    void withdrawsACallThatWasSubmitted() {
        Cancellation handle = submit(call("a", "BYTES", LARGE));
        runAll();
        handle.cancel();

        assertThat(submitted).containsExactly("a", "withdrawn a");
    }

    private Cancellation submit(InferCall call) {
        return calls.submit(call, new Told(), (taken, observer) -> {
            submitted.add(taken.id());
            return () -> submitted.add("withdrawn " + taken.id());
        });
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

    private InferCall call(String id, String datatype, MemorySegment data) {
        return call(id, datatype, data, CallOptions.DEFAULT);
    }

    private InferCall call(String id, String datatype, MemorySegment data, long sequence) {
        return call(
                id,
                datatype,
                data,
                new CallOptions(
                        0,
                        0,
                        OptionalLong.empty(),
                        Optional.of(new Sequence(new Sequence.Id.Numeric(sequence), false, false))));
    }

    private InferCall call(String id, String datatype, MemorySegment data, CallOptions options) {
        return new InferCall(
                ModelRef.latest("m"),
                id,
                List.of(InputTensor.of("X", datatype, new long[] {1}, data, MemoryPlace.HOST)),
                List.of(),
                Map.of(),
                options,
                () -> released.add(id));
    }

    private final class Told implements ResponseObserver {
        @Override
        public void onResponse(InferResponse response) {
            response.close();
        }

        @Override
        public void onEnd() {
            throw new AssertionError("ended");
        }

        @Override
        public void onError(InferenceException error) {
            told.add(error.code());
        }
    }
}
