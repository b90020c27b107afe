package dev.nereid.scheduler.sequence;

import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.SequenceBatching;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Plans of sequences for tests. Static functions only. */
final class Plans {
    static final Duration IDLE = Duration.ofSeconds(5);

    static final ControlValues START =
            new ControlValues(new ControlInput(ControlInput.Kind.SEQUENCE_START, "START", DataType.INT32), 0, 1);
    static final ControlValues END =
            new ControlValues(new ControlInput(ControlInput.Kind.SEQUENCE_END, "END", DataType.BOOL), 0, 1);
    static final ControlValues READY = new ControlValues(
            new ControlInput(ControlInput.Kind.SEQUENCE_READY, "READY", DataType.FP32),
            Float.floatToRawIntBits(0),
            Float.floatToRawIntBits(1));

    private Plans() {}

    static ControlValues id(DataType type) {
        return new ControlValues(new ControlInput(ControlInput.Kind.SEQUENCE_CORRID, "CORRID", type), 0, 0);
    }

    /** Returns the direct strategy with all flags and ids of 64 bits. */
    static SequencePlan direct(int slots) {
        return direct(slots, 0, 0);
    }

    static SequencePlan direct(int slots, long delayMicros, float utilization) {
        return direct(slots, delayMicros, utilization, START, END, READY, id(DataType.UINT64));
    }

    static SequencePlan direct(int slots, long delayMicros, float utilization, ControlValues... controls) {
        return new SequencePlan(
                SequenceBatching.of(SequenceBatching.Strategy.DIRECT, IDLE),
                List.of(controls),
                List.of(),
                slots,
                TimeUnit.MICROSECONDS.toNanos(delayMicros),
                utilization,
                List.of(),
                false);
    }

    /** Returns the oldest strategy with all flags and ids of 64 bits. */
    static SequencePlan oldest(int candidates, long delayMicros, Integer... preferred) {
        return new SequencePlan(
                SequenceBatching.of(SequenceBatching.Strategy.OLDEST, IDLE),
                List.of(START, END, READY, id(DataType.UINT64)),
                List.of(),
                candidates,
                TimeUnit.MICROSECONDS.toNanos(delayMicros),
                0,
                List.of(preferred),
                false);
    }

    /** Returns the same plan with the order of responses preserved. */
    static SequencePlan ordered(SequencePlan plan) {
        return new SequencePlan(
                plan.batching(),
                plan.controls(),
                plan.states(),
                plan.slots(),
                plan.maxQueueDelayNanos(),
                plan.minimumSlotUtilization(),
                plan.preferredSizes(),
                true);
    }

    /** Returns the same plan for iterative sequences. */
    static SequencePlan iterative(SequencePlan plan) {
        return new SequencePlan(
                plan.batching().withIterative(),
                plan.controls(),
                plan.states(),
                plan.slots(),
                plan.maxQueueDelayNanos(),
                plan.minimumSlotUtilization(),
                plan.preferredSizes(),
                plan.preserveOrdering());
    }

    /** Returns the same plan with states. */
    static SequencePlan with(SequencePlan plan, InitialState... states) {
        SequenceBatching batching = plan.batching();
        for (InitialState state : states) {
            batching = batching.with(state.spec());
        }
        return new SequencePlan(
                batching,
                plan.controls(),
                List.of(states),
                plan.slots(),
                plan.maxQueueDelayNanos(),
                plan.minimumSlotUtilization(),
                plan.preferredSizes(),
                plan.preserveOrdering());
    }
}
