package dev.nereid.grpc;

import static dev.nereid.grpc.Frontend.floats;
import static dev.nereid.grpc.Frontend.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeCall;
import dev.nereid.testkit.FakeModel;
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

/** Deadlines that pass while a model of one instance has the request, or another one before it. */
@Timeout(60)
final class DeadlineIT {
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final long DEADLINE_MILLIS = 500;
    private static final ModelInferRequest REQUEST =
            request("busy", "FP32", floats(1), 1).build();

    private final ExecutorService instance = Executors.newSingleThreadExecutor();
    private final BlockingQueue<FakeCall> executing = new LinkedBlockingQueue<>();
    private final CountDownLatch gate = new CountDownLatch(1);
    private Frontend frontend;

    @BeforeEach
    void start() {
        frontend = new Frontend();
        frontend.server.add(FakeModel.identity("busy", DataType.FP32, 0, -1)
                .answering(this::execute)
                .on(instance));
        // The connection is there, so that no deadline passes on the way.
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
    void withdrawsAtTheDeadline() throws InterruptedException {
        assertThat(askInVain().getStatus().getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);

        assertThat(take().awaitCancel(PATIENCE)).isTrue();
    }

    @Test
    void withdrawsAQueuedRequestAtItsDeadline() throws Exception {
        CompletableFuture<Integer> first = CompletableFuture.supplyAsync(
                () -> frontend.client.modelInfer(REQUEST).getOutputsCount());
        FakeCall before = take();

        assertThat(askInVain().getStatus().getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);

        Frontend.await(() -> frontend.server.calls().size() == 2);
        FakeCall waiting = frontend.server.calls().getLast();
        assertThat(waiting.awaitCancel(PATIENCE)).isTrue();
        assertThat(before.isCancelled()).isFalse();
        gate.countDown();
        assertThat(first.get(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isEqualTo(1);
        assertThat(executing).isEmpty();
    }

    private StatusRuntimeException askInVain() {
        return catchThrowableOfType(
                StatusRuntimeException.class,
                () -> frontend.client
                        .withDeadlineAfter(DEADLINE_MILLIS, TimeUnit.MILLISECONDS)
                        .modelInfer(REQUEST));
    }

    /** Executes what nobody has withdrawn; the first of them waits at the gate. */
    private void execute(FakeCall call) {
        if (call.isCancelled()) {
            return;
        }
        executing.add(call);
        try {
            assertThat(gate.await(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        call.respondWithInputs();
    }

    private FakeCall take() throws InterruptedException {
        FakeCall call = executing.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        assertThat(call).isNotNull();
        return call;
    }
}
