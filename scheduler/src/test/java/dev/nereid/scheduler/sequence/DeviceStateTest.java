package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.FakeFence;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.SteppedSequences.Position;
import dev.nereid.scheduler.SteppedSequences.Sent;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeDeviceMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** States in memory of a device, which Java code cannot read. */
final class DeviceStateTest {
    private static final MemoryPlace GPU0 = new MemoryPlace(MemoryPlace.Kind.GPU, 0);
    private static final MemoryPlace GPU1 = new MemoryPlace(MemoryPlace.Kind.GPU, 1);
    private static final StateSpec SUM = StateSpec.of("SUM_IN", "SUM_OUT", DataType.FP32, Shape.of(2));
    private static final float FIRST = 7;

    /** How the backend writes the next value. */
    enum Way {
        ALLOCATE,
        PUT,
        SAME_BUFFER,
        /** By work of the device that has not ended when the execution does. */
        FENCED,
        /** On the host every second time, as a backend does that gets no memory of the device. */
        EITHER,
    }

    private Way way = Way.ALLOCATE;
    private FakeDeviceMemory device = new FakeDeviceMemory(GPU0);

    /** The addresses of the present and of the next states in each batch. */
    private final List<Long> read = new ArrayList<>();

    private final List<Long> written = new ArrayList<>();

    /** Adds the input to both numbers of the state; a state of a null request is zeros. */
    private void addUp(Batch batch) {
        Tensor in = batch.gather("IN");
        Shape shape = Shape.of(batch.size(), 2);
        float[] sums;
        Tensor next;
        boolean onHost = way == Way.EITHER && written.size() % 2 == 1;
        if (onHost) {
            sums = batch.gather("SUM_IN").floats();
            next = batch.state("SUM_OUT").allocate(DataType.FP32, shape);
        } else if (way == Way.SAME_BUFFER) {
            next = batch.state("SUM_OUT").allocate(DataType.FP32, shape, GPU0);
            sums = device.floats(next.data());
        } else {
            Tensor present = batch.gather("SUM_IN", GPU0);
            assertThat(present.place()).isEqualTo(GPU0);
            read.add(present.data().address());
            sums = device.floats(present.data());
            next = way == Way.PUT ? put(batch, shape) : batch.state("SUM_OUT").allocate(DataType.FP32, shape, GPU0);
        }
        assertThat(next.place()).isEqualTo(onHost ? MemoryPlace.HOST : GPU0);
        written.add(next.data().address());
        Tensor out = batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 1));
        for (int row = 0; row < batch.size(); row++) {
            assertThat(sums[2 * row]).isEqualTo(sums[2 * row + 1]);
            if (batch.requests().get(row).isNullRequest()) {
                assertThat(sums[2 * row]).isZero();
            }
            float sum = sums[2 * row] + in.data().getAtIndex(ValueLayout.JAVA_FLOAT, row);
            sums[2 * row] = sum;
            sums[2 * row + 1] = sum;
            out.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, sum);
        }
        if (onHost) {
            MemorySegment.copy(sums, 0, next.data(), ValueLayout.JAVA_FLOAT_UNALIGNED, 0, sums.length);
        } else if (way == Way.FENCED) {
            batch.state("SUM_OUT").fence(new FakeFence(() -> device.write(MemorySegment.ofArray(sums), next.data())));
        } else {
            device.write(MemorySegment.ofArray(sums), next.data());
        }
    }

    private Tensor put(Batch batch, Shape shape) {
        TensorBuffer own = device.allocate(shape.byteSize(DataType.FP32));
        Tensor next = Tensor.of(DataType.FP32, shape, own.segment(), GPU0);
        batch.state("SUM_OUT").put(next, own::close);
        return next;
    }

    private SteppedSequences start(boolean direct) {
        MemorySegment first = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, FIRST, FIRST);
        InitialState initial = new InitialState(
                way == Way.SAME_BUFFER ? SUM.withSameBuffer() : SUM, Tensor.of(DataType.FP32, Shape.of(1, 2), first));
        SequencePlan plan = Plans.with(direct ? Plans.direct(4) : Plans.oldest(4, 0), initial);
        SteppedSequences started = new SteppedSequences(SteppedSequences.settings(4), plan, this::addUp);
        device = started.device;
        return started;
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void theNextBatchGetsThemWhereTheyWereWritten(boolean direct) {
        try (SteppedSequences s = start(direct)) {
            for (int round = 0; round < 3; round++) {
                for (int id = 1; id <= 3; id++) {
                    s.send(round == 0 ? sequence(id).start() : sequence(id), id);
                }
                s.steps();
            }
            assertThat(read.subList(1, 3)).isEqualTo(written.subList(0, 2));
            assertThat(device.copies()).as("copies on the device").isZero();
            assertThat(device.copiesToHost()).isZero();
            assertThat(s.queue().sequenceUse().orElseThrow().states().bytes()).isEqualTo(3 * 8);
        }
    }

    @Tag("slow")
    @ParameterizedTest
    @EnumSource
    void eachSequenceHasItsOwnInAnyOrder(Way given) {
        way = given;
        for (long seed = 0; seed < 60; seed++) {
            run(new SplittableRandom(seed), seed % 2 == 0);
        }
    }

    private void run(SplittableRandom random, boolean direct) {
        Map<Integer, Float> expected = new HashMap<>();
        try (SteppedSequences s = start(direct)) {
            for (int step = 0; step < 30; step++) {
                Map<Sent, Float> sent = new HashMap<>();
                for (int id = 1; id <= 4; id++) {
                    if (random.nextInt(3) > 0) {
                        send(s, random, id, expected, sent);
                    }
                }
                s.steps();
                sent.forEach((one, sum) -> assertThat(one.sum()).isEqualTo(sum));
            }
            if (way != Way.EITHER) {
                assertThat(device.copiesToHost()).as("copies to the host").isZero();
            }
        }
    }

    private static void send(
            SteppedSequences s, SplittableRandom random, int id, Map<Integer, Float> expected, Map<Sent, Float> sent) {
        Position position = sequence(id);
        boolean starts = !expected.containsKey(id) || random.nextInt(6) == 0;
        int value = random.nextInt(100);
        float sum = (starts ? FIRST : expected.get(id)) + value;
        boolean ends = random.nextInt(6) == 0;
        if (ends) {
            expected.remove(id);
        } else {
            expected.put(id, sum);
        }
        Position begun = starts ? position.start() : position;
        sent.put(s.send(ends ? begun.end() : begun, value), sum);
    }

    @Test
    void growsAndKeepsWhatIsThere() {
        StateSpec history = StateSpec.of("IN_ALL", "OUT_ALL", DataType.FP32, Shape.of(Shape.VARIABLE));
        MemorySegment first = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, FIRST);
        InitialState state =
                new InitialState(history.withGrowableMemory(), Tensor.of(DataType.FP32, Shape.of(1, 1), first));
        List<float[]> all = new ArrayList<>();
        try (SteppedSequences s =
                new SteppedSequences(SteppedSequences.settings(4), Plans.with(Plans.oldest(4, 0), state), batch -> {
                    long width = batch.gather("IN_ALL", GPU0).shape().dim(1) + 1;
                    Tensor next = batch.state("OUT_ALL").allocate(DataType.FP32, Shape.of(1, width), GPU0);
                    float[] numbers = device.floats(next.data());
                    numbers[(int) width - 1] = batch.gather("IN").data().get(ValueLayout.JAVA_FLOAT, 0);
                    device.write(MemorySegment.ofArray(numbers), next.data());
                    all.add(numbers);
                    batch.allocate("OUT", DataType.FP32, Shape.of(1, 1));
                })) {
            device = s.device;
            s.send(sequence(1).start(), 1);
            s.send(sequence(1), 2);
            s.send(sequence(1), 3);
            s.steps();
        }
        assertThat(all.getLast()).containsExactly(FIRST, 1, 2, 3);
    }

    @Test
    void refusesMemoryThatTheServerDoesNotHave() {
        try (SteppedSequences s = new SteppedSequences(
                SteppedSequences.settings(4),
                Plans.with(
                        Plans.direct(4),
                        new InitialState(
                                SUM,
                                Tensor.of(
                                        DataType.FP32,
                                        Shape.of(1, 2),
                                        Arena.ofAuto().allocate(8)))),
                batch -> {
                    Shape shape = Shape.of(batch.size(), 2);
                    assertThatExceptionOfType(BackendException.class)
                            .isThrownBy(() -> batch.state("SUM_OUT").allocate(DataType.FP32, shape, GPU1))
                            .withMessage("state 'SUM_OUT' of model 'stateful': no memory in " + GPU1
                                    + " (expected: memory of the host)")
                            .matches(e -> e.code() == ErrorCode.UNSUPPORTED);
                    Tensor elsewhere = Tensor.of(
                            DataType.FP32, shape, Arena.ofAuto().allocate(shape.byteSize(DataType.FP32)), GPU1);
                    assertThatExceptionOfType(BackendException.class)
                            .isThrownBy(() -> batch.state("SUM_OUT").put(elsewhere))
                            .withMessage("state 'SUM_OUT' of model 'stateful': lies in " + GPU1
                                    + " (expected: memory of the host)");
                    batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 1));
                })) {
            Sent sent = s.send(sequence(1).start(), 1);
            s.steps();
            assertThat(sent.sum()).isZero();
        }
    }
}
