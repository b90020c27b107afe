package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.SteppedSequences.Sent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ImplicitStateTest {
    private static final StateSpec SUM = StateSpec.of("SUM_IN", "SUM_OUT", DataType.FP32, Shape.of(1));

    private static InitialState sum(float first) {
        return new InitialState(SUM, floats(first));
    }

    private static Tensor floats(float... values) {
        MemorySegment data = Arena.ofAuto().allocate(Float.BYTES * (long) values.length, 64);
        MemorySegment.copy(values, 0, data, ValueLayout.JAVA_FLOAT, 0, values.length);
        return Tensor.of(DataType.FP32, Shape.of(1, values.length), data);
    }

    /** Adds up for the whole batch, null requests included. */
    private static void addUp(Batch batch) {
        Tensor in = batch.gather("IN");
        Tensor present = batch.gather("SUM_IN");
        Tensor next = batch.state("SUM_OUT").allocate(DataType.FP32, Shape.of(batch.size(), 1));
        Tensor out = batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 1));
        for (int row = 0; row < batch.size(); row++) {
            float sum = in.data().getAtIndex(ValueLayout.JAVA_FLOAT, row)
                    + present.data().getAtIndex(ValueLayout.JAVA_FLOAT, row);
            next.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, sum);
            out.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, sum);
        }
    }

    private static SequencePlan plan(boolean direct, InitialState... states) {
        return Plans.with(direct ? Plans.direct(4) : Plans.oldest(4, 0), states);
    }

    private static SteppedSequences start(SequencePlan plan, FakeInstance.Execution backend) {
        return new SteppedSequences(SteppedSequences.settings(4), plan, backend);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void eachSequenceHasItsOwn(boolean direct) {
        try (SteppedSequences s = start(plan(direct, sum(100)), ImplicitStateTest::addUp)) {
            Sent one = s.send(sequence(1).start(), 1);
            Sent two = s.send(sequence(2).start(), 2);
            s.steps();
            assertThat(one.sum()).isEqualTo(101);
            assertThat(two.sum()).isEqualTo(102);
            Sent second = s.send(sequence(2), 10);
            s.steps();
            Sent both = s.send(sequence(1), 20);
            Sent third = s.send(sequence(2), 30);
            s.steps();
            assertThat(second.sum()).isEqualTo(112);
            assertThat(both.sum()).isEqualTo(121);
            assertThat(third.sum()).isEqualTo(142);
            Sent again = s.send(sequence(1).start(), 1); // begins with the initial value
            Sent after = s.send(sequence(1), 1);
            s.steps();
            assertThat(again.sum()).isEqualTo(101);
            assertThat(after.sum()).isEqualTo(102);
        }
    }

    @Test
    void theMemoryIsReturnedWithTheSequence() {
        try (SteppedSequences s = start(plan(true, sum(0)), ImplicitStateTest::addUp)) {
            s.send(sequence(1).start(), 1).observer();
            s.send(sequence(2).start(), 1);
            s.steps();
            assertThat(s.queue().sequenceUse().orElseThrow().states().bytes()).isEqualTo(8);
            s.send(sequence(1).end(), 1);
            s.steps();
            assertThat(s.queue().sequenceUse().orElseThrow().states().bytes()).isEqualTo(4);
            s.advance(Plans.IDLE.toNanos());
            assertThat(s.queue().sequenceUse().orElseThrow().states().bytes()).isZero();
        }
    }

    @Test
    void aFailedRequestLeavesTheState() {
        boolean[] failing = {false};
        try (SteppedSequences s = start(plan(true, sum(0)), batch -> {
            addUp(batch);
            if (failing[0]) {
                batch.requests().getFirst().fail(new BackendException(ErrorCode.INTERNAL, "for a test"));
            }
        })) {
            s.send(sequence(1).start(), 1);
            s.steps();
            failing[0] = true;
            Sent failed = s.send(sequence(1), 2);
            s.steps();
            failing[0] = false;
            failed.observer().assertError(ErrorCode.INTERNAL, "for a test");
            Sent next = s.send(sequence(1), 4);
            s.steps();
            assertThat(next.sum()).isEqualTo(5);
        }
    }

    /** A backend may stop an execution when all requests of the batch are cancelled; steps of sequences are not. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void aRequestThatIsCancelledWhileItExecutesCounts(int sequences) {
        List<Sent> executing = new ArrayList<>();
        List<String> notified = new ArrayList<>();
        try (SteppedSequences s = start(plan(true, sum(0)), batch -> {
            for (InferenceRequest request : batch.requests()) {
                request.onCancel(() -> notified.add(request.id()));
            }
            executing.forEach(one -> one.cancellation().cancel());
            for (InferenceRequest request : batch.requests()) {
                if (request.isCancelled()) {
                    throw new BackendException(ErrorCode.CANCELLED, "stopped");
                }
            }
            addUp(batch);
        })) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 1);
            s.steps();
            for (int id = 1; id <= sequences; id++) {
                executing.add(s.send(sequence(id), 10));
            }
            s.steps();
            executing.forEach(one -> one.observer().assertError(ErrorCode.CANCELLED, "request was cancelled"));
            executing.clear();
            Sent next = s.send(sequence(1), 100);
            s.steps();
            assertThat(next.sum()).isEqualTo(111);
            assertThat(notified).isEmpty();
        }
    }

    @Test
    void aRequestThatIsAbandonedWhileItExecutesNotifiesTheBackend() {
        ScheduledRequest[] executing = new ScheduledRequest[1];
        List<String> notified = new ArrayList<>();
        try (SteppedSequences s = start(plan(true, sum(0)), batch -> {
            InferenceRequest request = batch.requests().getFirst();
            request.onCancel(() -> notified.add("action"));
            executing[0].cancel();
            executing[0].abandon();
            notified.add("is cancelled: " + request.isCancelled());
            addUp(batch);
        })) {
            Sent sent = s.send(sequence(1).start(), 1);
            executing[0] = (ScheduledRequest) sent.cancellation();
            s.steps();
            assertThat(notified).containsExactly("action", "is cancelled: true");
        }
    }

    @Test
    void aStateThatIsNotWrittenStays() {
        List<Float> seen = new ArrayList<>();
        try (SteppedSequences s = start(plan(true, sum(7)), batch -> {
            seen.add(batch.gather("SUM_IN").data().get(ValueLayout.JAVA_FLOAT, 0));
            FakeInstance.copy(batch);
        })) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(1), 1);
            s.steps();
            assertThat(seen).containsExactly(7f, 7f);
        }
    }

    @Test
    void theNextValueIsPassedWithoutACopy() {
        List<Long> written = new ArrayList<>();
        List<Long> read = new ArrayList<>();
        try (SteppedSequences s = start(plan(false, sum(0)), batch -> {
            read.add(batch.gather("SUM_IN").data().address());
            Tensor next = batch.state("SUM_OUT").allocate(DataType.FP32, Shape.of(1, 1));
            written.add(next.data().address());
            FakeInstance.copy(batch);
        })) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(1), 1);
            s.send(sequence(1), 1);
            s.steps();
            assertThat(read.subList(1, 3)).isEqualTo(written.subList(0, 2));
        }
    }

    @Test
    void statesAreKnownByName() {
        StateSpec b = StateSpec.of("A_IN", "B_OUT", DataType.FP32, Shape.of(1));
        StateSpec a = StateSpec.of("B_IN", "A_OUT", DataType.FP32, Shape.of(1));
        SequencePlan plan = plan(true, new InitialState(b, floats(1)), new InitialState(a, floats(2)));
        List<String> seen = new ArrayList<>();
        try (SteppedSequences s = start(plan, batch -> {
            seen.add(batch.gather("A_IN").data().get(ValueLayout.JAVA_FLOAT, 0) + " "
                    + batch.gather("B_IN").data().get(ValueLayout.JAVA_FLOAT, 0));
            write(batch, "B_OUT", 10);
            write(batch, "A_OUT", 20);
            FakeInstance.copy(batch);
        })) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(1), 1);
            s.steps();
            assertThat(seen).containsExactly("1.0 2.0", "10.0 20.0");
        }
    }

    private static void write(Batch batch, String state, float value) {
        batch.state(state).allocate(DataType.FP32, Shape.of(1, 1)).data().set(ValueLayout.JAVA_FLOAT, 0, value);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void differentShapesAreNotInOneBatch(boolean direct) {
        StateSpec history = StateSpec.of("IN_ALL", "OUT_ALL", DataType.FP32, Shape.of(Shape.VARIABLE));
        List<Integer> clients = new ArrayList<>();
        try (SteppedSequences s = start(plan(direct, new InitialState(history, floats(0))), batch -> {
            Tensor present = batch.gather("IN_ALL");
            long width = present.shape().dim(1);
            clients.add((int) batch.requests().stream()
                    .filter(request -> !request.isNullRequest())
                    .count());
            batch.state("OUT_ALL").allocate(DataType.FP32, Shape.of(batch.size(), width + 1));
            Tensor out = batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 1));
            for (int row = 0; row < batch.size(); row++) {
                out.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, (float) width);
            }
        })) {
            s.send(sequence(1).start(), 1);
            s.steps();
            Sent longer = s.send(sequence(1), 1);
            Sent shorter = s.send(sequence(2).start(), 1);
            s.steps();
            assertThat(longer.sum()).isEqualTo(2);
            assertThat(shorter.sum()).isEqualTo(1);
            s.send(sequence(1).start(), 1); // as short as the other one then
            s.send(sequence(3).start(), 1);
            s.steps();
            assertThat(clients).containsExactly(1, 1, 1, 2);
        }
    }

    @Test
    void oneBufferBeginsWithThePresentValue() {
        InitialState state = new InitialState(SUM.withSameBuffer(), floats(5));
        try (SteppedSequences s = start(plan(true, state), batch -> {
            Tensor sum = batch.state("SUM_OUT").allocate(DataType.FP32, Shape.of(batch.size(), 1));
            Tensor in = batch.gather("IN");
            Tensor out = batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 1));
            for (int row = 0; row < batch.size(); row++) {
                float value = sum.data().getAtIndex(ValueLayout.JAVA_FLOAT, row)
                        + in.data().getAtIndex(ValueLayout.JAVA_FLOAT, row);
                sum.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, value);
                out.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, value);
            }
        })) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 2);
            s.steps();
            Sent one = s.send(sequence(1), 10);
            Sent two = s.send(sequence(2), 20);
            s.steps();
            assertThat(one.sum()).isEqualTo(16);
            assertThat(two.sum()).isEqualTo(27);
            assertThat(s.queue().copiedStates()).as("once for each request").isEqualTo(4);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void growableMemoryKeepsWhatIsThere(boolean direct) {
        StateSpec history = StateSpec.of("IN_ALL", "OUT_ALL", DataType.FP32, Shape.of(Shape.VARIABLE));
        InitialState state = new InitialState(history.withGrowableMemory(), floats(7));
        try (SteppedSequences s = start(plan(direct, state), batch -> {
            Tensor in = batch.gather("IN");
            int width = (int) batch.gather("IN_ALL").shape().dim(1) + 1;
            Tensor all = batch.state("OUT_ALL").allocate(DataType.FP32, Shape.of(batch.size(), width));
            Tensor out = batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), width));
            for (int row = 0; row < batch.size(); row++) {
                float value = in.data().getAtIndex(ValueLayout.JAVA_FLOAT, row);
                all.data().setAtIndex(ValueLayout.JAVA_FLOAT, (row + 1L) * width - 1, value);
            }
            out.data().copyFrom(all.data());
        })) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 2);
            s.steps();
            Sent one = s.send(sequence(1), 10);
            Sent two = s.send(sequence(2), 20);
            s.steps();
            assertThat(one.observer().floats("OUT")).containsExactly(7, 1, 10);
            assertThat(two.observer().floats("OUT")).containsExactly(7, 2, 20);
        }
    }

    /** The dimensions are those of the first value: a state of [2, 2] becomes one of [n]. */
    @Test
    void growableMemoryTakesAnyShape() {
        StateSpec history = StateSpec.of("IN_ALL", "OUT_ALL", DataType.FP32, Shape.of(2, 2));
        Tensor zeros =
                Tensor.of(DataType.FP32, Shape.of(1, 2, 2), Arena.ofAuto().allocate(16, 64));
        InitialState state = new InitialState(history.withGrowableMemory(), zeros);
        try (SteppedSequences s = start(plan(false, state), batch -> {
            Tensor present = batch.gather("IN_ALL");
            long width = present.shape().elementCount() + 1;
            Tensor all = batch.state("OUT_ALL").allocate(DataType.FP32, Shape.of(1, width));
            all.data()
                    .setAtIndex(
                            ValueLayout.JAVA_FLOAT,
                            width - 1,
                            batch.gather("IN").data().get(ValueLayout.JAVA_FLOAT, 0));
            batch.allocate("OUT", DataType.FP32, Shape.of(1, width)).data().copyFrom(all.data());
        })) {
            s.send(sequence(1).start(), 7);
            s.steps();
            Sent second = s.send(sequence(1), 8);
            s.steps();
            assertThat(second.observer().floats("OUT")).containsExactly(0, 0, 0, 0, 7, 8);
        }
    }

    @Test
    void textsOfABatchArePassedAsTheyLie() {
        StateSpec spec = StateSpec.of("T_IN", "T_OUT", DataType.BYTES, Shape.of(1));
        MemorySegment empty = Arena.ofAuto().allocate(4);
        InitialState state = new InitialState(spec, Tensor.of(DataType.BYTES, Shape.of(1, 1), empty));
        List<Long> read = new ArrayList<>();
        List<Long> written = new ArrayList<>();
        try (SteppedSequences s = start(plan(false, state), batch -> {
            read.add(batch.gather("T_IN").data().address());
            Tensor texts = batch.state("T_OUT").allocateBytes(Shape.of(2, 1), 4 + 1 + 4 + 3);
            texts.data().set(ValueLayout.JAVA_INT_UNALIGNED, 0, 1);
            texts.data().set(ValueLayout.JAVA_INT_UNALIGNED, 5, 3);
            written.add(texts.data().address());
            FakeInstance.copy(batch);
        })) {
            for (int i = 0; i < 3; i++) {
                s.send(i == 0 ? sequence(1).start() : sequence(1), 1);
                s.send(i == 0 ? sequence(2).start() : sequence(2), 1);
                s.steps();
            }
            assertThat(read.subList(1, 3)).isEqualTo(written.subList(0, 2));
            assertThat(s.queue().copiedStates()).isEqualTo(2);
        }
    }

    @Test
    void textsBeginAsConfigured() {
        MemorySegment text = Arena.ofAuto().allocate(6);
        text.set(ValueLayout.JAVA_INT_UNALIGNED, 0, 2);
        text.set(ValueLayout.JAVA_BYTE, 4, (byte) 'h');
        text.set(ValueLayout.JAVA_BYTE, 5, (byte) 'i');
        StateSpec spec = StateSpec.of("T_IN", "T_OUT", DataType.BYTES, Shape.of(1));
        InitialState state = new InitialState(spec, Tensor.of(DataType.BYTES, Shape.of(1, 1), text));
        List<Long> sizes = new ArrayList<>();
        try (SteppedSequences s = start(plan(true, state), batch -> {
            for (InferenceRequest request : batch.requests()) {
                Tensor present = request.requireInput("T_IN");
                sizes.add(present.byteSize());
                if (!request.isNullRequest()) {
                    Tensor next = request.state("T_OUT").allocateBytes(Shape.of(1, 1), present.byteSize() + 1);
                    next.data().set(ValueLayout.JAVA_INT_UNALIGNED, 0, (int) present.byteSize() + 1 - Integer.BYTES);
                }
            }
            FakeInstance.copy(batch);
        })) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 1);
            s.steps();
            s.send(sequence(2), 1);
            s.steps();
            assertThat(sizes).containsExactly(6L, 6L, 4L, 7L); // that of a null request is empty
        }
    }

    @Test
    void aValueInMemoryOfTheRequestIsCopiedAndCounted() {
        try (SteppedSequences s = start(plan(true, sum(0)), batch -> {
            InferenceRequest request = batch.requests().getFirst();
            request.state("SUM_OUT").put(request.requireInput("IN"));
            FakeInstance.copy(batch);
        })) {
            s.send(sequence(1).start(), 1);
            s.steps();
            assertThat(s.queue().copiedStates()).isEqualTo(1);
        }
    }
}
