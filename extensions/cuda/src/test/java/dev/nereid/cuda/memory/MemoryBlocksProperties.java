package dev.nereid.cuda.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.OptionalLong;
import java.util.Random;
import java.util.TreeMap;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;

/** Tests of the division of memory: in any order of allocation and release, blocks never overlap and all come back. */
final class MemoryBlocksProperties {
    private static final long ALIGNMENT = MemoryBlocks.ALIGNMENT;

    @Property(tries = 300)
    void dividesWithoutOverlap(
            @ForAll @LongRange(max = 1 << 20) long byteSize,
            @ForAll @IntRange(min = 1, max = 300) int steps,
            @ForAll Random random) {
        MemoryBlocks blocks = new MemoryBlocks(byteSize);
        TreeMap<Long, Long> used = new TreeMap<>();
        for (int i = 0; i < steps; i++) {
            if (random.nextInt(3) > 0) {
                allocate(blocks, used, byteSize, random.nextInt(1 << random.nextInt(1, 21)));
            } else if (!used.isEmpty()) {
                List<Long> offsets = new ArrayList<>(used.keySet());
                long offset = offsets.get(random.nextInt(offsets.size()));
                used.remove(offset);
                blocks.free(offset);
            }
            assertThat(blocks.bytesInUse())
                    .isEqualTo(used.values().stream().mapToLong(Long::longValue).sum());
        }
        used.keySet().forEach(blocks::free);
        assertThat(blocks.bytesInUse()).isZero();
        long all = byteSize & -ALIGNMENT;
        assertThat(blocks.allocate(all).isPresent())
                .as("all of it in one block")
                .isEqualTo(all > 0);
    }

    private static void allocate(MemoryBlocks blocks, NavigableMap<Long, Long> used, long byteSize, long size) {
        long taken = Math.max(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
        OptionalLong offset = blocks.allocate(size);
        assertThat(offset.isPresent()).as("%s bytes", size).isEqualTo(largestGap(used, byteSize) >= taken);
        if (offset.isPresent()) {
            long start = offset.getAsLong();
            assertThat(start % ALIGNMENT).isZero();
            assertThat(start + taken).isLessThanOrEqualTo(byteSize);
            Map.Entry<Long, Long> before = used.floorEntry(start);
            assertThat(before == null || before.getKey() + before.getValue() <= start)
                    .isTrue();
            Long after = used.ceilingKey(start);
            assertThat(after == null || start + taken <= after).isTrue();
            used.put(start, taken);
        }
    }

    private static long largestGap(NavigableMap<Long, Long> used, long byteSize) {
        long largest = 0;
        long end = 0;
        for (Map.Entry<Long, Long> block : used.entrySet()) {
            largest = Math.max(largest, block.getKey() - end);
            end = block.getKey() + block.getValue();
        }
        return Math.max(largest, (byteSize & -ALIGNMENT) - end);
    }

    @Example
    void refusesWhatIsNoBlock() {
        MemoryBlocks blocks = new MemoryBlocks(1024);
        long offset = blocks.allocate(100).orElseThrow();
        blocks.free(offset);

        assertThatIllegalStateException()
                .isThrownBy(() -> blocks.free(offset))
                .withMessage("block at 0: not in use (expected: to be freed once)");
        assertThatIllegalArgumentException().isThrownBy(() -> blocks.allocate(-1));
        assertThat(blocks.allocate(Long.MAX_VALUE)).isEmpty();
        assertThat(blocks.allocate(1025)).isEmpty();
    }
}
