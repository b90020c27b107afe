package dev.nereid.http;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.util.AttributeKey;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.net.impl.ConnectionBase;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;

/**
 * Keeps the blanks at the end of header values, which the transport cuts off. Confined to the event loop of one connection.
 *
 * <p>Only for front ends that pass headers on, since it looks at each byte of a header again.
 */
final class HeaderBlanks {
    private static final AttributeKey<HeaderBlanks> KEY = AttributeKey.valueOf(HeaderBlanks.class, "blanks");

    /** The requests that may be in progress, and one that is decoded. */
    private static final int MAX_REQUESTS = ServerConnection.MAX_IN_PROGRESS + 1;

    private final ByteArrayOutputStream head = new ByteArrayOutputStream();
    private final ArrayDeque<Request> requests = new ArrayDeque<>();
    private boolean readsHead = true;

    /**
     * What was cut off in one request.
     *
     * @param headers its headers, by which it is found
     * @param blanks by the index of the header
     */
    private record Request(Object headers, Map<Integer, String> blanks) {}

    /** Begins to keep the blanks of a connection. */
    static HeaderBlanks begin(Channel connection) {
        HeaderBlanks blanks = new HeaderBlanks();
        connection.attr(KEY).set(blanks);
        return blanks;
    }

    /** Returns the blanks that were cut off, by the index of the header. */
    @SuppressWarnings("ReferenceEquality") // two requests may have the same headers
    static Map<Integer, String> of(HttpServerRequest request) {
        HeaderBlanks kept =
                ((ConnectionBase) request.connection()).channel().attr(KEY).get();
        if (kept != null) {
            for (Request known : kept.requests) {
                if (known.headers == request.headers()) {
                    return known.blanks;
                }
            }
        }
        return Map.of();
    }

    /** Takes note of bytes that were decoded; whole lines, if they belong to the head of a request. */
    void decoded(ByteBuf bytes, int start, int end) {
        if (!readsHead || start == end) {
            return;
        }
        try {
            bytes.getBytes(start, head, end - start);
        } catch (IOException e) {
            throw new IllegalStateException("memory of the heap failed", e);
        }
    }

    /** The head of a request was decoded. */
    void headRead(Object headers) {
        Map<Integer, String> blanks = find(head.toString(StandardCharsets.ISO_8859_1));
        head.reset();
        readsHead = false;
        if (!blanks.isEmpty()) {
            if (requests.size() == MAX_REQUESTS) {
                requests.remove();
            }
            requests.add(new Request(headers, blanks));
        }
    }

    /** A request was decoded to its end. */
    void requestRead() {
        readsHead = true;
    }

    /** Finds the blanks behind the values of a head; of a value of several lines, behind the last one. */
    private static Map<Integer, String> find(String head) {
        Map<Integer, String> blanks = new HashMap<>();
        String[] lines = head.stripLeading().split("\r?\n", -1);
        int index = -1;
        for (int i = 1; i < lines.length && !lines[i].isEmpty(); i++) {
            String line = lines[i];
            int start = 0;
            if (!isBlank(line.charAt(0))) {
                index++;
                start = line.indexOf(':') + 1;
            }
            int end = line.length();
            while (end > start && isBlank(line.charAt(end - 1))) {
                end--;
            }
            if (end < line.length() && end > start) {
                blanks.put(index, line.substring(end));
            } else {
                blanks.remove(index);
            }
        }
        return blanks;
    }

    private static boolean isBlank(char character) {
        return character == ' ' || character == '\t';
    }
}
