package dev.nereid.scheduler.ensemble;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.EnsembleScheduler;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelVersion;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.RequestOutputs;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.ValueLayout;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;

/**
 * Random ensembles equal an interpreter that executes one step after another, whatever the order in which steps complete,
 * with failures before, between and after responses, cancellations at any moment, omitted inputs and outputs, outputs that
 * are not requested, byte limits that hold steps back, and models that are loaded again while requests run. All memory is released at the end, and all
 * models are.
 */
@Tag("slow")
class EnsembleProperties {
    private static final String FAILURE = "no luck";

    @Property(tries = 2000)
    void equalAnInterpreter(@ForAll long seed) throws Exception {
        check(seed, 1);
    }

    @Property(tries = 150)
    void equalAnInterpreterOnSeveralThreads(@ForAll long seed) throws Exception {
        check(seed, 3);
    }

    private static void check(long seed, int threads) throws Exception {
        RandomEnsemble ensemble = new RandomEnsemble(seed);
        Random random = new Random(~seed);
        try (LeakCheckingMemory memory = new LeakCheckingMemory()) {
            FakeSteps steps = new FakeSteps(ensemble.stepSettings(), memory);
            FakeClock clock = new FakeClock();
            SchedulerEnvironment environment = new SchedulerEnvironment(memory, clock, new TimeoutQueue(() -> {}));
            int inflight = random.nextInt(3);
            EnsemblePlan plan = ensemble.plan(
                    random.nextBoolean()
                            ? new EnsembleLimits(inflight)
                            : new EnsembleLimits(inflight, ensemble.leastBytes()));
            EnsembleScheduler scheduler = new EnsembleScheduler(
                    plan, steps, AdmissionLimits.NONE, environment, new ModelMeter(InstantSource.system()));
            Run run = new Run(ensemble, steps, scheduler, memory);
            List<Sent> sent = new ArrayList<>();
            for (int i = 0; i <= random.nextInt(3); i++) {
                sent.add(run.send());
                if (random.nextInt(3) == 0) {
                    steps.reload();
                }
            }
            boolean cancels = random.nextInt(5) == 0;
            int cancelAfter = random.nextInt(6);
            List<Thread> others = new ArrayList<>();
            for (int i = 1; i < threads; i++) {
                long own = random.nextLong();
                others.add(Thread.ofPlatform().start(() -> run.completeSome(new Random(own), sent)));
            }
            run.complete(random, sent, () -> {
                if (cancels && run.completed == cancelAfter) {
                    sent.getFirst().cancellation().cancel();
                }
                if (random.nextInt(8) == 0) {
                    steps.reload();
                }
            });
            for (Thread other : others) {
                other.join();
            }
            for (Sent one : sent) {
                assertThat(one.client().ended.await(10, TimeUnit.SECONDS))
                        .as("ended")
                        .isTrue();
                one.check(cancels && one.equals(sent.getFirst()));
            }
            scheduler.close();
            assertThat(scheduler.inFlight()).isZero();
            assertThat(steps.closed).as("closed models").hasValue(steps.acquired.get());
            assertThat(memory.bytesInUse()).isZero();
        }
    }

    /** A request and its expected outcome. */
    private record Sent(EnsembleClient client, Cancellation cancellation, RandomEnsemble.Expected expected) {
        void check(boolean mayBeCancelled) {
            InferenceException error = client.error;
            assertThat(client.terminals).isEqualTo(1);
            if (error == null) {
                assertThat(client.responses).isEqualTo(expected.responses());
                assertThat(expected.mayFail()).as("may fail").isFalse();
                return;
            }
            boolean isCancelled = error.code() == ErrorCode.CANCELLED;
            assertThat(isCancelled ? mayBeCancelled : expected.mayFail())
                    .as(error.publicMessage())
                    .isTrue();
            if (!isCancelled) {
                assertThat(error.publicMessage()).matches("in ensemble 'e', " + FAILURE + " \\(step 's\\d+'\\)");
                assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            }
            int count = client.responses.size();
            assertThat(count).isLessThanOrEqualTo(expected.responses().size());
            assertThat(client.responses).isEqualTo(expected.responses().subList(0, count));
        }
    }

    /** Sends requests, and completes those of steps in random order. */
    private static final class Run {
        private final RandomEnsemble ensemble;
        private final FakeSteps steps;
        private final EnsembleScheduler scheduler;
        private final LeakCheckingMemory memory;
        private final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        private int completed;

        Run(RandomEnsemble ensemble, FakeSteps steps, EnsembleScheduler scheduler, LeakCheckingMemory memory) {
            this.ensemble = ensemble;
            this.steps = steps;
            this.scheduler = scheduler;
            this.memory = memory;
        }

        Sent send() {
            Map<String, Long> values = ensemble.inputs();
            List<String> requested = ensemble.requested();
            TensorBuffer buffer = memory.allocate(values.size() * (long) Long.BYTES);
            List<NamedTensor> inputs = new ArrayList<>();
            values.forEach((name, value) -> {
                long at = inputs.size() * (long) Long.BYTES;
                buffer.segment().set(ValueLayout.JAVA_LONG, at, value);
                inputs.add(new NamedTensor(
                        name,
                        Tensor.of(DataType.INT64, Shape.of(1), buffer.segment().asSlice(at, Long.BYTES))));
            });
            CheckedRequest request = new CheckedRequest(
                    new ModelVersion("e", 1),
                    "",
                    RequestInputs.of(inputs, 1, buffer::close),
                    RequestOutputs.all(requested),
                    Map.of(),
                    RequestOptions.DEFAULT,
                    0);
            EnsembleClient client = new EnsembleClient();
            RandomEnsemble.Expected expected = ensemble.interpret(values, requested, steps.generation());
            return new Sent(client, scheduler.submit(request, client), expected);
        }

        /** Fails if the requests do not end, such as for a step that was never submitted. */
        void complete(Random random, List<Sent> sent, Runnable before) {
            while (!sent.stream().allMatch(one -> one.client().hasEnded())) {
                assertThat(System.nanoTime() - end).as("time left").isNegative();
                before.run();
                completed++;
                completeOne(random);
            }
        }

        void completeSome(Random random, List<Sent> sent) {
            while (!sent.stream().allMatch(one -> one.client().hasEnded()) && System.nanoTime() - end < 0) {
                completeOne(random);
            }
        }

        private void completeOne(Random random) {
            FakeSteps.Call call = take(random);
            if (call == null) {
                return;
            }
            Map<String, Long> inputs = call.inputs();
            if (call.cancelled.get() && random.nextBoolean()) {
                call.fail(new InferenceException(ErrorCode.CANCELLED, "request was cancelled"));
            } else if (ensemble.fails(call.step, inputs, call.generation)
                    && call.sent == ensemble.responsesBeforeFailure(call.step, inputs, call.generation)) {
                call.fail(new InferenceException(ErrorCode.UNAVAILABLE, FAILURE));
            } else {
                respond(random, call, inputs);
            }
            call.busy.set(false);
        }

        private FakeSteps.Call take(Random random) {
            List<FakeSteps.Call> waiting = List.copyOf(steps.calls);
            if (waiting.isEmpty()) {
                return null;
            }
            FakeSteps.Call call = waiting.get(random.nextInt(waiting.size()));
            if (!call.busy.compareAndSet(false, true)) {
                return null;
            }
            if (!steps.calls.contains(call)) {
                return null;
            }
            return call;
        }

        private void respond(Random random, FakeSteps.Call call, Map<String, Long> inputs) {
            int count = ensemble.responses(call.step, inputs, call.generation);
            boolean decoupled = steps.settings(call.step).decoupled();
            if (call.sent == count) {
                call.complete();
                return;
            }
            boolean ends = call.sent == count - 1 && !ensemble.fails(call.step, inputs, call.generation);
            boolean last = ends && (!decoupled || random.nextBoolean());
            call.respond(ensemble.outputs(call.step, inputs, call.sent, call.generation), last);
        }
    }
}
