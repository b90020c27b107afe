package dev.nereid.http.body;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.http.json.JsonFields;
import dev.nereid.spi.ErrorCode;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;

/**
 * Header fields that describe a request body: length, JSON length and coding. Immutable.
 *
 * @param bodyLength the size of the body, or {@link #UNKNOWN} if it comes in chunks
 * @param jsonLength the size of the JSON at its start; {@link #UNKNOWN} if all of it is JSON, 0 if none is
 * @param coding how the body is coded; its length is that of the coded body, the JSON's is not
 */
public record RequestBodyHeaders(long bodyLength, long jsonLength, ContentCoding coding) {
    public static final long UNKNOWN = -1;

    public static final CharSequence JSON_LENGTH = HttpHeaders.createOptimized("Inference-Header-Content-Length");

    /** What a coding adds to data at most that it cannot compress, besides a part of it. */
    private static final long CODING_OVERHEAD = 4096;

    private static final long CODING_PART = 1024;

    private static final CharSequence SUPPORTED_CODINGS = HttpHeaders.createOptimized("gzip, deflate");

    /**
     * Reads the headers.
     *
     * @throws InferenceException if they contradict each other, or announce more than is accepted
     */
    public static RequestBodyHeaders of(HttpServerRequest request, BodyLimits limits) {
        ContentCoding coding = ContentCoding.ofBody(request.getHeader(HttpHeaders.CONTENT_ENCODING))
                .orElseThrow(() -> unsupportedCoding(request));
        RequestBodyHeaders head =
                new RequestBodyHeaders(bodyLength(request), jsonLength(request.getHeader(JSON_LENGTH)), coding);
        if (head.bodyLength != UNKNOWN) {
            if (coding == ContentCoding.IDENTITY) {
                head.checkJsonLength(head.bodyLength);
            }
            head.checkLimits(head.bodyLength, limits);
        }
        return head;
    }

    /** Says whether the headers announce tensors behind the JSON, or in its place. */
    static boolean isBinary(HttpServerRequest request) {
        return request.headers().contains(JSON_LENGTH);
    }

    /**
     * Reads the headers of a request whose body is all JSON.
     *
     * @throws InferenceException if they announce more than is accepted
     */
    static RequestBodyHeaders ofJson(HttpServerRequest request, BodyLimits limits) {
        RequestBodyHeaders head = new RequestBodyHeaders(bodyLength(request), UNKNOWN, ContentCoding.IDENTITY);
        if (head.bodyLength != UNKNOWN) {
            head.checkLimits(head.bodyLength, limits);
        }
        return head;
    }

    /** Returns how many bytes of a body are JSON; 0 means that the body is the data of the only input. */
    public long jsonLength(long received) {
        checkJsonLength(received);
        return jsonLength == UNKNOWN ? received : jsonLength;
    }

    /** Checks that the body is not larger than is accepted; its size may be what was received so far. */
    void checkLimits(long size, BodyLimits limits) {
        long json = jsonLength == UNKNOWN && coding == ContentCoding.IDENTITY ? size : jsonLength;
        if (json > limits.maxJsonBytes()) {
            throw InferenceException.tooLarge(
                    "request JSON size of " + json + " bytes exceeds the maximum allowed input size of "
                            + limits.maxJsonBytes() + " bytes. Use --http-max-input-size to increase the limit.");
        }
        if (size > mostReceived(limits)) {
            throw InferenceException.tooLarge((jsonLength == 0 ? "Raw input has a byte_size (" : "request has a size (")
                    + size + " bytes) that exceeds the maximum allowed value of " + limits.maxRequestBytes()
                    + " bytes." + advice(limits.maxRequestBytes(), limits));
        }
    }

    /** Returns how large the body may be as it comes; what cannot be compressed grows a little when it is coded. */
    private long mostReceived(BodyLimits limits) {
        long most = limits.maxRequestBytes();
        return coding == ContentCoding.IDENTITY ? most : most + CODING_OVERHEAD + most / CODING_PART;
    }

    /** Returns how large the body may become when it is inflated. */
    long maxInflatedBytes(BodyLimits limits) {
        return jsonLength == UNKNOWN ? limits.maxJsonBytes() : limits.maxRequestBytes();
    }

    /** Returns the error of a body that becomes larger. */
    InferenceException inflatedTooLarge(BodyLimits limits) {
        return InferenceException.tooLarge("Decompressed data size exceeds the maximum allowed value of "
                + maxInflatedBytes(limits) + " bytes." + advice(maxInflatedBytes(limits), limits));
    }

    /** Names the flag of the limit that was exceeded; equal limits are raised by that of text. */
    private static String advice(long exceeded, BodyLimits limits) {
        String flag = exceeded == limits.maxJsonBytes() ? "input" : "request";
        return " Use --http-max-" + flag + "-size to increase the limit.";
    }

    private void checkJsonLength(long size) {
        if (jsonLength > size || jsonLength < UNKNOWN) {
            long announced = jsonLength < UNKNOWN ? jsonLength - UNKNOWN : jsonLength;
            throw JsonFields.invalid("inference header size should be in range (0, " + size + "), got: " + announced);
        }
    }

    private static InferenceException unsupportedCoding(HttpServerRequest request) {
        request.response().putHeader(HttpHeaders.ACCEPT_ENCODING, SUPPORTED_CODINGS);
        return new InferenceException(ErrorCode.UNSUPPORTED, "Unsupported compression type");
    }

    private static long bodyLength(HttpServerRequest request) {
        String length = request.getHeader(HttpHeaders.CONTENT_LENGTH);
        if (length != null) {
            try {
                return Long.parseLong(length);
            } catch (NumberFormatException e) {
                throw JsonFields.invalid("Unable to parse Content-Length, got: " + Quoted.text(length));
            }
        }
        return request.getHeader(HttpHeaders.TRANSFER_ENCODING) == null ? 0 : UNKNOWN;
    }

    /** Reads the number that a text begins with, as the reference server does. */
    private static long jsonLength(String header) {
        if (header == null) {
            return UNKNOWN;
        }
        String text = header.strip();
        int digits = text.startsWith("-") || text.startsWith("+") ? 1 : 0;
        int end = digits;
        while (end < text.length() && text.charAt(end) >= '0' && text.charAt(end) <= '9') {
            end++;
        }
        if (end == digits) {
            // Of an empty value the reference server sees the blank before it.
            throw JsonFields.invalid("Unable to parse Inference-Header-Content-Length, got: "
                    + (header.isEmpty() ? " " : Quoted.text(header)));
        }
        long length;
        try {
            length = Integer.parseInt(text, 0, end, 10);
        } catch (NumberFormatException e) {
            throw JsonFields.invalid("Unable to parse Inference-Header-Content-Length, value is out of range [ "
                    + Integer.MIN_VALUE + ", " + Integer.MAX_VALUE + " ], got: " + Quoted.text(header));
        }
        // A negative length is wrong; it must not look like an absent one.
        return length < 0 ? length + UNKNOWN : length;
    }
}
