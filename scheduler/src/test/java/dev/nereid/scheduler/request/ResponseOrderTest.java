package dev.nereid.scheduler.request;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests that responses keep the order in which the requests began. Two instances end their executions in any order. */
final class ResponseOrderTest {
    private static final long TIMEOUT = 1_000;

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final Map<String, DeferredExecution> executions = new HashMap<>();
    private final Map<String, ResponseSender> senders = new HashMap<>();
    private final Map<String, RecordingObserver> observers = new HashMap<>();
    private final SteppedScheduler scheduler = scheduler(settings(false), batch -> {
        FakeInstance.copy(batch);
        executions.put(batch.requests().getFirst().id(), batch.defer());
    });
    private final SteppedScheduler streaming = scheduler(settings(true), batch -> {
        InferenceRequest request = batch.requests().getFirst();
        senders.put(request.id(), request.sender());
    });

    private static ModelSettings settings(boolean decoupled) {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .decoupled(decoupled)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
    }

    private SteppedScheduler scheduler(ModelSettings settings, FakeInstance.Execution execution) {
        QueuePolicy policy = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, TIMEOUT, false, 0);
        return new SteppedScheduler(
                settings,
                BatchPlanner.oneByOne(),
                new BatchingPolicy(true, List.of(), 0, true, new PriorityPolicy(0, 0, policy, Map.of())),
                memory,
                ExecutionTraits.DEFAULT,
                new FakeInstance(execution),
                new FakeInstance(execution));
    }

    @AfterEach
    void everyRequestCompletesAndReleasesItsMemory() {
        observers.forEach((id, observer) -> {
            observer.check();
            assertThat(observer.hasEnded()).as("%s is completed", id).isTrue();
            observer.close();
        });
        assertThat(scheduler.inFlight() + streaming.inFlight()).isZero();
    }

    /** Also if it begins again: a place that nobody ends would hold back all later responses. */
    @Test
    void aRequestTakesOnePlace() {
        ResponseOrder order = new ResponseOrder();
        RecordingObserver observer = new RecordingObserver();
        ScheduledRequest request = new ScheduledRequest(
                scheduler.model,
                order,
                Requests.to(settings(false), memory)
                        .floats("IN", Shape.of(1, 2), 1)
                        .of(1),
                observer,
                0);
        request.begin();
        request.delivery().takePlace();
        request.delivery().takePlace();
        request.complete(ResponseEvent.END);
        request.release();

        assertThat(observer.hasEnded()).isTrue();
        assertThat(order.nextPlace()).isEqualTo(1);
    }

    @Test
    void holdsAFasterResponseBack() {
        submit(scheduler, "a");
        submit(scheduler, "b");
        step(scheduler, 0);
        step(scheduler, 1);

        executions.get("b").complete();
        assertThat(observers.get("b").isSilent()).isTrue();
        executions.get("a").complete();

        assertThat(observers.get("a").hasEnded()).isTrue();
        assertThat(observers.get("b").hasEnded()).isTrue();
    }

    @Test
    void placesFollowTheOrderOfTaking() {
        submit(scheduler, "a");
        submit(scheduler, "b");
        submit(scheduler, "c");
        step(scheduler, 1);
        step(scheduler, 0);
        executions.get("b").complete();
        step(scheduler, 0);
        executions.get("c").complete();
        assertThat(List.of(observers.get("b"), observers.get("c"))).allMatch(RecordingObserver::isSilent);

        executions.get("a").complete();

        assertThat(List.of(observers.get("b"), observers.get("c"))).allMatch(RecordingObserver::hasEnded);
    }

    @Test
    void aRejectedRequestBlocksNoOther() {
        submit(scheduler, "late");
        scheduler.advance(TIMEOUT + 1);
        submit(scheduler, "a");
        submit(scheduler, "cancelled").cancel();
        submit(scheduler, "b");
        step(scheduler, 0);
        step(scheduler, 1);
        submit(scheduler, "late as well");
        scheduler.advance(TIMEOUT + 1);

        assertThat(observers.get("late as well").hasEnded())
                .as("completed at once")
                .isTrue();
        executions.get("a").complete();
        executions.get("b").complete();

        assertThat(observers.get("b").hasEnded()).isTrue();
    }

    @Test
    void aFailureEndsItsPlace() {
        submit(scheduler, "a");
        submit(scheduler, "b");
        step(scheduler, 0);
        step(scheduler, 1);
        executions.get("b").complete();

        executions.get("a").fail(new BackendException(ErrorCode.NOT_FOUND, "failed"));

        observers.get("a").assertError(ErrorCode.NOT_FOUND, "failed");
        assertThat(observers.get("b").hasEnded()).isTrue();
    }

    @Test
    void aCancelledExecutingRequestKeepsItsPlace() {
        submit(scheduler, "a");
        Cancellation b = submit(scheduler, "b");
        step(scheduler, 0);
        step(scheduler, 1);
        b.cancel();
        executions.get("b").complete();
        assertThat(observers.get("b").isSilent()).isTrue();

        executions.get("a").complete();

        observers.get("b").assertError(ErrorCode.CANCELLED, "request was cancelled");
    }

    @Test
    void streamsOnlyTheFirstRequest() {
        submit(streaming, "a");
        submit(streaming, "b");
        step(streaming, 0);
        step(streaming, 1);

        send("b");
        senders.get("b").sendError(new BackendException(ErrorCode.INTERNAL, "one of b"));
        send("a");
        assertThat(observers.get("a").responses()).hasSize(1);
        assertThat(observers.get("b").isSilent()).isTrue();
        assertThat(observers.get("b").failedResponses()).isEmpty();
        senders.get("a").complete();
        assertThat(observers.get("b").failedResponses()).hasSize(1);
        assertThat(observers.get("b").responses()).hasSize(1);
        send("b");

        assertThat(observers.get("b").responses()).hasSize(2);
        senders.get("b").complete();
    }

    @Test
    void aPlaceEndsWithItsTerminalResponse() {
        submit(streaming, "a");
        submit(streaming, "b");
        submit(streaming, "c");
        step(streaming, 0);
        step(streaming, 1);
        step(streaming, 1);
        senders.get("c").complete();
        send("b");
        senders.get("b").complete();
        send("a");
        assertThat(List.of(observers.get("b"), observers.get("c"))).allMatch(RecordingObserver::isSilent);

        senders.get("a").complete();

        assertThat(observers.get("b").responses()).hasSize(1);
        assertThat(observers.get("c").hasEnded()).isTrue();
    }

    private Cancellation submit(SteppedScheduler to, String id) {
        RecordingObserver observer = new RecordingObserver();
        observers.put(id, observer);
        ModelSettings settings = to.model.settings();
        return to.submit(
                Requests.to(settings, memory)
                        .id(id)
                        .floats("IN", Shape.of(1, 2), 1)
                        .of(1),
                observer);
    }

    private static void step(SteppedScheduler scheduler, int instance) {
        assertThat(scheduler.workers.get(instance).step()).isTrue();
    }

    private void send(String id) {
        InferenceResponse response = senders.get(id).newResponse();
        response.allocate("OUT", DataType.FP32, Shape.of(1, 2));
        senders.get(id).send(response);
    }
}
