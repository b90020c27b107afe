package dev.nereid.http;

/**
 * The elements of a tensor's data in a valid JSON text, however they are nested, in row-major order. Confined to the
 * thread that reads a request.
 */
final class JsonElements {
    private static final int MAX_DEPTH = 100;

    private final JsonReader json;
    private int depth;
    private long index = -1;

    /**
     * Starts before the first element.
     *
     * @param json moved to the opening bracket of the outermost array
     */
    JsonElements(JsonReader json) {
        this.json = json;
    }

    /**
     * Moves to the next element, which is anything but an array; the one before must have been read.
     *
     * @return {@code false} if there is none
     */
    boolean next() {
        for (; ; ) {
            json.skipSpace();
            switch (json.peek()) {
                case ',' -> json.take();
                case ']' -> {
                    json.take();
                    if (--depth == 0) {
                        return false;
                    }
                }
                case '[' -> {
                    checkDepth();
                    json.take();
                    depth++;
                }
                default -> {
                    checkDepth();
                    index++;
                    return true;
                }
            }
        }
    }

    /** Takes note of elements that were read after the current one. */
    void passOver(long elements) {
        index += elements;
    }

    /** Returns the place of the element in the tensor. */
    long index() {
        return index;
    }

    private void checkDepth() {
        if (depth >= MAX_DEPTH) {
            throw JsonFields.invalid(
                    "Unable to parse 'data': JSON nesting depth exceeds maximum allowed limit (" + MAX_DEPTH + ")");
        }
    }
}
