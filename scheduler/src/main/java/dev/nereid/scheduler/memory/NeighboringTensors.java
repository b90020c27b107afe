package dev.nereid.scheduler.memory;

import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Joins tensors that follow one another in memory, without a copy. Static functions only.
 *
 * <p>An example are the outputs that one batch wrote for several requests. The reader of the joined memory has to keep
 * the memory of each part, so it does not matter whether all parts are of one allocation.
 */
public final class NeighboringTensors {
    private NeighboringTensors() {}

    /**
     * Joins tensors that lie one after the other in native memory of the host. Memory of clients is left alone, since
     * each access to it may fail.
     *
     * @param parts the tensors, at least one
     * @return the memory of all of them, valid as long as the memory of each; {@code null} if they lie otherwise
     */
    @SuppressWarnings("restricted") // Each byte of the result is a byte of a part.
    public static @Nullable MemorySegment join(List<Tensor> parts) {
        MemorySegment first = parts.getFirst().data();
        long end = first.address();
        long byteSize = 0;
        for (int i = 0; i < parts.size(); i++) {
            Tensor part = parts.get(i);
            if (part.data().address() != end || !isPlain(part)) {
                return null;
            }
            end += part.byteSize();
            byteSize += part.byteSize();
        }
        return byteSize == 0 ? null : first.reinterpret(byteSize);
    }

    private static boolean isPlain(Tensor part) {
        return part.place().isHost()
                && part.data().isNative()
                && part.fence().isEmpty()
                && !ClientMemory.isClientMemory(part.data());
    }
}
