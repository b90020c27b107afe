package dev.nereid.plugin.cache;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.IIII_Result;
import org.openjdk.jcstress.infra.results.III_Result;

/** Stress tests of {@link LocalCache.StoredEntry}: readers against an eviction. */
public final class StoredEntryStress {
    private StoredEntryStress() {}

    /**
     * One reader. The results: whether it got the entry, how often the memory was freed while it read, and at the end.
     */
    @JCStressTest
    @Outcome(id = "1, 0, 1", expect = ACCEPTABLE, desc = "read, then freed")
    @Outcome(id = "0, 0, 1", expect = ACCEPTABLE, desc = "dropped before")
    @Outcome(expect = FORBIDDEN, desc = "freed while it was read, twice, or never")
    @State
    public static class RetainAgainstEvict {
        private final Memory memory = new Memory();
        private final LocalCache.StoredEntry entry = LocalCache.StoredEntry.of(Memory.CONTENT, memory);

        /** A reader. */
        @Actor
        public void read(III_Result result) {
            if (entry.tryRetain()) {
                result.r1 = 1;
                result.r2 = memory.frees();
                entry.close();
            }
        }

        /** The cache. */
        @Actor
        public void evict() {
            entry.close();
        }

        /** The final state. */
        @Arbiter
        public void end(III_Result result) {
            result.r3 = memory.frees();
        }
    }

    /** Two readers, one of which drops the entry afterwards, as an eviction does. */
    @JCStressTest
    @Outcome(id = "1, 0, 0, 1", expect = ACCEPTABLE, desc = "both read, then it was freed")
    @Outcome(id = "0, 0, 0, 1", expect = ACCEPTABLE, desc = "one was too late")
    @Outcome(expect = FORBIDDEN, desc = "freed while it was read, twice, or never")
    @State
    public static class RetainAgainstRetain {
        private final Memory memory = new Memory();
        private final LocalCache.StoredEntry entry = LocalCache.StoredEntry.of(Memory.CONTENT, memory);

        /** A reader. */
        @Actor
        public void read(IIII_Result result) {
            if (entry.tryRetain()) {
                result.r1 = 1;
                result.r2 = memory.frees();
                entry.close();
            }
        }

        /** The other, which drops it. */
        @Actor
        public void readAndEvict(IIII_Result result) {
            boolean got = entry.tryRetain();
            entry.close();
            result.r3 = got ? memory.frees() : -1;
            entry.close();
        }

        /** The final state. */
        @Arbiter
        public void end(IIII_Result result) {
            result.r4 = memory.frees();
        }
    }

    /** Memory that counts how often it was freed. */
    private static final class Memory implements TensorMemory, TensorBuffer {
        private static final MemorySegment CONTENT = MemorySegment.ofArray(new byte[0]);

        private final AtomicInteger frees = new AtomicInteger();

        int frees() {
            return frees.get();
        }

        @Override
        public TensorBuffer allocate(long byteSize) {
            return this;
        }

        @Override
        public long bytesInUse() {
            return 0;
        }

        @Override
        public MemorySegment segment() {
            return CONTENT;
        }

        @Override
        public void close() {
            frees.incrementAndGet();
        }
    }
}
