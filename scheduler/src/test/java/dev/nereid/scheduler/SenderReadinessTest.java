package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.nereid.api.BackendCallbacks;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.batch.ResponseStream;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ResponseOrder;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeFlow;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests when a sender is ready, and when, where and how often its action runs. The test runs the executor's tasks. */
@Timeout(60)
final class SenderReadinessTest {
    private final BackendException no = new BackendException(ErrorCode.INTERNAL, "no");

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final FakeFlow flow = new FakeFlow();
    private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
    private final List<String> ran = Collections.synchronizedList(new ArrayList<>());
    private final List<ScheduledRequest> requests = new ArrayList<>();
    private final List<ResponseStream> streams = new ArrayList<>();
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final ModelScope model = Scopes.of(
            ModelSettings.builder("m", 1)
                    .maxBatchSize(8)
                    .decoupled(true)
                    .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                    .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
                    .build(),
            memory,
            () -> 0);

    private ResponseStream open() {
        return open(observer(), null, tasks::add);
    }

    private RecordingObserver observer() {
        observers.add(new RecordingObserver(flow));
        return observers.getLast();
    }

    /** Opens the stream of a request in execution. */
    private ResponseStream open(ResponseObserver observer, ResponseOrder order, BackendCallbacks executor) {
        ScheduledRequest request = new ScheduledRequest(
                model,
                order,
                Requests.to(model.settings(), memory)
                        .floats("IN", Shape.of(1, 2), 1)
                        .of(1),
                observer,
                0);
        assertThat(request.begin()).isTrue();
        request.delivery().takePlace();
        ResponseStream opened =
                new ResponseStream(ExecutionScope.of(model, AcceptedMemory.HOST, executor), request, null);
        request.delivery().open(opened);
        request.release();
        requests.add(request);
        streams.add(opened);
        return opened;
    }

    @AfterEach
    void releasesEverything() {
        streams.forEach(ResponseStream::complete);
        runTasks();
        observers.forEach(RecordingObserver::close);

        assertThat(model.drain().count()).isZero();
        assertThat(memory.buffersInUse()).isZero();
        memory.close();
    }

    private void runTasks() {
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
            task.run();
        }
    }

    @Test
    void isReadyWhileTheClientReads() {
        ResponseStream stream = open();
        assertThat(stream.isReady()).isTrue();

        flow.close();
        assertThat(stream.isReady()).isFalse();

        flow.open();
        assertThat(stream.isReady()).isTrue();
    }

    @Test
    void isReadyWithoutAClientThatWouldRead() {
        flow.close();
        ResponseStream ended = open();
        ended.complete();
        assertThat(ended.isReady()).isTrue();

        ResponseStream cancelled = open();
        requests.getLast().cancel();
        assertThat(cancelled.isReady()).isTrue();

        ResponseStream failed = open();
        requests.getLast().fail(no);
        assertThat(failed.isReady()).isTrue();
    }

    @Test
    void runsAnActionOnTheExecutorAlsoIfReady() {
        ResponseStream stream = open();

        stream.onReady(() -> ran.add("a"));

        assertThat(ran).isEmpty();
        runTasks();
        assertThat(ran).containsExactly("a");
    }

    @Test
    void runsTheLatestActionOnceTheFlowOpens() {
        ResponseStream stream = open();
        flow.close();
        stream.onReady(() -> ran.add("replaced"));
        stream.onReady(() -> ran.add("ready " + stream.isReady()));
        assertThat(tasks).isEmpty();

        flow.open();
        flow.close();
        flow.open();

        assertThat(tasks).hasSize(1);
        runTasks();
        assertThat(ran).containsExactly("ready true");
        assertThat(flow.isAwaited()).isFalse();
    }

    @Test
    void waitsAgainIfTheFlowIsClosedBeforeTheTaskRuns() {
        ResponseStream stream = open();
        stream.onReady(() -> ran.add("a"));
        flow.close();

        runTasks();
        assertThat(ran).isEmpty();
        assertThat(flow.isAwaited()).isTrue();

        flow.open();
        runTasks();
        assertThat(ran).containsExactly("a");
    }

    @Test
    void runsAnActionOfACancelledRequest() {
        ResponseStream stream = open();
        flow.close();
        stream.onReady(() -> ran.add("cancelled " + stream.isCancelled()));

        requests.getFirst().cancel();
        requests.getFirst().cancel();

        runTasks();
        assertThat(ran).containsExactly("cancelled true");
    }

    @Test
    void runsAnActionWhenTheSenderIsEnded() {
        flow.close();
        List<Runnable> ends = List.of(
                () -> streams.getLast().complete(),
                () -> streams.getLast().fail(no),
                () -> streams.getLast().complete(streams.getLast().newResponse()));
        for (Runnable end : ends) {
            ResponseStream stream = open();
            stream.onReady(() -> ran.add("ready " + stream.isReady()));
            end.run();
            runTasks();
        }

        assertThat(ran).containsExactly("ready true", "ready true", "ready true");
    }

    @Test
    void runsAnActionWhenTheServerEndsTheSender() {
        ResponseStream stream = open();
        flow.close();
        stream.onReady(() -> ran.add(
                "ended " + stream.isEnded() + ", in flight " + model.drain().count()));

        stream.endByServer();

        runTasks();
        assertThat(ran).containsExactly("ended true, in flight 1");
        assertThat(model.drain().count()).isZero();
    }

    @Test
    void runsAnActionWhenTheServerStopsWaiting() {
        ResponseStream stream = open();
        flow.close();
        stream.onReady(() -> {
            ran.add("cancelled " + stream.isCancelled());
            stream.complete();
        });

        requests.getFirst().abandon();

        runTasks();
        assertThat(ran).containsExactly("cancelled true");
        assertThat(model.drain().count()).isZero();
    }

    /** The instance and the plugin must not be closed before. */
    @Test
    void keepsTheRequestUntilItsActionHasRun() {
        ResponseStream stream = open();
        flow.close();
        stream.onReady(() -> ran.add("replaced"));
        stream.onReady(() -> ran.add("in flight " + model.drain().count()));

        stream.complete();

        assertThat(model.drain().count()).isOne();
        runTasks();
        assertThat(ran).containsExactly("in flight 1");
        assertThat(model.drain().count()).isZero();
    }

    @Test
    void runsAnActionOfARequestThatIsGone() {
        ResponseStream stream = open();
        stream.complete();
        assertThat(model.drain().count()).isZero();

        stream.onReady(() -> ran.add("late"));

        runTasks();
        assertThat(ran).containsExactly("late");
    }

    @Test
    void runsActionsThatRegisterThemselvesInALoop() {
        ResponseStream stream = open();
        int count = 10_000;
        List<Integer> depths = new ArrayList<>();
        Runnable again = new Runnable() {
            @Override
            public void run() {
                depths.add(Thread.currentThread().getStackTrace().length);
                if (depths.size() < count) {
                    stream.onReady(this);
                    assertThat(tasks).as("tasks beside the running one").isEmpty();
                }
            }
        };

        stream.onReady(again);
        runTasks();

        assertThat(depths).hasSize(count).containsOnly(depths.getFirst());
    }

    @Test
    void goesOnAfterAnActionThatThrows() {
        ResponseStream stream = open();
        stream.onReady(() -> {
            stream.onReady(() -> ran.add("next"));
            throw new IllegalStateException("the action of the test");
        });

        runTasks();

        assertThat(ran).containsExactly("next");
    }

    @Test
    void triesAgainIfNoTaskCouldBeStarted() {
        ResponseStream stream = open(observer(), null, task -> {
            if (ran.isEmpty()) {
                ran.add("refused");
                throw new RejectedExecutionException("no thread, says the test");
            }
            tasks.add(task);
        });
        stream.onReady(() -> ran.add("a"));
        assertThat(ran).containsExactly("refused");

        stream.sendError(no);

        runTasks();
        assertThat(ran).containsExactly("refused", "a");
    }

    @Test
    void isNotReadyWhileResponsesWaitForASlowDelivery() throws InterruptedException {
        SlowObserver slow = new SlowObserver();
        ResponseStream stream = open(slow, null, tasks::add);
        Thread delivering = Thread.ofPlatform().start(() -> stream.sendError(no));
        Latches.await(slow.entered);
        assertThat(stream.isReady())
                .as("nothing waits behind the one in delivery")
                .isTrue();

        stream.sendError(no);
        assertThat(stream.isReady()).isFalse();
        stream.onReady(() -> ran.add("ready " + stream.isReady()));
        assertThat(tasks).isEmpty();

        slow.leave.countDown();
        delivering.join();
        runTasks();
        assertThat(ran).containsExactly("ready true");
    }

    /** The request of the earlier place may wait for the execution of the later one. */
    @Test
    void isReadyWhileResponsesWaitForThoseOfAnotherRequest() {
        ResponseOrder order = new ResponseOrder();
        ResponseStream first = open(observer(), order, tasks::add);
        ResponseStream second = open(observer(), order, tasks::add);

        second.sendError(no);
        second.sendError(no);

        assertThat(second.isReady()).isTrue();
        second.onReady(() -> ran.add("a"));
        runTasks();
        assertThat(ran).containsExactly("a");
        first.complete();
    }

    @Test
    void refusesMissingActions() {
        ResponseStream stream = open();

        assertThatNullPointerException().isThrownBy(() -> stream.onReady(null)).withMessage("action");
    }

    /** Blocks in its first response. */
    private static final class SlowObserver implements ResponseObserver {
        final CountDownLatch entered = new CountDownLatch(1);
        final CountDownLatch leave = new CountDownLatch(1);

        @Override
        public void onResponse(InferResponse response) {
            response.close();
        }

        @Override
        public void onFailedResponse(InferenceException error) {
            entered.countDown();
            Latches.await(leave);
        }

        @Override
        public void onCompleted() {}

        @Override
        public void onError(InferenceException error) {}

        @Override
        public ResponseFlow flow() {
            return ResponseFlow.OPEN;
        }
    }
}
