package dev.nereid.http.json;

/**
 * Iterates over the elements of nested JSON arrays in row-major order. Confined to the thread that reads a request.
 *
 * <p>The text need not be valid: the syntax between the elements is checked here.
 */
final class JsonElements {
    private static final int MAX_DEPTH = 100;

    /** The tokens that are valid next. */
    private enum Next {
        /** An element or an array. */
        VALUE,
        /** The same, or the end of the array. */
        VALUE_OR_END,
        /** A comma or the end of the array. */
        COMMA_OR_END
    }

    private final JsonReader json;
    private Next next = Next.VALUE;
    private int depth;
    private long index = -1;

    /** Creates an iterator before the first element, with a reader at the outermost array's opening bracket. */
    JsonElements(JsonReader json) {
        this.json = json;
    }

    /** Moves to the next element, anything but an array; {@code false} if none. The one before must have been read. */
    boolean next() {
        for (; ; ) {
            json.skipSpace();
            switch (json.peek()) {
                case ',' -> {
                    require(next == Next.COMMA_OR_END);
                    json.take();
                    next = Next.VALUE;
                }
                case ']' -> {
                    require(next != Next.VALUE);
                    json.take();
                    next = Next.COMMA_OR_END;
                    if (--depth == 0) {
                        return false;
                    }
                }
                case '[' -> {
                    require(next != Next.COMMA_OR_END);
                    checkDepth();
                    json.take();
                    next = Next.VALUE_OR_END;
                    depth++;
                }
                default -> {
                    require(next != Next.COMMA_OR_END);
                    checkDepth();
                    next = Next.COMMA_OR_END;
                    index++;
                    return true;
                }
            }
        }
    }

    /** Records that further elements were read. Each has the comma before it; a final comma was read as well. */
    void skip(long elements) {
        index += elements;
        next = Next.VALUE;
    }

    /** Returns the index of the element in the tensor. */
    long index() {
        return index;
    }

    private void require(boolean valid) {
        if (!valid) {
            throw JsonErrors.value(
                    "Unable to parse 'data': invalid array",
                    json.path().to("data"),
                    "elements and arrays with commas between them",
                    json.describeValue());
        }
    }

    private void checkDepth() {
        if (depth >= MAX_DEPTH) {
            throw JsonFields.invalid(
                    "Unable to parse 'data': JSON nesting depth exceeds maximum allowed limit (" + MAX_DEPTH + ")");
        }
    }
}
