package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.nereid.api.statistics.ResponseStatistics;
import dev.nereid.api.statistics.Timing;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.batch.ResponseStream;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The responses to one request, when several threads send them or something fails meanwhile. */
@Timeout(60)
final class ResponseStreamTest {
    private final BackendException no = new BackendException(ErrorCode.INTERNAL, "no");

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final RecordingObserver observer = new RecordingObserver();
    private final AtomicLong time = new AtomicLong();
    private LongSupplier clock = time::getAndIncrement;
    private final ModelScope model = Scopes.of(
            ModelSettings.builder("m", 1)
                    .maxBatchSize(8)
                    .decoupled(true)
                    .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                    .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
                    .build(),
            memory,
            () -> clock.getAsLong());
    private final ScheduledRequest request = new ScheduledRequest(
            model,
            null,
            Requests.to(model.settings(), memory)
                    .floats("IN", Shape.of(1, 2), 1)
                    .of(1),
            observer,
            0);
    private final ResponseStream stream = open();

    private ResponseStream open() {
        assertThat(request.begin()).isTrue();
        ResponseStream opened = new ResponseStream(
                ExecutionScope.of(model, AcceptedMemory.HOST, Thread::startVirtualThread), request, null);
        request.delivery().open(opened);
        request.release();
        return opened;
    }

    @AfterEach
    void endsAndGivesTheInputsBack() {
        stream.complete();

        assertThat(observer.hasEnded()).isTrue();
        observer.check();
        assertThat(memory.buffersInUse()).isZero();
        memory.close();
    }

    private List<ResponseStatistics> responses() {
        return model.meter().read().responses();
    }

    @Test
    void countsNoNegativeTimeIfAnotherThreadReadsTheClockLater() throws InterruptedException {
        Thread other = new Thread(() -> stream.sendError(no));
        AtomicBoolean first = new AtomicBoolean(true);
        clock = () -> {
            long now = time.getAndIncrement();
            if (first.compareAndSet(true, false)) {
                other.start();
                while (other.isAlive() && other.getState() != Thread.State.WAITING) {
                    Thread.onSpinWait();
                }
            }
            return now;
        };

        stream.sendError(no);
        other.join();

        assertThat(responses())
                .hasSize(2)
                .allSatisfy(response -> assertThat(response.fail()).isEqualTo(new Timing(1, 1)));
    }

    @Test
    void tellsFailedResponsesInTheOrderOfTheirPlaces() throws InterruptedException {
        int each = 1000;
        List<Thread> threads = new ArrayList<>();
        CountDownLatch start = new CountDownLatch(1);
        for (ErrorCode code : List.of(ErrorCode.INTERNAL, ErrorCode.CANCELLED, ErrorCode.INTERNAL)) {
            threads.add(Thread.startVirtualThread(() -> {
                Latches.await(start);
                for (int i = 0; i < each; i++) {
                    stream.sendError(new BackendException(code, "no"));
                }
            }));
        }
        start.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        stream.complete();
        observer.await();

        assertThat(observer.failedResponses())
                .extracting(error -> error.code() == ErrorCode.CANCELLED)
                .containsExactlyElementsOf(responses().stream()
                        .map(response -> response.cancel().count() == 1)
                        .toList());
    }

    @Test
    void refusesMissingErrorsAndGoesOn() {
        assertThatNullPointerException()
                .isThrownBy(() -> stream.sendError(null))
                .withMessage("error");
        assertThatNullPointerException().isThrownBy(() -> stream.fail(null)).withMessage("error");

        assertThat(observer.hasEnded()).isFalse();
        assertThat(responses()).isEmpty();
    }

    @Test
    void goesOnIfAFailedResponseCannotBeCounted() {
        clock = () -> {
            throw new OutOfMemoryError("no memory, says the test");
        };
        assertThatExceptionOfType(OutOfMemoryError.class).isThrownBy(() -> stream.sendError(no));
        clock = time::getAndIncrement;

        stream.sendError(no);

        assertThat(observer.failedResponses()).hasSize(1);
        assertThat(responses()).hasSize(1);
    }

    @Test
    void countsNoFailedResponseThatNobodyIsSent() {
        request.cancel();

        stream.sendError(no);

        assertThat(responses()).isEmpty();
        assertThat(observer.failedResponses()).isEmpty();
    }
}
