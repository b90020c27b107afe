package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.SteppedSequences.Sent;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeFlow;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests that are executed step by step, with responses in between, in batches that others join at each step. */
final class IterativeTest {
    private static final StateSpec STEP = StateSpec.of("STEP_IN", "STEP_OUT", DataType.FP32, Shape.of(1));

    private Countdown backend = new Countdown(0);

    private SteppedSequences start(boolean direct, int slots) {
        Tensor zero = Tensor.of(DataType.FP32, Shape.of(1, 1), Arena.ofAuto().allocate(Float.BYTES, 64));
        SequencePlan plan = direct ? Plans.direct(slots) : Plans.oldest(slots, 0);
        return new SteppedSequences(
                SteppedSequences.settings(slots, true),
                Plans.iterative(Plans.with(plan, new InitialState(STEP, zero))),
                backend);
    }

    /** Returns the steps that a client received. */
    private static List<Float> steps(Sent sent) {
        sent.observer().check();
        List<Float> steps = new ArrayList<>();
        for (InferResponse response : sent.observer().responses()) {
            steps.add(response.outputs().getFirst().tensor().data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0));
        }
        return steps;
    }

    private static boolean isDone(Sent sent) {
        return sent.observer().hasEnded();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void requestsJoinAndLeaveTheBatchAtEachStep(boolean direct) {
        try (SteppedSequences s = start(direct, 2)) {
            Sent three = s.sendAlone(3, new FakeFlow());
            s.step(0);
            assertThat(steps(three)).containsExactly(1f);

            Sent two = s.sendAlone(2, new FakeFlow()); // joins
            Sent one = s.sendAlone(1, new FakeFlow()); // waits for a slot
            assertThat(s.queue().backlog()).isEqualTo(1);
            s.step(0);
            assertThat(two.observer().hasEnded()).isFalse();
            s.steps();

            assertThat(steps(three)).containsExactly(1f, 2f, 3f);
            assertThat(steps(two)).containsExactly(1f, 2f);
            assertThat(steps(one)).containsExactly(1f);
            assertThat(backend.batches()).containsExactly("3S", "3 2S", "3 2", "1S");
            assertThat(s.instances.getFirst().ended()).isEmpty();
            assertThat(s.queue().stateBytes()).isZero();
            assertThat(s.queue().sequences()).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aRequestWhoseClientDoesNotReadWaits(boolean direct) {
        try (SteppedSequences s = start(direct, 2)) {
            FakeFlow flow = new FakeFlow();
            Sent slow = s.sendAlone(3, flow);
            s.step(0);
            flow.close();
            s.step(0);
            assertThat(steps(slow)).containsExactly(1f, 2f);

            assertThat(s.step(0)).as("nothing to do").isFalse();
            Sent other = s.sendAlone(2, new FakeFlow());
            s.steps();
            assertThat(isDone(other)).isTrue();
            assertThat(steps(slow)).containsExactly(1f, 2f);

            flow.open();
            s.steps();
            assertThat(steps(slow)).containsExactly(1f, 2f, 3f);
            assertThat(isDone(slow)).isTrue();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCancelledRequestFreesItsSlotBetweenSteps(boolean direct) {
        try (SteppedSequences s = start(direct, 1)) {
            Sent cancelled = s.sendAlone(5, new FakeFlow());
            Sent next = s.sendAlone(2, new FakeFlow());
            s.step(0);
            cancelled.cancellation().cancel();

            assertThat(isDone(cancelled)).as("at once").isTrue();
            s.steps();
            assertThat(cancelled.observer().error().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(steps(next)).containsExactly(1f, 2f);
            assertThat(s.instances.getFirst().ended())
                    .singleElement()
                    .asString()
                    .endsWith(" CANCELLED");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCancelledRequestWhoseClientDoesNotReadEnds(boolean direct) {
        try (SteppedSequences s = start(direct, 1)) {
            FakeFlow flow = new FakeFlow();
            Sent slow = s.sendAlone(5, flow);
            flow.close();
            s.step(0);
            Sent next = s.sendAlone(1, new FakeFlow());
            assertThat(s.step(0)).isFalse();
            slow.cancellation().cancel();
            s.steps();
            assertThat(isDone(slow)).isTrue();
            assertThat(steps(next)).containsExactly(1f);
            flow.open(); // has no effect any more
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aFailureInOneStepEndsThatRequestAlone(boolean direct) {
        backend = new Countdown(7);
        try (SteppedSequences s = start(direct, 2)) {
            Sent failing = s.sendAlone(7, new FakeFlow());
            Sent other = s.sendAlone(3, new FakeFlow());
            s.steps();
            assertThat(steps(failing)).containsExactly(1f);
            assertThat(failing.observer().error().publicMessage()).contains("request 7 fails");
            assertThat(steps(other)).containsExactly(1f, 2f, 3f);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aDeadlineThatPassesBetweenStepsEndsTheRequest(boolean direct) {
        try (SteppedSequences s = start(direct, 1)) {
            Sent sent = s.send(sequence(9).start().deadline(s.clock.getAsLong() + 1000), 5);
            s.step(0);
            s.advance(2000);
            assertThat(sent.observer().error().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(s.step(0)).as("tells the instance").isTrue();
            assertThat(s.queue().sequences()).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void theIdOfAClientIsKept(boolean direct) {
        try (SteppedSequences s = start(direct, 2)) {
            Sent first = s.send(sequence(1).start().end(), 2);
            Sent own = s.sendAlone(1, new FakeFlow()); // its id is another one
            Sent again = s.send(sequence(1).start(), 3); // behind the first
            s.steps();
            assertThat(steps(first)).containsExactly(1f, 2f);
            assertThat(steps(own)).containsExactly(1f);
            assertThat(steps(again)).containsExactly(1f, 2f, 3f);
            assertThat(s.instances.getFirst().ended()).isEmpty();
            Sent unknown = s.send(sequence(1), 1);
            assertThat(unknown.observer().error().publicMessage())
                    .isEqualTo("inference request for sequence 1 to model 'stateful' must specify the START flag on the"
                            + " first request of the sequence");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anIterationGoesOnToItsEndAfterAStop(boolean direct) {
        try (SteppedSequences s = start(direct, 2)) {
            Sent sent = s.sendAlone(4, new FakeFlow());
            s.step(0);
            s.queue().stop();
            s.steps();
            assertThat(steps(sent)).containsExactly(1f, 2f, 3f, 4f);
            assertThat(isDone(sent)).isTrue();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anInstanceThatIsLostEndsItsRequests(boolean direct) {
        try (SteppedSequences s = start(direct, 2)) {
            s.add(new Countdown(0));
            Sent one = s.sendAlone(9, new FakeFlow()); // slot 0 of the first
            Sent two = s.sendAlone(3, new FakeFlow()); // slot 0 of the second
            s.step(0);
            s.step(1);
            s.lose(0);
            s.steps();
            assertThat(one.observer().error().publicMessage()).contains("its instance failed beyond repair");
            assertThat(steps(two)).containsExactly(1f, 2f, 3f);
        }
    }

    /** Any interleaving of arrivals, steps, readers that stop and go on, and cancels: each request counts as if alone. */
    @Tag("slow")
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void requestsCountAsIfAlone(boolean direct) {
        for (int seed = 0; seed < 300; seed++) {
            backend = new Countdown(7);
            try (SteppedSequences s = start(direct, 3)) {
                schedule(s, new Random(seed));
            }
        }
    }

    private static void schedule(SteppedSequences s, Random random) {
        s.add(new Countdown(7));
        List<Sent> sent = new ArrayList<>();
        List<FakeFlow> flows = new ArrayList<>();
        List<Integer> lengths = new ArrayList<>();
        List<Integer> cancelled = new ArrayList<>();
        for (int i = 0; i < 80; i++) {
            int which = sent.isEmpty() ? 0 : random.nextInt(sent.size());
            switch (random.nextInt(sent.isEmpty() ? 1 : 8)) {
                case 0 -> {
                    lengths.add(1 + random.nextInt(8));
                    flows.add(new FakeFlow());
                    sent.add(s.sendAlone(lengths.getLast(), flows.getLast()));
                }
                case 1 -> flows.get(which).close();
                case 2 -> flows.get(which).open();
                case 3 -> {
                    if (random.nextInt(3) == 0 && !isDone(sent.get(which))) {
                        sent.get(which).cancellation().cancel();
                        cancelled.add(which);
                    }
                }
                default -> s.step(random.nextInt(2));
            }
        }
        flows.forEach(FakeFlow::open);
        s.steps();
        for (int i = 0; i < sent.size(); i++) {
            int length = lengths.get(i);
            List<Float> steps = steps(sent.get(i));
            for (int step = 0; step < steps.size(); step++) {
                assertThat(steps.get(step)).isEqualTo(step + 1);
            }
            if (!cancelled.contains(i)) {
                assertThat(steps).hasSize(length == 7 ? 1 : length);
            }
            assertThat(isDone(sent.get(i))).isTrue();
        }
        assertThat(s.queue().stateBytes()).isZero();
        s.advance(TimeUnit.SECONDS.toNanos(10));
    }

    private static Map<SequenceEndReason, Long> ends(SteppedSequences s) {
        return s.queue().sequenceUse().orElseThrow().ended();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCancelledRequestOfTheSameIdLeavesTheOneInProgress(boolean direct) {
        try (SteppedSequences s = start(direct, 2)) {
            Sent first = s.send(sequence(1).start(), 3);
            s.step(0);
            Sent second = s.send(sequence(1).start(), 3);
            Sent third = s.send(sequence(1).start(), 2);
            second.cancellation().cancel();
            s.steps();
            assertThat(steps(first)).containsExactly(1f, 2f, 3f);
            assertThat(steps(third)).containsExactly(1f, 2f);
            assertThat(ends(s)).isEqualTo(Map.of(SequenceEndReason.END, 2L, SequenceEndReason.CANCELLED, 1L));
            assertThat(s.instances.getFirst().ended()).isEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCancellationInAStepOfTheRequestBeforeLeavesThat(boolean direct) {
        List<Sent> cancelled = new ArrayList<>();
        try (SteppedSequences s = start(direct, 2)) {
            s.lose(0);
            s.add(batch -> {
                cancelled.forEach(sent -> sent.cancellation().cancel());
                backend.execute(batch);
            });
            Sent first = s.send(sequence(1).start(), 2);
            cancelled.add(s.send(sequence(1).start(), 3));
            s.steps();
            assertThat(steps(first)).containsExactly(1f, 2f);
            assertThat(ends(s)).isEqualTo(Map.of(SequenceEndReason.END, 1L, SequenceEndReason.CANCELLED, 1L));
            assertThat(s.instances.getLast().ended()).isEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCancellationAfterTheLastResponseChangesNothing(boolean direct) {
        List<Sent> sent = new ArrayList<>();
        try (SteppedSequences s = start(direct, 2)) {
            s.lose(0);
            s.add(batch -> {
                backend.execute(batch);
                sent.getFirst().cancellation().cancel();
            });
            sent.add(s.sendAlone(1, new FakeFlow()));
            s.steps();
            assertThat(steps(sent.getFirst())).containsExactly(1f);
            assertThat(ends(s)).isEqualTo(Map.of(SequenceEndReason.END, 1L));
            assertThat(s.instances.getLast().ended()).isEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aRequestWithTheIdOfALiveOneBeginsAnew(boolean direct) {
        try (SteppedSequences s = start(direct, 2)) {
            Sent first = s.send(sequence(1).start(), 3);
            s.step(0);
            Sent second = s.send(sequence(1), 2);
            s.steps();
            assertThat(steps(first)).containsExactly(1f, 2f, 3f);
            assertThat(steps(second)).containsExactly(1f, 2f);
            assertThat(backend.batches()).containsExactly("3S", "3", "3", "2S", "2");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aRequestWhoseClientDoesNotReadIsNotIdle(boolean direct) {
        try (SteppedSequences s = start(direct, 1)) {
            FakeFlow flow = new FakeFlow();
            Sent slow = s.sendAlone(3, flow);
            flow.close();
            s.step(0);
            Sent next = s.sendAlone(1, new FakeFlow());
            s.advance(10 * Plans.IDLE.toNanos());
            s.steps();
            assertThat(isDone(slow)).isFalse();
            flow.open();
            s.steps();
            assertThat(steps(slow)).containsExactly(1f, 2f, 3f);
            assertThat(steps(next)).containsExactly(1f);
            assertThat(ends(s)).isEqualTo(Map.of(SequenceEndReason.END, 2L));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aStopLeavesARequestWhoseClientDoesNotReadYet(boolean direct) {
        try (SteppedSequences s = start(direct, 1)) {
            FakeFlow flow = new FakeFlow();
            Sent slow = s.sendAlone(2, flow);
            flow.close();
            s.step(0);
            s.queue().stop();
            flow.open();
            s.steps();
            assertThat(steps(slow)).containsExactly(1f, 2f);
        }
    }
}
