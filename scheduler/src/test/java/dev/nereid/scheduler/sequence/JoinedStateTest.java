package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.SteppedSequences.Sent;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** States of 1 MB, of which each number is the sum of the sequence: how often they are copied, and what they hold. */
final class JoinedStateTest {
    private static final int WIDTH = 262_144;
    private static final long SIZE = Float.BYTES * (long) WIDTH;
    private static final StateSpec SUM = StateSpec.of("SUM_IN", "SUM_OUT", DataType.FP32, Shape.of(WIDTH));

    /** {@code true} if the backend passes its own memory as the new states. */
    private boolean ofBackend;

    private boolean failing;

    /** The memory of the backend. */
    private Arena arena = Arena.ofAuto();

    /** The addresses of the present and of the new states in the last batch. */
    private long read;

    private long written;

    private void addUp(Batch batch) {
        Shape shape = Shape.of(batch.size(), WIDTH);
        Tensor in = batch.gather("IN");
        Tensor present = batch.gather("SUM_IN");
        Tensor next;
        if (ofBackend) {
            next = Tensor.of(DataType.FP32, shape, arena.allocate(batch.size() * SIZE, 64));
            batch.state("SUM_OUT").put(next);
        } else {
            next = batch.state("SUM_OUT").allocate(DataType.FP32, shape);
        }
        read = present.data().address();
        written = next.data().address();
        Tensor out = batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 1));
        for (int row = 0; row < batch.size(); row++) {
            MemorySegment before = present.data().asSlice(row * SIZE, SIZE);
            if (batch.requests().get(row).isNullRequest()) {
                assertThat(before.asByteBuffer().mismatch(ByteBuffer.allocate((int) SIZE)))
                        .as("zeros of a null request")
                        .isEqualTo(-1);
            }
            float sum = before.getAtIndex(ValueLayout.JAVA_FLOAT, WIDTH - 1)
                    + in.data().getAtIndex(ValueLayout.JAVA_FLOAT, row);
            MemorySegment after = next.data().asSlice(row * SIZE, SIZE);
            for (int i = 0; i < WIDTH; i++) {
                after.setAtIndex(ValueLayout.JAVA_FLOAT, i, sum);
            }
            out.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, sum);
        }
        if (failing) {
            batch.requests().getFirst().fail(new BackendException(ErrorCode.INTERNAL, "for a test"));
        }
    }

    private SteppedSequences start(boolean direct) {
        MemorySegment zeros = Arena.ofAuto().allocate(SIZE, 64);
        InitialState initial = new InitialState(SUM, Tensor.of(DataType.FP32, Shape.of(1, WIDTH), zeros));
        SequencePlan plan = Plans.with(direct ? Plans.direct(4) : Plans.oldest(4, 0), initial);
        return new SteppedSequences(SteppedSequences.settings(4), plan, this::addUp);
    }

    /** Sends one request of each sequence, and executes them in one batch. */
    private static void batch(SteppedSequences s, boolean start, float value, int... ids) {
        Sent[] sent = new Sent[ids.length];
        for (int i = 0; i < ids.length; i++) {
            sent[i] = s.send(start ? sequence(ids[i]).start() : sequence(ids[i]), value);
        }
        assertThat(s.step(0)).isTrue();
        assertThat(s.step(0)).as("another batch").isFalse();
    }

    private static long bytes(SteppedSequences s) {
        return s.queue().sequenceUse().orElseThrow().states().bytes();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aBatchOfTheSameSlotsGetsThemInPlace(boolean direct) {
        for (boolean put : new boolean[] {false, true}) {
            ofBackend = put;
            try (SteppedSequences s = start(direct)) {
                batch(s, true, 1, 1, 2, 3, 4);
                assertThat(s.queue().copiedStates()).as("initial states joined").isEqualTo(4);
                for (int i = 0; i < 5; i++) {
                    long before = written;
                    batch(s, false, 1, 1, 2, 3, 4);
                    assertThat(read).isEqualTo(before);
                }
                assertThat(s.queue().copiedStates()).isEqualTo(4);
                assertThat(bytes(s)).isEqualTo(4 * SIZE);
                Sent sent = s.send(sequence(3), 10);
                s.steps();
                assertThat(sent.sum()).isEqualTo(16);
            }
        }
    }

    @Test
    void aPartInOrderIsInPlaceToo() {
        try (SteppedSequences s = start(false)) {
            batch(s, true, 1, 1, 2, 3, 4);
            long before = written;
            batch(s, false, 1, 2, 3);
            assertThat(read).isEqualTo(before + SIZE);
            assertThat(s.queue().copiedStates() - 4)
                    .as("1 and 4 get memory of their own")
                    .isEqualTo(2);
            assertThat(bytes(s)).isEqualTo(4 * SIZE);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aBatchOfLastRequestsCopiesNothing(boolean direct) {
        try (SteppedSequences s = start(direct)) {
            batch(s, true, 1, 1, 2, 3, 4);
            for (int id = 1; id <= 4; id++) {
                s.send(sequence(id).end(), 1);
            }
            assertThat(s.step(0)).isTrue();
            assertThat(s.queue().copiedStates()).as("initial states joined").isEqualTo(4);
            assertThat(bytes(s)).isZero();
        }
    }

    @Test
    void eachMovedRowIsCopiedOnce() {
        try (SteppedSequences s = start(false)) {
            batch(s, true, 1, 1, 2, 3, 4);
            batch(s, false, 1, 4, 3, 2, 1);
            assertThat(s.queue().copiedStates()).isEqualTo(8);
            Sent[] sums = new Sent[4];
            for (int id = 1; id <= 4; id++) {
                sums[id - 1] = s.send(sequence(id), id);
            }
            s.steps();
            for (int id = 1; id <= 4; id++) {
                assertThat(sums[id - 1].sum()).isEqualTo(2 + id);
            }
            assertThat(s.queue().copiedStates()).isEqualTo(12);
        }
    }

    @Test
    void nullRequestsDoNotMoveTheOthers() {
        try (SteppedSequences s = start(true)) {
            batch(s, true, 1, 1, 2, 3, 4);
            batch(s, false, 1, 2, 4); // two places hold nothing
            long copied = s.queue().copiedStates();
            for (int i = 0; i < 5; i++) {
                long before = written;
                batch(s, false, 1, 2, 4);
                assertThat(read).isEqualTo(before);
            }
            assertThat(s.queue().copiedStates()).isEqualTo(copied);
            long before = written;
            batch(s, false, 1, 1, 2, 4); // one takes a place of its own
            assertThat(read).isEqualTo(before);
            assertThat(s.queue().copiedStates()).isEqualTo(copied + 1);
            Sent one = s.send(sequence(1), 1);
            Sent three = s.send(sequence(3), 1);
            Sent four = s.send(sequence(4), 1);
            s.steps();
            assertThat(one.sum()).isEqualTo(3);
            assertThat(three.sum()).isEqualTo(2);
            assertThat(four.sum()).isEqualTo(9);
        }
    }

    @Test
    void aStartTakesOnePlace() {
        try (SteppedSequences s = start(true)) {
            batch(s, true, 1, 1, 2, 3);
            Sent last = s.send(sequence(2).end(), 1);
            s.send(sequence(1), 1);
            s.send(sequence(3), 1);
            s.steps();
            assertThat(last.sum()).isEqualTo(2);
            long copied = s.queue().copiedStates();
            batch(s, false, 1, 1, 3);
            Sent first = s.send(sequence(5).start(), 7); // in the slot of the second
            s.send(sequence(1), 1);
            Sent third = s.send(sequence(3), 1);
            s.steps();
            assertThat(first.sum()).isEqualTo(7);
            assertThat(third.sum()).isEqualTo(4);
            assertThat(s.queue().copiedStates() - copied)
                    .as("two that were joined, one that began")
                    .isEqualTo(3);
        }
    }

    @Test
    void fewSequencesDoNotKeepTheBufferOfMany() {
        try (SteppedSequences s = start(false)) {
            batch(s, true, 1, 1, 2, 3, 4);
            batch(s, false, 1, 1);
            assertThat(bytes(s)).as("three of four are there").isEqualTo(5 * SIZE);
            assertThat(s.queue().copiedStates()).isEqualTo(4);
            batch(s, false, 1, 2);
            assertThat(bytes(s)).as("two of four had to go").isEqualTo(4 * SIZE);
            assertThat(s.queue().copiedStates()).isEqualTo(6);
            s.send(sequence(3).end(), 1);
            s.steps();
            assertThat(bytes(s)).isEqualTo(3 * SIZE);
            assertThat(s.memory.bytesInUse()).isBetween(3 * SIZE, 3 * SIZE + 1000);
        }
    }

    @Test
    void oneBufferOfNullRequestsIsKeptForEachInstance() {
        try (SteppedSequences s = start(true)) {
            batch(s, true, 1, 1, 2, 3, 4);
            batch(s, false, 1, 4);
            assertThat(bytes(s))
                    .as("three of four are there, one in a buffer of four")
                    .isEqualTo(8 * SIZE);
            long copied = s.queue().copiedStates();
            batch(s, false, 1, 4);
            assertThat(s.queue().copiedStates()).isEqualTo(copied);
            batch(s, false, 1, 3); // the second one of most of them null
            assertThat(bytes(s)).isEqualTo((2 + 1 + 3) * SIZE);
            s.advance(Plans.IDLE.toNanos());
            assertThat(bytes(s)).isZero();
        }
    }

    @Test
    void aFailureLeavesTheStates() {
        try (SteppedSequences s = start(true)) {
            batch(s, true, 1, 1, 2);
            failing = true;
            batch(s, false, 1, 1, 2);
            failing = false;
            Sent one = s.send(sequence(1), 1);
            Sent two = s.send(sequence(2), 1);
            s.steps();
            assertThat(one.sum()).isEqualTo(2);
            assertThat(two.sum()).isEqualTo(3);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aStateWhoseMemoryIsGoneHarmsNoOtherSequence(boolean direct) {
        ofBackend = true;
        try (SteppedSequences s = start(direct)) {
            arena = Arena.ofShared();
            batch(s, true, 1, 1, 2, 3, 4);
            arena.close(); // too early
            arena = Arena.ofAuto();
            batch(s, true, 1, 1, 2); // those of the others would be moved
            Sent[] sums = new Sent[4];
            for (int id = 1; id <= 4; id++) {
                sums[id - 1] = s.send(id <= 2 ? sequence(id) : sequence(id).start(), id);
            }
            s.steps();
            assertThat(sums[0].sum()).isEqualTo(2);
            assertThat(sums[1].sum()).isEqualTo(3);
            assertThat(sums[2].sum()).isEqualTo(3);
            assertThat(sums[3].sum()).isEqualTo(4);
        }
    }

    @Test
    void anInstanceThatIsGoneKeepsNoBuffer() {
        try (SteppedSequences s = start(true)) {
            s.add(this::addUp);
            s.lose(1);
            batch(s, true, 1, 1, 2, 3, 4);
            batch(s, false, 1, 4);
            batch(s, false, 1, 3);
            assertThat(bytes(s)).as("one of most of them null").isEqualTo((2 + 1 + 3) * SIZE);
        }
    }
}
