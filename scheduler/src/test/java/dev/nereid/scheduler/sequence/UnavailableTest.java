package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.SteppedSequences.Sent;
import dev.nereid.scheduler.instance.InstanceAvailability;
import dev.nereid.spi.ErrorCode;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Sequences and instances that take no work for a while. */
final class UnavailableTest {
    private static final String STRANDED = "[request id: %s] model 'stateful' version 1 is being unloaded while none of"
            + " its instances is available";

    private static SteppedSequences start(boolean direct, FakeInstance.Execution... instances) {
        return new SteppedSequences(
                SteppedSequences.settings(4), direct ? Plans.direct(1) : Plans.oldest(1, 0), instances);
    }

    private static InstanceAvailability availability(SteppedSequences sequences, int instance) {
        return sequences.instances.get(instance).availability;
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void sequencesStartOnTheOtherInstances(boolean direct) {
        try (SteppedSequences s = start(direct, FakeInstance::copy, FakeInstance::copy)) {
            availability(s, 0).unavailable("starts");
            Sent first = s.send(sequence(1).start(), 1);
            Sent backlogged = s.send(sequence(2).start(), 2);
            assertThat(s.step(0)).isFalse();
            assertThat(s.step(1)).isTrue();
            assertThat(first.sum()).isEqualTo(1);
            assertThat(s.queue().backlog()).isEqualTo(1);

            availability(s, 0).available();

            assertThat(s.queue().backlog()).isZero();
            assertThat(s.step(0)).isTrue();
            assertThat(backlogged.sum()).isEqualTo(2);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void requestsWaitForTheInstanceOfTheirSequence(boolean direct) {
        try (SteppedSequences s = start(direct, FakeInstance::copy, FakeInstance::copy)) {
            s.send(sequence(1).start(), 1);
            assertThat(s.step(0)).isTrue();
            availability(s, 0).unavailable("starts");
            Sent waiting = s.send(sequence(1), 2);
            s.advance(2 * Plans.IDLE.toNanos()); // the sequence is not idle
            s.steps();
            assertThat(waiting.observer().isSilent()).isTrue();
            assertThat(s.queue().sequences()).isEqualTo(1);

            availability(s, 0).available();
            assertThat(s.step(0)).isTrue();

            assertThat(waiting.sum()).isEqualTo(2);
            assertThat(s.instances.get(1).batches()).isEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anIdleSequenceEndsMeanwhile(boolean direct) {
        try (SteppedSequences s = start(direct, FakeInstance::copy)) {
            s.send(sequence(1).start(), 1);
            assertThat(s.step(0)).isTrue();
            availability(s, 0).unavailable("starts");
            s.advance(Plans.IDLE.toNanos());
            s.steps();

            assertThat(s.queue().sequences()).isZero();
            assertThat(s.instances.getFirst().ended()).hasSize(1);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anUnloadRefusesRequestsThatWaitInVain(boolean direct) {
        try (SteppedSequences s = start(direct, FakeInstance::copy, FakeInstance::copy)) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 2);
            s.steps();
            availability(s, 0).unavailable("starts");
            Sent bound = s.send(sequence(1), 3);
            Sent elsewhere = s.send(sequence(2), 4);
            Sent backlogged = s.send(sequence(3).start(), 5);

            s.queue().leave();
            bound.observer().assertError(ErrorCode.UNAVAILABLE, STRANDED.formatted("3"));
            assertThat(elsewhere.observer().isSilent()).isTrue();
            assertThat(backlogged.observer().isSilent()).isTrue();
            availability(s, 1).unavailable("starts, too");

            elsewhere.observer().assertError(ErrorCode.UNAVAILABLE, STRANDED.formatted("4"));
            backlogged.observer().assertError(ErrorCode.UNAVAILABLE, STRANDED.formatted("5"));
            Sent late = s.send(sequence(4).start(), 6);
            late.observer().assertError(ErrorCode.UNAVAILABLE, STRANDED.formatted("6"));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void theStopDoesNotWaitForIt(boolean direct) {
        try (SteppedSequences s = start(direct, FakeInstance::copy)) {
            s.send(sequence(1).start(), 1);
            s.steps();
            availability(s, 0).unavailable("starts");
            Sent waiting = s.send(sequence(1), 2);

            s.queue().stop();

            waiting.observer().assertError(ErrorCode.UNAVAILABLE, STRANDED.formatted("2"));
            s.advance(TimeUnit.SECONDS.toNanos(1));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void refusesAnIterativeRequestThatComesBackAfterTheStop(boolean direct) {
        SteppedSequences[] self = new SteppedSequences[1];
        try (SteppedSequences s = new SteppedSequences(
                SteppedSequences.settings(4), Plans.iterative(direct ? Plans.direct(1) : Plans.oldest(1, 0)), batch -> {
                    availability(self[0], 0).unavailable("starts");
                    batch.requests().stream()
                            .filter(request -> !request.isNullRequest())
                            .forEach(request -> request.reschedule());
                })) {
            self[0] = s;
            Sent sent = s.send(sequence(1).start(), 1);
            s.queue().stop();
            assertThat(s.step(0)).isTrue();

            sent.observer().assertError(ErrorCode.UNAVAILABLE, STRANDED.formatted("1"));
        }
    }
}
