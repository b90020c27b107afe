package dev.nereid.backend.python.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.python.memory.FakeProcess.Slot;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.RecordedLog;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Random steps of both sides, with the content of each tensor checked until its end. */
@EnabledOnOs(OS.LINUX)
class SharedMemoryScheduleTest {
    private record Tensor(Slot slot, long size, byte seed) {}

    private record Output(HeldSlot held, byte seed) {}

    private final FakeProcess process = new FakeProcess();
    private final FakeClock clock = new FakeClock();
    private final MemoryBudget budget = new MemoryBudget(24 << 20);
    private final SharedMemory memory = new SharedMemory(process, budget, new RecordedLog(), clock);
    private final List<IncomingSlot> writing = new ArrayList<>();
    private final List<Tensor> inputs = new ArrayList<>();
    private final List<Output> outputs = new ArrayList<>();
    private int named;

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void keepsTensorsUntilTheirEnd(long seed) {
        long before = FakeProcess.mappingsAndDescriptors();
        Random random = new Random(seed);
        int inline = 0;
        for (int i = 0; i < 6000; i++) {
            switch (random.nextInt(12)) {
                case 0, 1, 2 -> inline += allocate(random);
                case 3, 4 -> send(random);
                case 5, 6 -> releaseInputs(random);
                case 7, 8 -> writeOutput(random);
                case 9 -> passInput(random);
                case 10 -> endOutput(random);
                default -> maintain(random);
            }
            assertThat(memory.byteSize()).isEqualTo(budget.used()).isEqualTo(process.byteSize());
            assertThat(budget.used()).isLessThanOrEqualTo(budget.limit());
        }
        assertThat(inline).isPositive();
        assertThat(process.removed).isNotEmpty();
        assertThat(process.refused).isNotEmpty();
        assertThat(named).isGreaterThan(500);

        process.end();
        memory.close();
        while (!outputs.isEmpty()) {
            endOutput(random);
        }
        writing.forEach(IncomingSlot::discard);
        assertThat(memory.byteSize()).isZero();
        assertThat(budget.used()).isZero();
        assertThat(FakeProcess.mappingsAndDescriptors()).isEqualTo(before);
    }

    private static long size(Random random) {
        return 1L + random.nextInt(1 << (10 + random.nextInt(13)));
    }

    private static <T> T takeOne(List<T> list, Random random) {
        return list.remove(random.nextInt(list.size()));
    }

    private int allocate(Random random) {
        IncomingSlot slot = memory.allocate(size(random));
        if (slot == null) {
            return 1;
        }
        FakeProcess.fill(slot.data(), (byte) slot.data().byteSize());
        writing.add(slot);
        return 0;
    }

    private void send(Random random) {
        if (writing.isEmpty()) {
            return;
        }
        IncomingSlot slot = takeOne(writing, random);
        long size = slot.data().byteSize();
        FakeProcess.check(slot.data(), (byte) size);
        if (random.nextInt(4) == 0) {
            slot.discard();
            return;
        }
        byte seed = (byte) random.nextInt();
        FakeProcess.fill(slot.data(), seed);
        slot.written();
        inputs.add(new Tensor(process.take(slot.segment(), slot.offset(), size), size, seed));
    }

    private void releaseInputs(Random random) {
        List<Slot> slots = new ArrayList<>();
        for (int i = random.nextInt(4); i >= 0 && !inputs.isEmpty(); i--) {
            Tensor input = takeOne(inputs, random);
            FakeProcess.check(process.memory(input.slot(), input.size()), input.seed());
            slots.add(input.slot());
        }
        memory.onReleased(process.release(slots));
    }

    private void writeOutput(Random random) {
        long size = size(random);
        long slotSize = SlotSizes.of(size);
        if (!process.hasFree(slotSize)) {
            int refused = process.refused.size();
            memory.onSegmentWanted(slotSize);
            if (process.refused.size() > refused) {
                process.returnIdle().forEach(memory::onSegmentReturned);
                memory.onSegmentWanted(slotSize);
            }
            if (!process.hasFree(slotSize)) {
                return;
            }
        }
        byte seed = (byte) random.nextInt();
        Slot slot = process.give(slotSize, size);
        FakeProcess.fill(process.memory(slot, size), seed);
        outputs.add(new Output(memory.hold(FakeProcess.tensor(slot, size), "output"), seed));
        named++;
    }

    private void passInput(Random random) {
        if (!inputs.isEmpty()) {
            Tensor input = inputs.get(random.nextInt(inputs.size()));
            HeldSlot held = memory.hold(FakeProcess.tensor(input.slot(), input.size()), "output");
            outputs.add(new Output(held, input.seed()));
            named++;
        }
    }

    private void endOutput(Random random) {
        for (int i = random.nextInt(6); i >= 0 && !outputs.isEmpty(); i--) {
            Output output = takeOne(outputs, random);
            FakeProcess.check(output.held().data(), output.seed());
            output.held().release();
            output.held().release();
        }
    }

    private void maintain(Random random) {
        switch (random.nextInt(8)) {
            case 0 -> process.returnIdle().forEach(memory::onSegmentReturned);
            case 1 -> {
                while (!inputs.isEmpty()) {
                    releaseInputs(random);
                }
            }
            default -> {
                clock.advance(Duration.ofSeconds(4));
                memory.trim();
            }
        }
    }
}
