package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.floats;
import static dev.nereid.grpc.testing.TestFrontend.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
import inference.ModelInferRequest;
import inference.ServerLiveRequest;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests deadlines that expire in the queue or during execution. */
@Timeout(60)
final class DeadlineIT {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final long DEADLINE_MILLIS = 500;
    private static final ModelInferRequest REQUEST =
            request("busy", "FP32", floats(1), 1).build();

    private final ExecutorService instance = Executors.newSingleThreadExecutor();
    private final BlockingQueue<ReceivedRequest> executing = new LinkedBlockingQueue<>();
    private final CountDownLatch gate = new CountDownLatch(1);
    private TestFrontend frontend;

    @BeforeEach
    void start() {
        frontend = new TestFrontend();
        frontend.server.add(FakeModel.identity("busy", DataType.FP32, 0, -1)
                .responding(this::execute)
                .on(instance));
        // The connection is open, so that no deadline expires while it is opened.
        assertThat(frontend.client
                        .serverLive(ServerLiveRequest.getDefaultInstance())
                        .getLive())
                .isTrue();
    }

    @AfterEach
    void stop() {
        gate.countDown();
        instance.close();
        frontend.close();
    }

    @Test
    void cancelsAtTheDeadline() throws InterruptedException {
        assertThat(inferExpectingDeadline().getStatus().getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);

        assertThat(take().awaitCancel(TIMEOUT)).isTrue();
    }

    @Test
    void cancelsAQueuedRequestAtItsDeadline() throws Exception {
        CompletableFuture<Integer> first = CompletableFuture.supplyAsync(
                () -> frontend.client.modelInfer(REQUEST).getOutputsCount());
        ReceivedRequest before = take();

        assertThat(inferExpectingDeadline().getStatus().getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);

        TestFrontend.await(() -> frontend.server.requests().size() == 2);
        ReceivedRequest waiting = frontend.server.requests().getLast();
        assertThat(waiting.awaitCancel(TIMEOUT)).isTrue();
        assertThat(before.isCancelled()).isFalse();
        gate.countDown();
        assertThat(first.get(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isEqualTo(1);
        assertThat(executing).isEmpty();
    }

    private StatusRuntimeException inferExpectingDeadline() {
        return catchThrowableOfType(
                StatusRuntimeException.class,
                () -> frontend.client
                        .withDeadlineAfter(DEADLINE_MILLIS, TimeUnit.MILLISECONDS)
                        .modelInfer(REQUEST));
    }

    /** Executes requests that were not cancelled; the first of them waits at the gate. */
    private void execute(ReceivedRequest call) {
        if (call.isCancelled()) {
            return;
        }
        executing.add(call);
        try {
            assertThat(gate.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        call.respondWithInputs();
    }

    private ReceivedRequest take() throws InterruptedException {
        ReceivedRequest call = executing.poll(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
        assertThat(call).isNotNull();
        return call;
    }
}
