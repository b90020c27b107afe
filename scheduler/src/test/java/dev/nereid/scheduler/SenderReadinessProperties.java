package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.frontend.FlowSignal;
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
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;

/** Tests on random schedules of real threads that a backend that waits for its sender always continues, and ends. */
@Tag("slow")
final class SenderReadinessProperties {
    private static final int RESPONSES = 300;
    private static final ModelSettings MODEL = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .decoupled(true)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
            .build();

    /** A client reads in bursts, another thread of the backend registers too, and the request may be cancelled. */
    @Property(tries = 200)
    void losesNoWakeUp(@ForAll long seed) throws InterruptedException {
        Random random = new Random(seed);
        try (LeakCheckingMemory memory = new LeakCheckingMemory()) {
            ModelScope model = Scopes.of(MODEL, memory, System::nanoTime);
            Client client = new Client(1 + random.nextInt(4));
            ScheduledRequest request = new ScheduledRequest(
                    model,
                    null,
                    Requests.to(MODEL, memory).floats("IN", Shape.of(1, 2), 1).of(1),
                    client,
                    0);
            assertThat(request.begin()).isTrue();
            ResponseStream stream = new ResponseStream(
                    ExecutionScope.of(model, AcceptedMemory.HOST, Thread::startVirtualThread), request, null);
            request.delivery().open(stream);
            request.release();
            Pump pump = new Pump(stream);
            int cancelAt = random.nextBoolean() ? random.nextInt(RESPONSES) : Integer.MAX_VALUE;

            List<Thread> threads = new ArrayList<>();
            threads.add(Thread.startVirtualThread(() -> client.read(cancelAt, request)));
            threads.add(Thread.startVirtualThread(() -> stream.onReady(pump)));
            if (random.nextBoolean()) {
                threads.add(Thread.startVirtualThread(() -> {
                    for (int i = 0; i < 20; i++) {
                        stream.onReady(pump);
                    }
                }));
            }

            assertThat(client.ended.await(20, TimeUnit.SECONDS))
                    .as("ended; %s", pump)
                    .isTrue();
            for (Thread thread : threads) {
                thread.join();
            }
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
            while (model.drain().count() > 0) {
                assertThat(end - System.nanoTime()).as("released").isPositive();
                Thread.onSpinWait();
            }
            assertThat(pump.overlaps).isFalse();
            if (cancelAt == Integer.MAX_VALUE) {
                assertThat(client.received).isEqualTo(RESPONSES);
            }
        }
    }

    /** Sends while the sender is ready, and then registers itself again. */
    private static final class Pump implements Runnable {
        private final BackendException response = new BackendException(ErrorCode.INTERNAL, "a response");
        private final ResponseStream stream;
        private final AtomicBoolean inside = new AtomicBoolean();
        private int sent;
        volatile boolean overlaps;

        Pump(ResponseStream stream) {
            this.stream = stream;
        }

        @Override
        public void run() {
            overlaps |= !inside.compareAndSet(false, true);
            while (sent < RESPONSES && !stream.isCancelled() && stream.isReady()) {
                stream.sendError(response);
                sent++;
            }
            boolean done = sent == RESPONSES || stream.isCancelled();
            inside.set(false);
            if (done) {
                stream.complete();
            } else {
                stream.onReady(this);
            }
        }

        @Override
        public String toString() {
            return "sent " + sent;
        }
    }

    /** A client that has room for a few responses. */
    private static final class Client implements ResponseObserver {
        final CountDownLatch ended = new CountDownLatch(1);
        private final AtomicInteger unread = new AtomicInteger();
        private final FlowSignal flow;
        private int received;

        Client(int room) {
            flow = new FlowSignal(() -> unread.get() < room);
        }

        /** Reads what arrived, until the end; cancels on the way. */
        void read(int cancelAt, ScheduledRequest request) {
            int read = 0;
            while (ended.getCount() > 0) {
                int taken = unread.getAndSet(0);
                read += taken;
                if (taken > 0) {
                    flow.check();
                }
                if (read >= cancelAt) {
                    request.cancel();
                }
                Thread.onSpinWait();
            }
        }

        @Override
        public void onFailedResponse(InferenceException error) {
            received++;
            unread.incrementAndGet();
        }

        @Override
        public void onResponse(InferResponse response) {
            response.close();
        }

        @Override
        public void onCompleted() {
            ended.countDown();
        }

        @Override
        public void onError(InferenceException error) {
            ended.countDown();
        }

        @Override
        public ResponseFlow flow() {
            return flow;
        }
    }
}
