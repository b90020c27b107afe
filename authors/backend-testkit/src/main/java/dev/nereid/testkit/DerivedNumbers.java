package dev.nereid.testkit;

import dev.nereid.spi.BatchInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** Reference implementation of batch inputs: derives numbers from the shapes of an input. Static functions only. */
final class DerivedNumbers {
    private DerivedNumbers() {}

    static Shape shape(BatchInput.Kind kind, List<Shape> sources, boolean batched) {
        return switch (kind) {
            case MAX_ELEMENT_COUNT_AS_SHAPE ->
                Shape.of(sources.stream().mapToLong(Shape::elementCount).max().orElse(0));
            case ITEM_SHAPE -> {
                int rank = sources.getFirst().rank() - (batched ? 1 : 0);
                long items = sources.stream()
                        .mapToLong(source -> batched ? source.dim(0) : 1)
                        .sum();
                yield Shape.of(items, rank);
            }
            case ELEMENT_COUNT, ACCUMULATED_ELEMENT_COUNT, ACCUMULATED_ELEMENT_COUNT_WITH_ZERO, ITEM_SHAPE_FLATTEN ->
                Shape.of(numbers(kind, sources, batched).size());
        };
    }

    /** Returns the elements of a derived input; none where they are undefined. */
    static List<Long> numbers(BatchInput.Kind kind, List<Shape> sources, boolean batched) {
        List<Long> numbers = new ArrayList<>();
        if (kind == BatchInput.Kind.ACCUMULATED_ELEMENT_COUNT_WITH_ZERO) {
            numbers.add(0L);
        }
        long sum = 0;
        for (Shape source : sources) {
            long count = source.elementCount();
            sum += count;
            switch (kind) {
                case ELEMENT_COUNT -> numbers.add(count);
                case ACCUMULATED_ELEMENT_COUNT, ACCUMULATED_ELEMENT_COUNT_WITH_ZERO -> numbers.add(sum);
                case MAX_ELEMENT_COUNT_AS_SHAPE -> {}
                case ITEM_SHAPE, ITEM_SHAPE_FLATTEN -> addShape(numbers, source, batched);
            }
        }
        return numbers;
    }

    private static void addShape(List<Long> numbers, Shape source, boolean batched) {
        Shape item = batched ? source.dropFirst() : source;
        for (long i = 0; i < (batched ? source.dim(0) : 1); i++) {
            for (long dim : item.toArray()) {
                numbers.add(dim);
            }
        }
    }

    /** Writes elements one after the other. */
    static void write(List<Long> numbers, DataType type, MemorySegment data) {
        long at = 0;
        for (long number : numbers) {
            if (type == DataType.INT32) {
                data.set(
                        ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN), at, Math.toIntExact(number));
            } else {
                data.set(ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN), at, (float) number);
            }
            at += type.byteSize();
        }
    }
}
