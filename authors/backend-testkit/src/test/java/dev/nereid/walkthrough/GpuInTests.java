package dev.nereid.walkthrough;

import dev.nereid.spi.Fence;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.function.LongConsumer;

/** A {@link Gpu} whose work runs when the test says so. Device memory is memory of the host. Confined to the test's thread. */
final class GpuInTests implements Gpu {
    private final Queue<Runnable> work = new ArrayDeque<>();
    private final List<Boolean> events = new ArrayList<>();

    @Override
    public void embed(MemorySegment tokens, MemorySegment vectors) {
        work.add(() -> {
            for (long i = 0; i < vectors.byteSize() / Float.BYTES; i++) {
                int token = tokens.getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, i / Embed.WIDTH);
                vectors.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i, token);
            }
        });
    }

    @Override
    public void score(MemorySegment vectors, MemorySegment scores) {
        work.add(() -> {
            for (long i = 0; i < scores.byteSize() / Float.BYTES; i++) {
                float sum = 0;
                for (long j = 0; j < Embed.WIDTH; j++) {
                    sum += vectors.getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i * Embed.WIDTH + j);
                }
                scores.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i, sum);
            }
        });
    }

    @Override
    public void await(long event) {
        work.add(() -> {
            if (!isRecorded(event)) {
                throw new AssertionError("event " + event + " (expected: work of which it is the end has run)");
            }
        });
    }

    @Override
    public Fence record() {
        events.add(false);
        long event = events.size();
        work.add(() -> events.set((int) event - 1, true));
        return new Recorded(event);
    }

    /** Runs all work so far. */
    void run() {
        while (!work.isEmpty()) {
            work.remove().run();
        }
    }

    private boolean isRecorded(long event) {
        return events.get((int) event - 1);
    }

    private final class Recorded implements Fence {
        private final long event;

        Recorded(long event) {
            this.event = event;
        }

        @Override
        public boolean isDone() {
            return isRecorded(event);
        }

        @Override
        public boolean await(Duration timeout) {
            return isDone();
        }

        @Override
        public boolean withEvent(LongConsumer action) {
            action.accept(event);
            return true;
        }
    }
}
