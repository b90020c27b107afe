package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class OnnxCancellationTest {
    /** Many hours of counting. */
    private static final long FOREVER = Long.MAX_VALUE;

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final Arena arena = Arena.ofShared();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
            .modelFilename("batched_slow_loop.onnx")
            .maxBatchSize(8)
            .input(TensorSpec.of("limit", DataType.INT64, Shape.of(1)))
            .output(TensorSpec.of("output", DataType.INT64, Shape.of(1)));
    private TestBackend backend;
    private ModelInstance instance;

    @BeforeEach
    void open() {
        backend = new TestBackend();
        instance = backend.instance(settings);
    }

    @AfterEach
    void close() {
        threads.close();
        backend.close();
        arena.close();
        memory.close();
    }

    @Test
    void stopsARunOnceAllItsRequestsAreCancelled() throws Exception {
        FakeRequest first = request(FOREVER);
        FakeRequest second = request(1);
        try (FakeBatch batch = new FakeBatch(settings.build(), memory, first, second)) {
            Future<Void> run = threads.submit(() -> execute(batch));

            first.cancel();
            assertThatExceptionOfType(TimeoutException.class).isThrownBy(() -> run.get(50, TimeUnit.MILLISECONDS));
            second.cancel();

            run.get();
            assertCancelled(first);
            assertCancelled(second);
        }
    }

    @Test
    void finishesARunWithARequestThatIsNotCancelled() throws Exception {
        FakeRequest cancelled = request(3);
        FakeRequest live = request(20_000);
        try (FakeBatch batch = new FakeBatch(settings.build(), memory, cancelled, live)) {
            cancelled.cancel();

            execute(batch);

            assertThat(live.failure()).isEmpty();
            assertThat(batch.outputs().get("output").data().getAtIndex(ValueLayout.JAVA_LONG, 1))
                    .isEqualTo(20_000);
        }
    }

    @Test
    void doesNotRunForRequestsThatAreCancelledAlready() throws Exception {
        FakeRequest request = request(FOREVER);
        request.cancel();
        try (FakeBatch batch = new FakeBatch(settings.build(), memory, request)) {
            execute(batch);

            assertCancelled(request);
            assertThat(batch.outputs()).isEmpty();
        }
    }

    @Test
    void servesOnAfterARunThatWasStopped() throws Exception {
        for (int round = 0; round < 20; round++) {
            FakeRequest cancelled = request(FOREVER);
            FakeRequest next = request(5);
            try (FakeBatch stopped = new FakeBatch(settings.build(), memory, cancelled);
                    FakeBatch batch = new FakeBatch(settings.build(), memory, next)) {
                Future<Void> run = threads.submit(() -> execute(stopped));
                threads.submit(cancelled::cancel).get();
                run.get();

                execute(batch);

                assertCancelled(cancelled);
                assertThat(next.failure()).isEmpty();
                assertThat(batch.outputs().get("output").data().get(ValueLayout.JAVA_LONG, 0))
                        .isEqualTo(5);
            }
        }
    }

    private Void execute(FakeBatch batch) {
        instance.execute(batch);
        return null;
    }

    private FakeRequest request(long limit) {
        MemorySegment data = arena.allocateFrom(ValueLayout.JAVA_LONG, limit);
        return new FakeRequest(1, List.of("output")).with("limit", Tensor.of(DataType.INT64, Shape.of(1, 1), data));
    }

    private static void assertCancelled(FakeRequest request) throws ExecutionException {
        assertThat(request.failure()).hasValueSatisfying(failure -> {
            assertThat(failure.code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(failure).hasMessage("request was cancelled");
        });
    }
}
