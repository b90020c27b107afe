package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.OutputTarget;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeDeviceMemory;
import dev.nereid.testkit.FakeFlow;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Uses every seam at once: models whose requests are executed again, keep a state on the instance that they are bound
 * to, compute on a device and wait for slow clients; and clients that send the response of one model to the next.
 *
 * <p>A journey is a chain of requests to random models. Each model returns its input plus one, and beside it how often
 * it did what it is here for. Executions fail, are deferred, and requests are cancelled at random.
 */
@Timeout(300)
final class SeamsTest {
    private static final int CLIENTS = 4;
    private static final int JOURNEYS = 250;
    private static final int MAX_STAGES = 5;
    private static final int IN_FLIGHT = 64;
    private static final int SEQUENCES = 24;
    private static final MemoryPlace GPU0 = new MemoryPlace(MemoryPlace.Kind.GPU, 0);

    /** The purpose of a model. */
    enum Seam {
        /** Executes requests again. */
        AGAIN,
        /** Keeps a state for each sequence, on the instance that the sequence is bound to. */
        SEQUENCES,
        /** Has its inputs and outputs on a device, if that is where they are wanted. */
        DEVICE,
        /** Sends responses while the client reads them. */
        STREAM,
        /** Executes on the thread that sends its request. */
        SHORT
    }

    private final FakeDeviceMemory gpu = new FakeDeviceMemory(GPU0);
    private final LeakCheckingMemory memory = new LeakCheckingMemory(gpu);
    private final LinkedBlockingQueue<Runnable> later = new LinkedBlockingQueue<>();
    private final Queue<String> violations = new ConcurrentLinkedQueue<>();
    private final SeamBackends backends = new SeamBackends(gpu, later, violations);
    private final Map<Seam, Scheduler> schedulers = new EnumMap<>(Seam.class);
    private final Map<Seam, AtomicInteger> sent = new EnumMap<>(Seam.class);
    private final Semaphore inFlight = new Semaphore(IN_FLIGHT);
    private final AtomicInteger ids = new AtomicInteger();
    private final AtomicInteger succeeded = new AtomicInteger();
    private final AtomicInteger pauses = new AtomicInteger();

    @Tag("slow")
    @Test
    void carriesAllOfThemTogether() throws InterruptedException {
        List<Thread> helpers = List.of(runLater(), runLater());
        try (TimerThread timer = new TimerThread(System::nanoTime)) {
            start(timer);
            List<Thread> clients = new ArrayList<>();
            for (int i = 0; i < CLIENTS; i++) {
                clients.add(Thread.ofPlatform().start(this::travel));
            }
            for (Thread client : clients) {
                client.join();
            }
            inFlight.acquireUninterruptibly(IN_FLIGHT); // all journeys have ended
            endSequences();
            schedulers.values().forEach(Scheduler::close);
        } finally {
            helpers.forEach(Thread::interrupt);
        }

        assertThat(violations).isEmpty();
        backends.instances().forEach(instance -> {
            assertThat(instance.violations()).isEmpty();
            assertThat(instance.isClosed()).isTrue();
        });
        assertThat(((BoundScheduler) schedulers.get(Seam.SEQUENCES)).sequences())
                .isZero();
        schedulers.forEach(this::assertDrained);
        assertThat(succeeded.get()).as("complete journeys").isGreaterThan(CLIENTS * JOURNEYS / 10);
        assertThat(backends.executedAgain()).as("repeated executions").isPositive();
        assertThat(backends.states()).as("stored states").isPositive();
        assertThat(gpu.copiesToHost()).as("outputs moved to the host").isPositive();
        assertThat(pauses.get()).as("pauses of slow clients").isPositive();
        memory.close();
    }

    private void assertDrained(Seam seam, Scheduler scheduler) {
        assertThat(scheduler.inFlight()).as("in flight of %s", seam).isZero();
        assertThat(scheduler.waiting()).as("waiting of %s", seam).isZero();
        InferenceTimings counts = scheduler.statistics().inferences();
        assertThat(counts.success().count()).as("successes of %s", seam).isPositive();
        assertThat(counts.success().count() + counts.fail().count())
                .as("requests to %s", seam)
                .isEqualTo(sent.get(seam).get());
    }

    private void start(TimerThread timer) {
        for (Seam seam : Seam.values()) {
            sent.put(seam, new AtomicInteger());
            ModelSettings settings = SeamBackends.settings(seam);
            List<FakeInstance> instances = backends.start(seam);
            if (seam == Seam.SEQUENCES) {
                schedulers.put(seam, new BoundScheduler(settings, memory, instances));
                continue;
            }
            Device device = seam == Seam.DEVICE ? new Device(Device.Kind.GPU, GPU0.deviceId()) : Device.CPU;
            List<Instance> slots = new ArrayList<>();
            for (FakeInstance instance : instances) {
                slots.add(new Instance("i" + slots.size(), device, instance));
            }
            ExecutionTraits traits = new ExecutionTraits(seam.name(), false, seam == Seam.SHORT).withMaxDeferred(4);
            schedulers.put(
                    seam,
                    TriedScheduler.start(
                            new ModelPlan(settings, new BatchingPolicy(true, List.of(), 0))
                                    .with(seam == Seam.DEVICE ? traits.withPlaces(Set.of(GPU0.kind())) : traits)
                                    .withIterative(seam == Seam.AGAIN),
                            slots,
                            new SchedulerEnvironment(memory, System::nanoTime, timer)));
        }
    }

    /** Runs what threads of backends, clients that cancel, and clients that read again do. */
    private Thread runLater() {
        return Thread.ofPlatform().daemon(true).start(() -> {
            try {
                while (true) {
                    later.take().run();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // the end of the test
            }
        });
    }

    private void travel() {
        for (int i = 0; i < JOURNEYS; i++) {
            inFlight.acquireUninterruptibly();
            new Journey(1 + random(MAX_STAGES), random(100)).next();
        }
    }

    private void endSequences() {
        Scheduler scheduler = schedulers.get(Seam.SEQUENCES);
        for (int i = 0; i < SEQUENCES; i++) {
            sent.get(Seam.SEQUENCES).incrementAndGet();
            try (RecordingObserver observer = new RecordingObserver()) {
                scheduler.submit(
                        request(Seam.SEQUENCES, 0)
                                .options(inSequence(i, true, OptionalLong.empty()))
                                .of(1),
                        observer);
                observer.await();
            }
        }
    }

    private Requests request(Seam seam, float value) {
        return Requests.to(SeamBackends.settings(seam), memory)
                .id(String.valueOf(ids.incrementAndGet()))
                .floats("IN", Shape.of(1, 2), value);
    }

    private static RequestOptions inSequence(long id, boolean end, OptionalLong deadline) {
        return new RequestOptions(0, 0, deadline, Optional.of(new Sequence(new Sequence.Id.Numeric(id), false, end)));
    }

    private static boolean chance(int of) {
        return random(of) == 0;
    }

    private static int random(int bound) {
        return ThreadLocalRandom.current().nextInt(bound);
    }

    /** A chain of requests, the next of which follows from the response to the one before. */
    private final class Journey {
        private int stages;
        private final float value;
        private final AtomicInteger ends = new AtomicInteger();

        Journey(int stages, float value) {
            this.stages = stages;
            this.value = value;
        }

        /** Sends the next request, from any thread; or ends the journey. */
        void next() {
            if (stages == 0) {
                succeeded.incrementAndGet();
                end();
                return;
            }
            stages--;
            Seam[] all = Seam.values();
            send(all[random(all.length)], value + ends.get());
        }

        private void send(Seam seam, float input) {
            Stage stage = new Stage(this, seam, input);
            Requests request = seam == Seam.DEVICE ? withDevice(stage) : request(seam, input);
            OptionalLong deadline =
                    chance(16) ? OptionalLong.of(System.nanoTime() + random(1_000_000)) : OptionalLong.empty();
            request.options(
                    seam == Seam.SEQUENCES
                            ? inSequence(random(SEQUENCES), false, deadline)
                            : new RequestOptions(0, 0, deadline, Optional.empty()));
            sent.get(seam).incrementAndGet();
            Cancellation cancellation = schedulers.get(seam).submit(request.of(1), stage);
            if (chance(12)) {
                later.add(cancellation::cancel);
            }
        }

        /** Creates a request whose input lies on the device, or whose output is wanted there, or both. */
        private Requests withDevice(Stage stage) {
            List<TensorBuffer> buffers = new ArrayList<>();
            Requests request;
            if (chance(2)) {
                TensorBuffer buffer = gpu.allocate(2 * Float.BYTES);
                buffers.add(buffer);
                request = Requests.to(SeamBackends.settings(Seam.DEVICE), memory)
                        .id(String.valueOf(ids.incrementAndGet()))
                        .input("IN", gpu.floats(buffer, Shape.of(1, 2), stage.input, 0));
            } else {
                request = request(Seam.DEVICE, stage.input);
            }
            if (chance(3)) {
                TensorBuffer buffer = gpu.allocate(2 * Float.BYTES);
                buffers.add(buffer);
                stage.target = buffer.segment();
                request.into("OUT", new OutputTarget(buffer.segment(), GPU0));
            }
            return request.onRelease(() -> buffers.forEach(TensorBuffer::close));
        }

        void end() {
            inFlight.release();
        }
    }

    /** One request of a journey. */
    private final class Stage implements ResponseObserver {
        private final Journey journey;
        private final Seam seam;
        private final float input;
        private final FakeFlow flow = new FakeFlow();
        private final AtomicInteger ends = new AtomicInteger();
        private @Nullable MemorySegment target;
        private int responses;

        Stage(Journey journey, Seam seam, float input) {
            this.journey = journey;
            this.seam = seam;
            this.input = input;
        }

        @Override
        public ResponseFlow flow() {
            return flow;
        }

        @Override
        public void onResponse(InferResponse response) {
            boolean last = response.isFinal();
            try (response) {
                check(response.outputs().getFirst().tensor());
            } catch (RuntimeException | AssertionError e) {
                violations.add(seam + ": " + e);
            }
            responses++;
            if (last) {
                succeed();
            } else if (chance(2)) {
                pause();
            }
        }

        private void check(Tensor out) {
            float[] numbers;
            if (target == null) {
                assertThat(out.place()).isEqualTo(MemoryPlace.HOST);
                numbers = out.data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
            } else {
                assertThat(out.data().address()).isEqualTo(target.address());
                numbers = gpu.floats(out.data());
            }
            assertThat(flow.isOpen()).as("open when a response is sent").isTrue();
            assertThat(numbers[0]).isEqualTo(input + 1);
            if (seam == Seam.AGAIN) {
                assertThat(numbers[1]).as("executions").isEqualTo(SeamBackends.executions(input));
            } else if (seam == Seam.STREAM) {
                assertThat(numbers[1]).as("earlier responses").isEqualTo(responses);
            }
        }

        /** Stops reading, and reads again later. */
        private void pause() {
            flow.close();
            pauses.incrementAndGet();
            later.add(flow::open);
        }

        private void succeed() {
            journey.ends.incrementAndGet();
            if (isFirstEnd()) {
                journey.next();
            }
        }

        @Override
        public void onCompleted() {
            if (seam != Seam.STREAM || responses != SeamBackends.responses(input)) {
                violations.add(seam + ": completed after " + responses + " responses");
            }
            succeed();
        }

        @Override
        public void onFailedResponse(InferenceException error) {
            violations.add(seam + ": failed response " + error);
        }

        @Override
        public void onError(InferenceException error) {
            boolean expected =
                    error.code() == ErrorCode.CANCELLED || error.publicMessage().equals(SeamBackends.FAILURE);
            if (!expected) {
                violations.add(seam + ": " + error);
            }
            if (isFirstEnd()) {
                journey.end();
            }
        }

        private boolean isFirstEnd() {
            boolean first = ends.getAndIncrement() == 0;
            if (!first) {
                violations.add(seam + ": ended twice");
            }
            return first;
        }
    }
}
