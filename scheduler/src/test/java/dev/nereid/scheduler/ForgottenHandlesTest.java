package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.handle.PluginHandles;
import dev.nereid.scheduler.handle.Reachability;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.memory.InputLease;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that senders and leases which a plugin forgets are ended, but never while it can use them. */
@Tag("slow")
@Timeout(120)
final class ForgottenHandlesTest {
    /** Rounds in which nothing may be ended. */
    private static final int ROUNDS = 5;

    private static final String FORGOTTEN =
            "model 'm': its plugin forgot the sender of the request (expected: ResponseSender.complete or fail)";

    private final Queue<String> reports = new ConcurrentLinkedQueue<>();
    private final Queue<Throwable> places = new ConcurrentLinkedQueue<>();

    /** The objects that the plugin keeps. */
    private final List<Object> kept = new ArrayList<>();

    private final ExecutionTraits traits = ExecutionTraits.DEFAULT.with(this::report);

    private void report(PluginHandles.Kind kind, long number, Throwable place) {
        if (place != null) {
            places.add(place);
        }
        reports.add(kind + " " + number);
    }

    private static ModelSettings model(boolean decoupled) {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .decoupled(decoupled)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
    }

    /** An action of a plugin with a request. */
    private interface Plugin {
        void execute(InferenceRequest request);
    }

    private Execution execute(boolean decoupled, Plugin plugin) {
        Execution execution = new Execution(
                model(decoupled),
                new LeakCheckingMemory(),
                traits,
                batch -> batch.requests().forEach(plugin::execute));
        Execution.submit(execution, 1);
        return execution.run();
    }

    @Test
    void theRequestOfAForgottenSenderFails() {
        for (boolean decoupled : new boolean[] {true, false}) {
            reports.clear();
            try (Execution execution = execute(decoupled, InferenceRequest::sender)) {
                awaitCollected(() -> execution.scheduler.inFlight() == 0);

                execution.observers.getFirst().assertError(ErrorCode.INTERNAL, FORGOTTEN);
                assertThat(reports).containsExactly("SENDER 1");
            }
        }
        assertThat(places)
                .allSatisfy(place -> assertThat(place.getStackTrace())
                        .anyMatch(frame -> frame.getClassName().contains("ForgottenHandlesTest")));
        assertThat(places).hasSize(2);
    }

    @Test
    void theResponsesOfAForgottenSenderAreDiscarded() {
        try (Execution execution = execute(true, request -> {
            ResponseSender sender = request.sender();
            sender.send(response(sender, 1));
            response(sender, 2);
            sender.newResponse().put("OUT", request.requireInput("IN"));
        })) {
            awaitCollected(() -> execution.observers.getFirst().hasEnded());

            execution.observers.getFirst().assertError(ErrorCode.INTERNAL, FORGOTTEN);
            assertThat(execution.observers.getFirst().responses()).hasSize(1);
            execution.observers.getFirst().close();
            awaitCollected(() -> execution.scheduler.inFlight() == 0);
        }
    }

    @Test
    void aResponseIsDiscardedThatAnEndedSenderHasLeft() throws InterruptedException {
        try (Execution execution = execute(true, request -> kept.add(request.sender()))) {
            Thread other = Thread.ofPlatform().start(() -> response((ResponseSender) kept.getFirst(), 1));
            other.join();
            ((ResponseSender) kept.getFirst()).complete();
            assertThat(execution.memory.buffersInUse()).as("the response").isEqualTo(1);

            kept.clear();
            awaitCollected(() -> execution.memory.buffersInUse() == 0);
            assertThat(reports).isEmpty();
        }
    }

    @Test
    void aCancelledRequestEndsWithTheForgottenSender() {
        try (Execution execution = execute(true, request -> kept.add(request.sender()))) {
            execution.requests.getFirst().cancel();
            collect();
            assertThat(execution.scheduler.model.detached().forsaken()).isEqualTo(1);

            kept.clear();
            awaitCollected(() -> execution.observers.getFirst().hasEnded());

            execution.observers.getFirst().assertError(ErrorCode.CANCELLED, "request was cancelled");
            assertThat(reports).hasSize(1);
            awaitCollected(() -> execution.scheduler.inFlight() == 0);
            assertThat(execution.scheduler.model.detached().forsaken()).isZero();
        }
    }

    @Test
    void aSenderStaysThatThePluginKeeps() {
        staysWith(InferenceRequest::sender);
    }

    @Test
    void aSenderStaysWhileItsRequestIsKept() {
        staysWith(request -> {
            request.sender();
            return request;
        });
    }

    @Test
    void aSenderStaysWhileAResponseIsKept() {
        staysWith(request -> request.sender().newResponse());
    }

    @Test
    void aSenderStaysWhileATensorOfAResponseIsKept() {
        staysWith(request -> request.sender()
                .newResponse()
                .allocate("OUT", DataType.FP32, Shape.of(1, 2))
                .data());
    }

    @Test
    void aSenderStaysWhileAnInputIsKept() {
        staysWith(request -> {
            Tensor input = request.requireInput("IN");
            request.sender();
            return input.data().asSlice(4);
        });
    }

    @Test
    void aSenderStaysWhileACancelActionMayEndIt() {
        try (Execution execution = execute(true, request -> {
            ResponseSender sender = request.sender();
            request.onCancel(sender::complete);
        })) {
            collect();
            assertThat(execution.observers.getFirst().isSilent()).isTrue();

            execution.requests.getFirst().cancel();

            execution.observers.getFirst().assertError(ErrorCode.CANCELLED, "request was cancelled");
            assertThat(reports).isEmpty();
        }
    }

    private void staysWith(Function<InferenceRequest, Object> keep) {
        try (Execution execution = execute(true, request -> kept.add(keep.apply(request)))) {
            collect();
            assertThat(execution.observers.getFirst().isSilent()).isTrue();
            assertThat(execution.scheduler.model.detached().openSenders()).isEqualTo(1);

            kept.clear();
            awaitCollected(() -> execution.observers.getFirst().hasEnded());
            execution.observers.getFirst().assertError(ErrorCode.INTERNAL, FORGOTTEN);
            awaitCollected(() -> execution.scheduler.inFlight() == 0);
        }
    }

    @Test
    void aSenderStaysWhileItsRequestWaitsForAnotherExecution() {
        LeakCheckingMemory memory = new LeakCheckingMemory();
        FakeInstance instance = new FakeInstance(batch -> {
            InferenceRequest request = batch.requests().getFirst();
            ResponseSender sender = request.sender();
            sender.send(response(sender, 1));
            if (reports.isEmpty()) {
                reports.add("first");
                request.reschedule();
            }
        });
        SteppedScheduler scheduler = SteppedScheduler.iterative(
                model(true), new BatchPlanner(8, List.of(), 0), PriorityPolicy.NONE, memory, traits, instance);
        RecordingObserver observer = new RecordingObserver();
        scheduler.submit(
                Requests.to(model(true), memory).floats("IN", Shape.of(1, 2), 1).of(1), observer);

        scheduler.step();
        collect();
        assertThat(observer.hasEnded()).isFalse();
        scheduler.step();
        awaitCollected(observer::hasEnded);

        observer.assertError(ErrorCode.INTERNAL, FORGOTTEN);
        assertThat(observer.responses()).hasSize(2);
        assertThat(reports).containsExactly("first", "SENDER 1");
        observer.close();
        awaitCollected(() -> scheduler.inFlight() == 0);
        memory.close();
    }

    @Test
    void anEndedSenderIsNotReported() {
        try (Execution execution = execute(true, request -> request.sender().complete())) {
            collect();
            assertThat(execution.observers.getFirst().responses()).isEmpty();
            execution.observers.getFirst().check();
        }
        assertThat(reports).isEmpty();
    }

    @Test
    void anEndWinsAgainstTheCollector() throws Exception {
        for (int i = 0; i < 50; i++) {
            CyclicBarrier barrier = new CyclicBarrier(2);
            Thread[] ending = new Thread[1];
            try (Execution execution = execute(true, request -> {
                ResponseSender sender = request.sender();
                ending[0] = Thread.ofPlatform().unstarted(() -> {
                    try {
                        barrier.await();
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                    sender.fail(new BackendException(ErrorCode.NOT_FOUND, "ended"));
                });
            })) {
                ending[0].start();
                barrier.await();
                System.gc();
                ending[0].join();
                execution.observers.getFirst().assertError(ErrorCode.NOT_FOUND, "ended");
                ending[0] = null;
            }
        }
        assertThat(reports).isEmpty();
    }

    @Test
    void moreAreReportedTogetherAtTheEnd() {
        try (Execution execution = execute(true, InferenceRequest::sender)) {
            awaitCollected(() -> execution.scheduler.inFlight() == 0);
            Execution.submit(execution, 1, 1, 1);
            execution.run();
            awaitCollected(() -> execution.scheduler.inFlight() == 0);
            assertThat(reports).containsExactly("SENDER 1");

            execution.scheduler.scope.handles().close();

            assertThat(reports).containsExactly("SENDER 1", "SENDER 4");
        }
    }

    @Test
    void aForgottenLeaseIsEnded() {
        try (Execution execution = execute(false, request -> {
            request.leaseInputs();
            request.leaseInputs();
            response(request.response(), 1);
        })) {
            execution.observers.getFirst().close();
            assertThat(execution.scheduler.scope.handles().openLeases()).isEqualTo(2);
            awaitCollected(() -> execution.scheduler.inFlight() == 0);

            assertThat(execution.scheduler.scope.handles().openLeases()).isZero();
            assertThat(reports).contains("LEASE 1"); // on a thread each, in any order
            assertThat(reports).hasSizeBetween(1, 2); // the place may be that of the second one
            assertThat(execution.memory.buffersInUse()).isZero();
        }
    }

    @Test
    void aLeaseStaysWhileThePluginKeepsIt() {
        leaseStaysWith(InferenceRequest::leaseInputs);
    }

    @Test
    void aLeaseStaysWhileAnInputIsKept() {
        leaseStaysWith(request -> {
            request.leaseInputs();
            return request.requireInput("IN").data();
        });
    }

    private void leaseStaysWith(Function<InferenceRequest, Object> keep) {
        try (Execution execution = execute(false, request -> {
            kept.add(keep.apply(request));
            response(request.response(), 1);
        })) {
            execution.observers.getFirst().close();
            collect();
            assertThat(execution.scheduler.inFlight()).isEqualTo(1);
            assertThat(execution.memory.buffersInUse()).isEqualTo(1);

            kept.clear();
            awaitCollected(() -> execution.scheduler.inFlight() == 0);
            assertThat(reports).containsExactly("LEASE 1");
        }
    }

    @Test
    void anEndedLeaseIsNotReported() {
        try (Execution execution = execute(false, request -> {
            request.leaseInputs().run();
            response(request.response(), 1);
        })) {
            collect();
            assertThat(execution.scheduler.scope.handles().openLeases()).isZero();
        }
        assertThat(reports).isEmpty();
    }

    @Test
    void whatCannotBeEndedAtOnceIsEndedLater() {
        AtomicInteger calls = new AtomicInteger();
        PluginHandles handles = new PluginHandles(
                action -> {
                    if (calls.getAndIncrement() == 0) {
                        throw new RejectedExecutionException("of a test");
                    }
                    action.run();
                },
                this::report);
        InputLease lease = new InputLease(() -> {}, List.of());
        handles.lease(lease, new Reachability());

        awaitCollected(() -> handles.openLeases() == 0);

        assertThat(lease.isEnded()).isTrue();
        assertThat(calls).hasValue(2);
        assertThat(reports).containsExactly("LEASE 1");
    }

    @Test
    void whatIsEndedIsNotKeptUntilItsInputsAreForgotten() {
        PluginHandles handles = new PluginHandles(Runnable::run, this::report);
        Reachability inputs = new Reachability();
        WeakReference<InputLease> lease = endedLease(handles, inputs);
        WeakReference<PluginHandles.EndableSender> sender = endedSender(handles, inputs);

        try {
            awaitCollected(() -> lease.refersTo(null) && sender.refersTo(null));

            assertThat(reports).isEmpty();
        } finally {
            Reference.reachabilityFence(inputs);
        }
    }

    private static WeakReference<InputLease> endedLease(PluginHandles handles, Reachability inputs) {
        InputLease lease = new InputLease(() -> {}, List.of());
        handles.lease(lease, inputs).run();
        return new WeakReference<>(lease);
    }

    /** Ends a sender of which nothing is left then. */
    private static WeakReference<PluginHandles.EndableSender> endedSender(PluginHandles handles, Reachability inputs) {
        PluginHandles.EndableSender sender = (PluginHandles.EndableSender) Proxy.newProxyInstance(
                PluginHandles.EndableSender.class.getClassLoader(),
                new Class<?>[] {PluginHandles.EndableSender.class},
                (_, method, _) -> method.getReturnType() == boolean.class ? false : null);
        handles.sender(sender, inputs).complete();
        return new WeakReference<>(sender);
    }

    @Test
    void aReadOfAnInputThrowsOnceItsSenderHasClosedItsArena() {
        LeakCheckingMemory memory = new LeakCheckingMemory();
        Arena arena = Arena.ofShared();
        MemorySegment data = arena.allocate(8, 8);
        try (Execution execution = new Execution(model(true), memory, traits, batch -> {
            InferenceRequest request = batch.requests().getFirst();
            ResponseSender sender = request.sender();
            kept.add(request.requireInput("IN").data());
            sender.complete();
        })) {
            execution.submit(execution
                    .request()
                    .inputOfCaller("IN", Tensor.of(DataType.FP32, Shape.of(1, 2), data))
                    .of(1));
            execution.run();
        }
        arena.close();

        assertThatIllegalStateException()
                .isThrownBy(() -> ((MemorySegment) kept.getFirst()).get(ValueLayout.JAVA_FLOAT, 0));
    }

    private static InferenceResponse response(ResponseSender sender, float value) {
        return response(sender.newResponse(), value);
    }

    private static InferenceResponse response(InferenceResponse response, float value) {
        response.allocate("OUT", DataType.FP32, Shape.of(1, 2)).data().set(ValueLayout.JAVA_FLOAT, 0, value);
        return response;
    }

    /** Collects what is not reachable. */
    private static void collect() {
        for (int i = 0; i < ROUNDS; i++) {
            System.gc();
        }
    }

    private static void awaitCollected(BooleanSupplier condition) {
        while (!condition.getAsBoolean()) {
            assertThat(Thread.currentThread().isInterrupted()).as("time out").isFalse();
            System.gc();
            Thread.onSpinWait();
        }
    }
}
