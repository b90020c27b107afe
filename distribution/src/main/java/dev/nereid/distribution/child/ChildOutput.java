package dev.nereid.distribution.child;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.vertx.core.json.DecodeException;
import io.vertx.core.json.JsonObject;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * Reads the standard output of a child process: passes messages to their receiver, keeps what a JVM says about a fatal
 * error, and copies the rest. Confined to one thread, except {@link #fatalError()}.
 */
final class ChildOutput {
    private static final int MAX_LINE = 8192;

    /** A line that may contain a message is read to its end. */
    private static final int MAX_MARKED_LINE = 4 * MAX_LINE;

    private static final int MAX_FATAL_ERROR = 65_536;
    private static final String FATAL = "# A fatal error has been detected by the Java Runtime Environment";
    private static final String NO_MEMORY = "# There is insufficient memory for the Java Runtime Environment";
    private static final String EMPTY_COMMENT = "#";

    private final PrintStream out;
    private final byte[] mark;
    private final Consumer<JsonObject> messages;
    private final ByteArrayOutputStream line = new ByteArrayOutputStream();
    private final StringBuilder fatalError = new StringBuilder();
    private volatile String readFatalError = "";
    private boolean held;
    private boolean marked;

    /** Creates a reader, which copies all output except messages and fatal errors to {@code out}. */
    ChildOutput(PrintStream out, String mark, Consumer<JsonObject> messages) {
        this.out = out;
        this.mark = mark.getBytes(UTF_8);
        this.messages = messages;
    }

    /** Reads to the end. Blocks. */
    void read(InputStream in) throws IOException {
        byte[] chunk = new byte[MAX_LINE];
        for (int count = in.read(chunk); count >= 0; count = in.read(chunk)) {
            for (int i = 0; i < count; i++) {
                add(chunk[i]);
            }
            out.flush();
            readFatalError = fatalError.toString();
        }
        end();
        release();
        out.flush();
        readFatalError = fatalError.toString();
    }

    /** Returns what the JVM of the child says about a fatal error; empty for none. Any thread may call it. */
    String fatalError() {
        return readFatalError;
    }

    private void add(byte next) {
        line.write(next);
        marked |= next == mark[0];
        if (next == '\n' || line.size() >= (marked ? MAX_MARKED_LINE : MAX_LINE)) {
            end();
        }
    }

    /** Passes a line on. A message may follow other output without a line break. */
    private void end() {
        byte[] bytes = line.toByteArray();
        line.reset();
        marked = false;
        int start = indexOfMark(bytes);
        if (start < 0) {
            pass(bytes);
            return;
        }
        if (start > 0) {
            pass(Arrays.copyOf(bytes, start));
        }
        try {
            messages.accept(
                    new JsonObject(new String(bytes, start + mark.length, bytes.length - start - mark.length, UTF_8)));
        } catch (DecodeException e) {
            pass(Arrays.copyOfRange(bytes, start, bytes.length)); // of a process that ended meanwhile
        }
    }

    private int indexOfMark(byte[] bytes) {
        for (int i = 0; i + mark.length <= bytes.length; i++) {
            if (Arrays.equals(bytes, i, i + mark.length, mark, 0, mark.length)) {
                return i;
            }
        }
        return -1;
    }

    private void pass(byte[] bytes) {
        String text = new String(bytes, UTF_8);
        if (!fatalError.isEmpty()) {
            if (fatalError.length() < MAX_FATAL_ERROR) {
                fatalError.append(text);
            }
        } else if (text.startsWith(FATAL) || text.startsWith(NO_MEMORY)) {
            held = false;
            fatalError.append(text);
        } else {
            release();
            if (text.strip().equals(EMPTY_COMMENT)) { // begins the text of a fatal error
                held = true;
            } else {
                out.write(bytes, 0, bytes.length);
            }
        }
    }

    private void release() {
        if (held) {
            held = false;
            out.print(EMPTY_COMMENT + "\n");
        }
    }
}
