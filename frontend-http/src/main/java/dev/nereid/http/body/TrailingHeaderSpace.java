package dev.nereid.http.body;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.util.AttributeKey;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.net.impl.ConnectionBase;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Keeps the blanks at the end of header values, which the transport strips. Confined to the event loop of one
 * connection.
 *
 * <p>Used only if headers are forwarded, since it reads each byte of a header again. It keeps only names and blanks, so
 * that the transport's limit on headers bounds it too.
 */
public final class TrailingHeaderSpace {
    private static final AttributeKey<TrailingHeaderSpace> KEY =
            AttributeKey.valueOf(TrailingHeaderSpace.class, "blanks");

    /** The requests in progress, and one that is being decoded. */
    private static final int MAX_REQUESTS = RequestLimits.MAX_IN_PROGRESS + 1;

    private final ArrayDeque<TrimmedHeaders> requests = new ArrayDeque<>();

    /** The blanks of the current header. There is one text for each field of a name, by the name in lower case. */
    private Map<String, List<String>> found = new HashMap<>();

    /** The blanks of the last field, which may have more lines. Empty before the first field. */
    private List<String> last = List.of();

    private boolean readsHeader = true;
    private boolean hasRequestLine;

    /**
     * The blanks stripped from one request.
     *
     * @param headers the headers, which identify the request
     * @param blanks by the name of the header, in lower case; one text for each header of that name
     */
    private record TrimmedHeaders(Object headers, Map<String, List<String>> blanks) {}

    /** Enables this for a connection. */
    public static TrailingHeaderSpace begin(Channel connection) {
        TrailingHeaderSpace blanks = new TrailingHeaderSpace();
        connection.attr(KEY).set(blanks);
        return blanks;
    }

    /**
     * Returns the stripped blanks by the name of the header in lower case. There is one text for each header of that
     * name, in their order. Names without blanks are absent. Positions among all headers are of no use, since the
     * transport may remove a header or move it to the end.
     */
    public static Map<String, List<String>> of(HttpServerRequest request) {
        TrailingHeaderSpace kept =
                ((ConnectionBase) request.connection()).channel().attr(KEY).get();
        return kept == null ? Map.of() : kept.of(request.headers());
    }

    /** Returns the blanks stripped from the request with certain headers. */
    @SuppressWarnings("ReferenceEquality") // two requests may have the same headers
    Map<String, List<String>> of(Object headers) {
        for (TrimmedHeaders request : requests) {
            if (request.headers == headers) {
                return request.blanks;
            }
        }
        return Map.of();
    }

    /**
     * Reads decoded bytes. If they belong to the header of a request, they are whole lines, or control characters
     * before its first line.
     */
    public void decoded(ByteBuf bytes, int start, int end) {
        int from = start;
        while (readsHeader && from < end) {
            if (!hasRequestLine && isSkipped(bytes.getByte(from))) {
                from++;
                continue;
            }
            int lineEnd = bytes.indexOf(from, end, (byte) '\n');
            if (lineEnd < 0) {
                return;
            }
            boolean hasReturn = lineEnd > from && bytes.getByte(lineEnd - 1) == '\r';
            lineRead(bytes, from, hasReturn ? lineEnd - 1 : lineEnd);
            from = lineEnd + 1;
        }
    }

    /** Records that the header of a request was decoded. */
    public void headerRead(Object headers) {
        found.values().removeIf(blanks -> blanks.stream().allMatch(String::isEmpty));
        if (requests.size() == MAX_REQUESTS) {
            requests.remove();
        }
        requests.add(new TrimmedHeaders(headers, found.isEmpty() ? Map.of() : found));
        found = new HashMap<>();
        last = List.of();
        hasRequestLine = false;
        readsHeader = false;
    }

    /** Records that a request was decoded to its end. */
    public void requestRead() {
        readsHeader = true;
    }

    /** Records that the response to the oldest request was written. */
    public void responseWritten() {
        requests.poll();
    }

    /** Keeps the blanks at the end of a line. Of a value of several lines, the blanks of the last line are kept. */
    private void lineRead(ByteBuf bytes, int start, int end) {
        if (start == end) {
            return;
        }
        if (!hasRequestLine) {
            hasRequestLine = true;
            return;
        }
        int valueStart = start;
        if (last.isEmpty() || !isBlank(bytes.getByte(start))) {
            int colon = bytes.indexOf(start, end, (byte) ':');
            int nameEnd = colon < 0 ? end : colon;
            valueStart = Math.min(nameEnd + 1, end);
            String name = bytes.toString(start, nameEnd - start, StandardCharsets.ISO_8859_1);
            last = found.computeIfAbsent(name.toLowerCase(Locale.ROOT), first -> new ArrayList<>(1));
            last.add("");
        }
        int valueEnd = end;
        while (valueEnd > valueStart && isBlank(bytes.getByte(valueEnd - 1))) {
            valueEnd--;
        }
        boolean hasValue = valueEnd > valueStart;
        last.set(
                last.size() - 1, hasValue ? bytes.toString(valueEnd, end - valueEnd, StandardCharsets.ISO_8859_1) : "");
    }

    /** Returns whether the transport skips a byte before the first line of a request. */
    private static boolean isSkipped(byte next) {
        return Character.isISOControl(next & 0xFF) || next == ' ';
    }

    private static boolean isBlank(byte character) {
        return character == ' ' || character == '\t';
    }
}
