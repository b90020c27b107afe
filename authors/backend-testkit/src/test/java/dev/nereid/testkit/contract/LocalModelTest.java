package dev.nereid.testkit.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** A model in a unit test, without a server. */
final class LocalModelTest {
    private static final Duration MAX_TIME = Duration.ofMillis(100);
    private static final int TRIES = 5;

    private final ContractModel model = ContractModel.of(ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .build());

    @Test
    void respondsToRequestsAloneAndTogether() {
        checkResponses();
    }

    private void checkResponses() {
        try (LocalModel doubling = LocalModel.load(Doubling.right(), model)) {
            List<LocalResponse> together = doubling.inferTogether(List.of(request(1, 2), request(3, 4)));

            assertThat(numbers(doubling.infer(request(5)))).containsExactly(10);
            assertThat(numbers(together.get(0))).containsExactly(2, 4);
            assertThat(numbers(together.get(1))).containsExactly(6, 8);
        }
    }

    @Test
    void returnsTheErrorOfARequest() {
        try (LocalModel doubling = LocalModel.load(Doubling.right(), model)) {
            LocalResponse refused = doubling.infer(request(-1));

            assertThat(refused.failure())
                    .get()
                    .extracting(BackendException::getMessage)
                    .isEqualTo("IN: -1.0 (expected: >= 0)");
            assertThatExceptionOfType(AssertionError.class)
                    .isThrownBy(() -> refused.output("OUT"))
                    .withMessageStartingWith("request failed (expected: a response)");
        }
    }

    @Test
    void takesLittleTimeAfterTheFirst() {
        checkResponses();
        Duration best = Duration.ofDays(1);
        for (int i = 0; i < TRIES && best.compareTo(MAX_TIME) >= 0; i++) {
            long start = System.nanoTime();
            checkResponses();
            best = Duration.ofNanos(System.nanoTime() - start);
        }
        assertThat(best).isLessThan(MAX_TIME);
    }

    @Test
    void waitsForTheStartOfTheInstance() {
        CompletableFuture<Void> start = new CompletableFuture<>();
        start.completeOnTimeout(null, 1, TimeUnit.MILLISECONDS);
        try (LocalModel doubling = LocalModel.load(Doubling.of(new StartingInstance(start)), model)) {
            assertThat(start).isCompleted();
            assertThat(numbers(doubling.infer(request(5)))).containsExactly(10);
        }

        BackendException failure = new BackendException(ErrorCode.NOT_FOUND, "no module");
        StartingInstance failing = new StartingInstance(CompletableFuture.failedFuture(failure));
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> LocalModel.load(Doubling.of(failing), model))
                .withMessage("no module")
                .satisfies(thrown -> assertThat(thrown.code()).isEqualTo(ErrorCode.NOT_FOUND));
    }

    private record StartingInstance(CompletableFuture<Void> started) implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            batch.requests().forEach(Doubling::apply);
        }
    }

    private static ContractExample request(float... numbers) {
        return ContractExample.request().input("IN", Shape.of(1, numbers.length), numbers);
    }

    private static float[] numbers(LocalResponse response) {
        return response.output("OUT").data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
    }
}
