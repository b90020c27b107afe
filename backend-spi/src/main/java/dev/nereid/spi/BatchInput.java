package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.util.List;

/**
 * An input that the server derives from the requests of a batch ({@code batch_input}). A backend finds it with {@link
 * Batch#gather}, under each of its names, like any other input. Immutable.
 *
 * @param kind the meaning of its elements
 * @param names the names under which the backend finds it; at least one
 * @param type the type of its elements: {@link DataType#INT32} or {@link DataType#FP32}
 * @param source the name of the input from which it is derived
 * @since 1.0
 */
public record BatchInput(Kind kind, List<String> names, DataType type, String source) {
    /** Kinds of derived inputs. Open: later versions may add constants. */
    public enum Kind {
        /** The number of elements of the source in each request: {@code [requests]}. */
        ELEMENT_COUNT,
        /** The number of elements up to the end of each request: {@code [requests]}. */
        ACCUMULATED_ELEMENT_COUNT,
        /** The same with a 0 in front: {@code [requests + 1]}. */
        ACCUMULATED_ELEMENT_COUNT_WITH_ZERO,
        /** The largest number of elements in one request, as the shape {@code [largest]} of undefined content. */
        MAX_ELEMENT_COUNT_AS_SHAPE,
        /** The shape of the source for each item, without batch dimension: {@code [items, rank]}. */
        ITEM_SHAPE,
        /** The same in one dimension: {@code [items * rank]}. */
        ITEM_SHAPE_FLATTEN
    }

    /** Checks and copies the components. */
    public BatchInput {
        requireNonNull(kind, "kind");
        names = List.copyOf(names);
        requireNonNull(type, "type");
        requireNonNull(source, "source");
        if (names.isEmpty()) {
            throw new IllegalArgumentException("names: none (expected: at least one)");
        }
        if (type != DataType.INT32 && type != DataType.FP32) {
            throw new IllegalArgumentException("type: " + type + " (expected: INT32 or FP32)");
        }
    }
}
