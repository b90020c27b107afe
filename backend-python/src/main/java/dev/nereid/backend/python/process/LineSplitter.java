package dev.nereid.backend.python.process;

/**
 * Splits bytes into lines. Holds at most the first bytes of one line. Confined to one thread.
 *
 * <p>Lines end with a line feed, with or without carriage returns before it. What a carriage return alone ends is an
 * update: the next text overwrites it, as programs do that show their progress.
 */
final class LineSplitter {
    /** The number of bytes of a line that are kept. */
    static final int MAX_LINE = 8 << 10;

    private final Lines lines;
    private final byte[] line = new byte[MAX_LINE];
    private int length;
    private long more;
    private boolean returned;

    /** Receives lines. */
    @FunctionalInterface
    interface Lines {
        /**
         * Receives a line.
         *
         * @param bytes holds its first bytes, valid during the call
         * @param length the number of them
         * @param more the number of the bytes that were cut off
         * @param update whether the next line overwrites it
         */
        void line(byte[] bytes, int length, long more, boolean update);
    }

    /** Creates a splitter, which calls {@code lines} during the calls of this object. */
    LineSplitter(Lines lines) {
        this.lines = lines;
    }

    void add(byte[] bytes, int count) {
        int start = 0;
        while (start < count) {
            byte b = bytes[start];
            if (b == '\n') {
                end(false);
                start++;
            } else if (b == '\r') {
                returned = true;
                start++;
            } else {
                if (returned) {
                    end(true);
                }
                int end = start + 1;
                while (end < count && bytes[end] != '\n' && bytes[end] != '\r') {
                    end++;
                }
                append(bytes, start, end);
                start = end;
            }
        }
    }

    /** Ends the last line, which has no line feed. */
    void end() {
        if (length > 0) {
            end(false);
        }
    }

    private void append(byte[] bytes, int start, int end) {
        int kept = Math.min(end - start, MAX_LINE - length);
        System.arraycopy(bytes, start, line, length, kept);
        length += kept;
        more += end - start - kept;
    }

    private void end(boolean update) {
        int ended = length;
        long cut = more;
        length = 0;
        more = 0;
        returned = false;
        lines.line(line, ended, cut, update);
    }
}
