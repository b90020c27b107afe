package dev.nereid.backend.python.memory;

import static dev.nereid.backend.python.memory.FakeProcess.check;
import static dev.nereid.backend.python.memory.FakeProcess.fill;
import static dev.nereid.backend.python.memory.FakeProcess.tensor;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameTensor;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.backend.python.memory.FakeProcess.Slot;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.RecordedLog;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@EnabledOnOs(OS.LINUX)
class SharedMemoryTest {
    private static final long MIB = 1 << 20;

    private final FakeProcess process = new FakeProcess();
    private final FakeClock clock = new FakeClock();
    private final RecordedLog log = new RecordedLog();
    private MemoryBudget budget = new MemoryBudget(1 << 30);
    private SharedMemory memory = new SharedMemory(process, budget, log, clock);
    private long before;

    @BeforeEach
    void count() {
        before = FakeProcess.mappingsAndDescriptors();
    }

    @AfterEach
    void nothingIsLeft() {
        process.end();
        memory.close();
        assertThat(memory.byteSize()).isZero();
        assertThat(budget.used()).isZero();
        assertThat(FakeProcess.mappingsAndDescriptors()).isEqualTo(before);
    }

    private void limit(long byteSize) {
        budget = new MemoryBudget(byteSize);
        memory = new SharedMemory(process, budget, log, clock);
    }

    private IncomingSlot allocate(long size) {
        return requireNonNull(memory.allocate(size));
    }

    /** Sends a tensor to the process. */
    private Slot send(long size) {
        IncomingSlot slot = allocate(size);
        fill(slot.data(), (byte) 1);
        slot.written();
        return process.take(slot.segment(), slot.offset(), size);
    }

    private void release(Slot... slots) {
        memory.onReleased(process.release(List.of(slots)));
    }

    private Slot output(long slotSize) {
        if (!process.hasFree(slotSize)) {
            memory.onSegmentWanted(slotSize);
        }
        return process.give(slotSize, slotSize);
    }

    private static void refuses(Runnable action, String field) {
        assertThatThrownBy(action::run).isInstanceOf(FrameException.class).hasMessageStartingWith(field);
    }

    // Tensors for Python

    @Test
    void writesTensorsThatTheProcessReads() {
        IncomingSlot slot = allocate(1000);
        fill(slot.data(), (byte) 5);
        slot.written();

        Slot taken = process.take(slot.segment(), slot.offset(), 1000);

        check(process.memory(taken, 1000), (byte) 5);
        release(taken);
    }

    @Test
    void givesExactSizeAndDistinctSlots() {
        IncomingSlot first = allocate(20_000);
        IncomingSlot second = allocate(20_001);

        assertThat(first.data().byteSize()).isEqualTo(20_000);
        assertThat(second.data().byteSize()).isEqualTo(20_001);
        assertThat(second.data().asOverlappingSlice(first.data())).isEmpty();
        assertThat(second.segment()).isEqualTo(first.segment());
        first.discard();
        second.discard();
    }

    @Test
    void usesReleasedSlotsAgain() {
        for (int i = 0; i < 10_000; i++) {
            release(send(100_000));
        }

        assertThat(process.segments).hasSize(1);
        assertThat(memory.byteSize()).isEqualTo(MIB);
        assertThat(budget.used()).isEqualTo(MIB);
    }

    @Test
    void needsFewSegmentsForManySlots() {
        List<Slot> slots = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            slots.add(send(100_000));
        }

        assertThat(process.segments).hasSizeLessThan(25);
        assertThat(memory.byteSize()).isLessThan(2000 * 131_072 * 5L / 4 + MIB);
        release(slots.toArray(Slot[]::new));
    }

    @Test
    void sharesOneGibibyte() {
        limit(1L << 30);
        IncomingSlot slot = allocate(1L << 30);
        slot.data().set(ValueLayout.JAVA_BYTE, (1L << 30) - 1, (byte) 3);
        slot.written();

        Slot taken = process.take(slot.segment(), slot.offset(), 1L << 30);

        assertThat(process.memory(taken, 1L << 30).get(ValueLayout.JAVA_BYTE, (1L << 30) - 1))
                .isEqualTo((byte) 3);
        assertThat(memory.allocate(1)).isNull();
        release(taken);
    }

    @ParameterizedTest
    @ValueSource(longs = {0, -1, Long.MIN_VALUE})
    void refusesSizesThatTensorsInSlotsDoNotHave(long size) {
        assertThatIllegalArgumentException().isThrownBy(() -> memory.allocate(size));
    }

    @ParameterizedTest
    @ValueSource(longs = {(1L << 30) + 1, 1L << 40, (1L << 46) + 1, Long.MAX_VALUE})
    void givesNothingBeyondTheBudget(long size) {
        assertThat(memory.allocate(size)).isNull();
        assertThat(process.segments).isEmpty();
    }

    @Test
    void survivesSystemWithoutMemory() {
        limit(Long.MAX_VALUE);
        List<IncomingSlot> slots = new ArrayList<>();
        SharedMemory large = new SharedMemory(frame -> {}, budget, log, clock);

        IncomingSlot slot = large.allocate(1L << 46);
        while (slot != null && slots.size() < 8) {
            slots.add(slot);
            slot = large.allocate(1L << 46);
        }

        assertThat(slot).isNull();
        assertThat(large.allocate(1L << 46)).isNull();
        assertThat(log.lines()).hasSize(1).first().asString().contains("no shared memory of 70368744177664 bytes");
        assertThat(budget.used()).isEqualTo(large.byteSize()).isEqualTo((1L << 46) * slots.size());
        slots.forEach(IncomingSlot::discard);
        large.close();
    }

    @Test
    void discardsOnce() {
        IncomingSlot first = allocate(1000);
        first.discard();
        IncomingSlot second = allocate(1000);
        first.discard();
        first.written();
        IncomingSlot third = allocate(1000);

        assertThat(second.offset()).isEqualTo(first.offset());
        assertThat(third.offset()).isNotEqualTo(second.offset());
        assertThatIllegalStateException().isThrownBy(first::data);
        second.discard();
        third.written();
        third.discard();
        IncomingSlot fourth = allocate(1000);
        assertThat(fourth.offset()).isEqualTo(third.offset());
        fourth.discard();
    }

    @Test
    void ignoresDiscardOfSlotThatPythonHasReleased() {
        IncomingSlot slot = allocate(1000);
        slot.written();
        release(process.take(slot.segment(), slot.offset(), 1000));
        IncomingSlot next = allocate(1000);

        slot.discard();

        assertThat(next.offset()).isEqualTo(slot.offset());
        IncomingSlot other = allocate(1000);
        assertThat(other.offset()).isNotEqualTo(next.offset());
        next.discard();
        other.discard();
    }

    @Test
    void checksReleasedSlots() {
        Slot sent = send(5000);
        Slot output = output(4096);
        IncomingSlot writing = allocate(5000);
        int segment = sent.segment();

        refuses(() -> released(new Slot(99, 0)), "segment of a released slot: segment 99");
        refuses(() -> released(new Slot(0, 0)), "segment of a released slot: segment 0");
        refuses(() -> released(new Slot(-1, 0)), "segment of a released slot: segment 4294967295");
        refuses(() -> released(output), "segment of a released slot: " + output.segment());
        refuses(() -> released(new Slot(segment, 64)), "offset of a released slot: offset 64");
        refuses(() -> released(new Slot(segment, MIB)), "offset of a released slot: offset 1048576");
        refuses(() -> released(new Slot(segment, -8192)), "offset of a released slot: offset 184");
        refuses(() -> released(new Slot(segment, Long.MIN_VALUE)), "offset of a released slot");
        refuses(() -> released(new Slot(segment, 3 * 8192)), "offset of a released slot: 24576 of segment");
        refuses(() -> released(new Slot(segment, writing.offset())), "offset of a released slot");
        refuses(() -> released(sent, sent), "offset of a released slot: 0 of segment");
        refuses(
                () -> memory.onReleased(FakeProcess.reader(
                        new FrameWriter().begin(FrameType.RELEASED, 0, 1, 0).u32(segment))),
                "offset of a released slot");
        writing.discard();
    }

    private void released(Slot... slots) {
        memory.onReleased(FakeProcess.releasedFrame(List.of(slots)));
    }

    // Tensors of Python

    @Test
    void readsTensorsThatTheProcessWrites() {
        Slot slot = output(8192);
        fill(process.memory(slot, 6000), (byte) 9);

        HeldSlot held = memory.hold(tensor(slot, 6000), "output");

        assertThat(held.data().byteSize()).isEqualTo(6000);
        check(held.data(), (byte) 9);
        assertThat(process.released).isEmpty();
        held.release();
        held.release();
        assertThat(process.released).containsExactly(slot);
        assertThatIllegalStateException().isThrownBy(held::data);
    }

    @Test
    void answersWithSegmentsOfWholeSlots() {
        for (long slotSize : new long[] {4096, 8192, MIB, MIB + MIB / 4, 7 * MIB / 4, 2 * MIB, 40 * MIB}) {
            memory.onSegmentWanted(slotSize);

            FakeProcess.Mapped segment = process.segments.get(process.segments.size());
            assertThat(segment.outgoing()).isTrue();
            assertThat(segment.slotSize()).isEqualTo(slotSize);
            assertThat(segment.size()).isEqualTo(Math.max(slotSize, MIB));
        }
    }

    @ParameterizedTest
    @ValueSource(
            longs = {0, -1, 1, 2048, 4095, 4097, 12_288, MIB + 1, MIB + 4096, MIB + MIB / 8, 5L << 47, Long.MIN_VALUE})
    void refusesWrongSizesOfSlots(long slotSize) {
        refuses(() -> memory.onSegmentWanted(slotSize), "size of slots: " + Long.toUnsignedString(slotSize));
    }

    @Test
    void refusesSegmentsBeyondTheBudget() {
        limit(2 * MIB);
        memory.onSegmentWanted(4096);
        memory.onSegmentWanted(4096);
        memory.onSegmentWanted(4096);
        memory.onSegmentWanted(1L << 40);

        assertThat(process.segments).hasSize(2);
        assertThat(process.refused).containsExactly(4096L, 1L << 40);

        process.returnIdle().forEach(memory::onSegmentReturned);
        assertThat(memory.byteSize()).isZero();
        memory.onSegmentWanted(2 * MIB);
        assertThat(process.segments).hasSize(1).containsKey(3);
    }

    @Test
    void checksTensorsOfTheProcess() {
        Slot slot = output(8192);
        long segment = slot.segment();
        HeldSlot held = memory.hold(tensor(slot, 100), "output");

        refuses(() -> memory.hold(tensor(slot, 100), "output"), "output: offset 0 of segment 1");
        refuses(() -> memory.hold(tensor(0, 0, 8), "output"), "output: segment 0");
        refuses(() -> memory.hold(tensor(2, 0, 8), "input"), "input: segment 2");
        refuses(() -> memory.hold(tensor(0xffff_ffffL, 0, 8), "output"), "output: segment 4294967295");
        refuses(() -> memory.hold(tensor((1L << 32) + segment, 0, 8), "output"), "output: segment 4294967297");
        refuses(() -> memory.hold(tensor(segment, 8192, 8193), "output"), "output: 8193 bytes in a slot");
        refuses(() -> memory.hold(tensor(segment, 8256, 8), "output"), "output: offset 8256");
        refuses(() -> memory.hold(tensor(segment, MIB, 0), "output"), "output: offset 1048576");
        refuses(() -> memory.hold(tensor(segment, MIB, 1), "output"), "output: 1 bytes at 1048576");
        refuses(() -> memory.hold(tensor(segment, MIB - 8192, 8193), "output"), "output: 8193 bytes at");
        refuses(() -> memory.hold(tensor(segment, -8192, 8), "output"), "output: 8 bytes at 184");
        refuses(() -> memory.hold(tensor(segment, Long.MAX_VALUE, 8), "output"), "output: 8 bytes at 922");
        refuses(() -> memory.hold(tensor(segment, 8192, Long.MAX_VALUE), "output"), "output: 9223");
        refuses(() -> memory.onSegmentReturned(segment), "segment: 1");
        refuses(() -> memory.onSegmentReturned(0), "segment: segment 0");
        refuses(() -> memory.onSegmentReturned(-1), "segment: segment 18446744073709551615");
        refuses(() -> memory.onSegmentReturned((1L << 32) + 1), "segment: segment 4294967297");

        assertThat(held.data().get(ValueLayout.JAVA_BYTE, 99)).isZero();
        held.release();
    }

    @Test
    void checksIncomingSlotsThatTheProcessNames() {
        Slot sent = send(5000);
        IncomingSlot writing = allocate(5000);
        FrameTensor unsent = tensor(writing.segment(), writing.offset(), 8);

        refuses(() -> memory.hold(unsent, "output"), "output: offset 8192 of segment 1");
        refuses(() -> memory.hold(tensor(sent.segment(), 3 * 8192, 8), "output"), "output: offset 24576");
        refuses(() -> memory.onSegmentReturned(sent.segment()), "segment: 1");
        writing.discard();
        release(sent);
        refuses(() -> memory.hold(tensor(sent, 5000), "output"), "output: offset 0 of segment 1");
    }

    @Test
    void keepsIncomingSlotUntilBothSidesAreDone() {
        Slot sent = send(5000);
        HeldSlot first = memory.hold(tensor(sent, 5000), "output");
        HeldSlot second = memory.hold(tensor(sent, 5000), "output");
        release(sent);
        refuses(() -> released(sent), "offset of a released slot");
        refuses(() -> memory.hold(tensor(sent, 5000), "output"), "output");
        first.release();
        first.release();

        IncomingSlot other = allocate(5000);
        assertThat(other.offset()).isNotEqualTo(sent.offset());
        check(second.data(), (byte) 1);
        second.release();
        IncomingSlot again = allocate(5000);
        assertThat(again.offset()).isEqualTo(sent.offset());
        assertThat(process.released).isEmpty();
        other.discard();
        again.discard();
    }

    @Test
    void keepsIncomingSlotThatOnlyPythonHas() {
        Slot sent = send(5000);
        memory.hold(tensor(sent, 5000), "output").release();

        IncomingSlot other = allocate(5000);
        assertThat(other.offset()).isNotEqualTo(sent.offset());
        other.discard();
        release(sent);
    }

    @Test
    void mergesReleasesThatComeWhileOneIsSent() {
        Slot first = output(4096);
        Slot second = output(4096);
        Slot third = output(4096);
        List<HeldSlot> held = new ArrayList<>();
        SharedMemory[] merging = new SharedMemory[1];
        List<Integer> counts = new ArrayList<>();
        merging[0] = new SharedMemory(
                frame -> {
                    if (frame.frame().get(ValueLayout.JAVA_BYTE, 4) == FrameType.RELEASE) {
                        counts.add((int) frame.frame().get(ValueLayout.JAVA_SHORT_UNALIGNED, 6));
                        held.forEach(HeldSlot::release);
                    }
                },
                new MemoryBudget(MIB),
                log,
                clock);
        merging[0].onSegmentWanted(4096);
        held.add(merging[0].hold(tensor(1, first.offset(), 1), "output"));
        held.add(merging[0].hold(tensor(1, second.offset(), 1), "output"));
        held.add(merging[0].hold(tensor(1, third.offset(), 1), "output"));

        held.getFirst().release();

        assertThat(counts).containsExactly(1, 2);
        merging[0].close();
    }

    // Segments

    @Test
    void removesIncomingSegmentsAfterTenSeconds() {
        release(send(5000));
        Slot kept = send(500_000);
        Slot output = output(4096);

        memory.trim();
        clock.advance(Duration.ofSeconds(9));
        memory.trim();
        assertThat(process.removed).isEmpty();
        clock.advance(Duration.ofSeconds(1));
        memory.trim();

        assertThat(process.removed).containsExactly(1);
        assertThat(process.segments).containsOnlyKeys(kept.segment(), output.segment());
        release(kept);
        Slot next = send(5000);
        assertThat(next.segment()).isEqualTo(4);
        release(next);
    }

    @Test
    void keepsIncomingSegmentsThatAreUsedNowAndThen() {
        for (int i = 0; i < 10; i++) {
            release(send(5000));
            memory.trim();
            clock.advance(Duration.ofSeconds(9));
            Slot sent = send(5000);
            memory.trim();
            clock.advance(Duration.ofSeconds(9));
            release(sent);
            memory.trim();
            clock.advance(Duration.ofSeconds(9));
        }
        assertThat(process.removed).isEmpty();
    }

    @Test
    void keepsIncomingSegmentsThatTheProcessMayNotHaveOpened() {
        allocate(5000).discard();
        memory.trim();
        clock.advance(Duration.ofSeconds(60));
        memory.trim();

        assertThat(process.removed).isEmpty();
    }

    @Test
    void removesIdleSegmentsWhereOthersNeedTheirMemory() {
        limit(3 * MIB);
        release(send(2 * MIB));
        Slot small = send(5000);
        assertThat(memory.allocate(3 * MIB)).isNull();
        assertThat(process.removed).isEmpty();

        memory.onSegmentWanted(MIB);

        assertThat(process.removed).containsExactly(1);
        assertThat(process.refused).isEmpty();
        release(small);
        Slot large = send(2 * MIB);
        assertThat(process.removed).containsExactly(1, small.segment());
        release(large);
    }

    @Test
    void keepsMemoryAfterTheEndUntilItIsNotUsed() {
        Slot sent = send(5000);
        Slot output = output(MIB);
        fill(process.memory(output, MIB), (byte) 4);
        HeldSlot passed = memory.hold(tensor(sent, 5000), "output");
        HeldSlot held = memory.hold(tensor(output, MIB), "output");
        IncomingSlot writing = allocate(3 * MIB);
        allocate(4 * MIB).discard();
        process.end();

        memory.close();
        memory.close();

        assertThat(memory.byteSize()).isEqualTo(5 * MIB);
        assertThat(FakeProcess.mappingsAndDescriptors()).isEqualTo(before + 3);
        fill(writing.data(), (byte) 2);
        check(held.data(), (byte) 4);
        check(passed.data(), (byte) 1);
        held.release();
        held.release();
        assertThat(memory.byteSize()).isEqualTo(4 * MIB);
        writing.written();
        writing.discard();
        assertThat(memory.byteSize()).isEqualTo(MIB);
        assertThat(budget.used()).isEqualTo(MIB);
        passed.release();
        assertThat(process.released).isEmpty();
    }

    @Test
    void ignoresFramesAfterTheEnd() {
        Slot sent = send(5000);
        process.end();
        memory.close();

        assertThat(memory.allocate(5000)).isNull();
        released(sent);
        memory.onSegmentWanted(4096);
        memory.onSegmentReturned(1);
        memory.trim();
        refuses(() -> memory.hold(tensor(sent, 5000), "output"), "output: segment 1 of a process that has ended");
        assertThat(process.segments).isEmpty();
    }

    @Test
    void sharesTheBudgetWithOtherProcesses() {
        limit(2 * MIB);
        FakeProcess neighbor = new FakeProcess();
        SharedMemory other = new SharedMemory(neighbor, budget, log, clock);
        IncomingSlot slot = requireNonNull(other.allocate(2 * MIB));

        assertThat(memory.allocate(1)).isNull();

        slot.discard();
        assertThat(memory.allocate(1)).isNull();
        neighbor.end();
        other.close();
        assertThatCode(() -> release(send(1))).doesNotThrowAnyException();
    }

    // Schedules

    @Test
    void servesThreads() throws Exception {
        limit(64 * MIB);
        try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
            List<Future<?>> ends = new ArrayList<>();
            for (int thread = 0; thread < 4; thread++) {
                Random random = new Random(thread);
                ends.add(threads.submit((Callable<Object>) () -> {
                    for (int i = 0; i < 3000; i++) {
                        step(random);
                    }
                    return "";
                }));
            }
            for (Future<?> end : ends) {
                end.get(60, TimeUnit.SECONDS);
            }
        }
        assertThat(memory.byteSize()).isEqualTo(budget.used()).isEqualTo(process.byteSize());
    }

    private void step(Random random) {
        byte seed = (byte) random.nextInt();
        long size = 1L + random.nextInt(1 << (12 + random.nextInt(9)));
        IncomingSlot slot = allocate(size);
        fill(slot.data(), seed);
        if (random.nextInt(8) == 0) {
            slot.discard();
            return;
        }
        slot.written();
        Slot sent = process.take(slot.segment(), slot.offset(), size);
        check(process.memory(sent, size), seed);
        HeldSlot held = memory.hold(tensor(sent, size), "output");
        if (random.nextBoolean()) {
            memory.onReleased(process.release(List.of(sent)));
            check(held.data(), seed);
            held.release();
        } else {
            held.release();
            check(process.memory(sent, size), seed);
            memory.onReleased(process.release(List.of(sent)));
        }
        if (random.nextInt(50) == 0) {
            clock.advance(Duration.ofSeconds(6));
            memory.trim();
        }
    }
}
