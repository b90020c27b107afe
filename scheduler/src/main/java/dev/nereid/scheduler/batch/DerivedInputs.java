package dev.nereid.scheduler.batch;

import dev.nereid.spi.BatchInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Computes batch inputs, which the server derives from the requests of a batch. Immutable; shape and content are pure
 * functions of the shapes that the source has in the requests.
 *
 * <p>Counts cover whole requests, with all their items; shapes are written once for each item.
 */
final class DerivedInputs {
    private static final ValueLayout.OfInt INT32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfFloat FP32 = ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final Map<String, BatchInput> byName = new LinkedHashMap<>();

    DerivedInputs(ModelSettings model) {
        for (BatchInput derived : model.batchInputs()) {
            for (String name : derived.names()) {
                byName.put(name, derived);
            }
        }
    }

    boolean isEmpty() {
        return byName.isEmpty();
    }

    /** Returns a derived input by any of its names; {@code null} if it is not derived. */
    @Nullable
    BatchInput find(String name) {
        return byName.isEmpty() ? null : byName.get(name);
    }

    /** Adds the names of the inputs that can be derived from those present. */
    void addTo(Set<String> inputs) {
        Set<String> sources = Set.copyOf(inputs);
        byName.forEach((name, derived) -> {
            if (sources.contains(derived.source())) {
                inputs.add(name);
            }
        });
    }

    /**
     * Returns the shape of a derived input.
     *
     * @param kind the meaning of its elements
     * @param sources the shape of its source in each request, at least one, all of the same rank
     * @param batched whether the first dimension of the source counts items
     * @throws ArithmeticException if a number does not fit 64 bits
     */
    static Shape shape(BatchInput.Kind kind, List<Shape> sources, boolean batched) {
        return switch (kind) {
            case ELEMENT_COUNT, ACCUMULATED_ELEMENT_COUNT -> Shape.of(sources.size());
            case ACCUMULATED_ELEMENT_COUNT_WITH_ZERO -> Shape.of(sources.size() + 1L);
            case MAX_ELEMENT_COUNT_AS_SHAPE -> Shape.of(largest(sources));
            case ITEM_SHAPE -> Shape.of(items(sources, batched), rank(sources, batched));
            case ITEM_SHAPE_FLATTEN ->
                Shape.of(Math.multiplyExact(items(sources, batched), (long) rank(sources, batched)));
        };
    }

    private static long largest(List<Shape> sources) {
        long largest = 0;
        for (Shape source : sources) {
            largest = Math.max(largest, source.elementCount());
        }
        return largest;
    }

    private static long items(List<Shape> sources, boolean batched) {
        long items = 0;
        for (Shape source : sources) {
            items = Math.addExact(items, batched ? source.dim(0) : 1);
        }
        return items;
    }

    private static int rank(List<Shape> sources, boolean batched) {
        return sources.getFirst().rank() - (batched ? 1 : 0);
    }

    /**
     * Writes the elements of a derived input, where they are defined.
     *
     * @param kind the meaning of its elements
     * @param sources the shape of its source in each request, as in {@link #shape}
     * @param batched whether the first dimension of the source counts items
     * @param data memory for exactly its elements
     * @throws ArithmeticException if the type cannot represent a number exactly
     */
    static void write(BatchInput.Kind kind, DataType type, List<Shape> sources, boolean batched, MemorySegment data) {
        Writer writer = new Writer(type, data);
        switch (kind) {
            case ELEMENT_COUNT -> sources.forEach(source -> writer.add(source.elementCount()));
            case ACCUMULATED_ELEMENT_COUNT -> accumulate(sources, writer);
            case ACCUMULATED_ELEMENT_COUNT_WITH_ZERO -> {
                writer.add(0);
                accumulate(sources, writer);
            }
            case MAX_ELEMENT_COUNT_AS_SHAPE -> {} // only its shape has a meaning
            case ITEM_SHAPE, ITEM_SHAPE_FLATTEN ->
                sources.forEach(source -> {
                    Shape item = batched ? source.dropFirst() : source;
                    long items = batched ? source.dim(0) : 1;
                    for (long i = 0; i < items; i++) {
                        for (int dim = 0; dim < item.rank(); dim++) {
                            writer.add(item.dim(dim));
                        }
                    }
                });
        }
    }

    private static void accumulate(List<Shape> sources, Writer writer) {
        long sum = 0;
        for (Shape source : sources) {
            sum = Math.addExact(sum, source.elementCount());
            writer.add(sum);
        }
    }

    /** Writes numbers one after the other. Confined. */
    private static final class Writer {
        private final DataType type;
        private final MemorySegment data;
        private long at;

        Writer(DataType type, MemorySegment data) {
            this.type = type;
            this.data = data;
        }

        /** Writes a number. Rounding is an error like overflow, since the number may be an index. */
        void add(long number) {
            boolean fits = type == DataType.INT32 ? number == (int) number : number == (long) (float) number;
            if (!fits) {
                throw new ArithmeticException(number + " does not fit " + type);
            }
            if (type == DataType.INT32) {
                data.set(INT32, at, (int) number);
            } else {
                data.set(FP32, at, (float) number);
            }
            at += type.byteSize();
        }
    }
}
