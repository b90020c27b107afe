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
 * @param bodyLength the size of the body, or {@link #UNKNOWN} if it is chunked
 * @param jsonLength the size of the JSON at its start; {@link #UNKNOWN} if all of it is JSON, 0 if none is
 * @param coding the content coding of the body; {@code bodyLength} is the size with it, {@code jsonLength} without it
 */
public record RequestBodyHeaders(long bodyLength, long jsonLength, ContentCoding coding) {
    public static final long UNKNOWN = -1;

    public static final CharSequence JSON_LENGTH = HttpHeaders.createOptimized("Inference-Header-Content-Length");

    /** The maximum that a coding adds to incompressible data, besides a fraction of it. */
    private static final long CODING_OVERHEAD = 4096;

    private static final long CODING_DIVISOR = 1024;

    /** The alignment of tensors in bytes, a power of two. */
    private static final long ALIGNMENT = 64;

    private static final CharSequence SUPPORTED_CODINGS = HttpHeaders.createOptimized("gzip, deflate");

    /**
     * Reads the headers.
     *
     * @throws InferenceException if they contradict each other, or declare more than is accepted
     */
    public static RequestBodyHeaders of(HttpServerRequest request, BodyLimits limits) {
        ContentCoding coding = ContentCoding.ofBody(request.getHeader(HttpHeaders.CONTENT_ENCODING))
                .orElseThrow(() -> unsupportedCoding(request));
        RequestBodyHeaders headers =
                new RequestBodyHeaders(bodyLength(request), jsonLength(request.getHeader(JSON_LENGTH)), coding);
        if (headers.bodyLength != UNKNOWN) {
            if (coding == ContentCoding.IDENTITY) {
                headers.checkJsonLength(headers.bodyLength);
            }
            headers.checkLimits(headers.bodyLength, limits);
        }
        return headers;
    }

    /** Returns whether the headers declare tensors behind the JSON, or in its place. */
    static boolean isBinary(HttpServerRequest request) {
        return request.headers().contains(JSON_LENGTH);
    }

    /**
     * Reads the headers of a request with a body that is all JSON.
     *
     * @throws InferenceException if they declare more than is accepted
     */
    static RequestBodyHeaders ofJson(HttpServerRequest request, BodyLimits limits) {
        RequestBodyHeaders headers = new RequestBodyHeaders(bodyLength(request), UNKNOWN, ContentCoding.IDENTITY);
        if (headers.bodyLength != UNKNOWN) {
            headers.checkLimits(headers.bodyLength, limits);
        }
        return headers;
    }

    /** Returns the number of JSON bytes in a body. 0 means that the body is the data of the only input. */
    public long jsonLength(long received) {
        checkJsonLength(received);
        return jsonLength == UNKNOWN ? received : jsonLength;
    }

    /** Returns the number of bytes before the body in aligned memory that align the tensor behind its JSON. */
    long alignmentOffset() {
        return jsonLength == UNKNOWN ? 0 : -jsonLength & (ALIGNMENT - 1);
    }

    /** Checks a body size against the limits. It is the size of the body, or of the part received so far. */
    void checkLimits(long size, BodyLimits limits) {
        long json = jsonLength == UNKNOWN && coding == ContentCoding.IDENTITY ? size : jsonLength;
        if (json > limits.maxJsonBytes()) {
            throw InferenceException.tooLarge(
                    "request JSON size of " + json + " bytes exceeds the maximum allowed input size of "
                            + limits.maxJsonBytes() + " bytes. Use --http-max-input-size to increase the limit.");
        }
        if (size > maxReceivedBytes(limits)) {
            throw InferenceException.tooLarge((jsonLength == 0 ? "Raw input has a byte_size (" : "request has a size (")
                    + size + " bytes) that exceeds the maximum allowed value of " + limits.maxRequestBytes()
                    + " bytes." + advice(limits.maxRequestBytes(), limits));
        }
    }

    /** Returns the maximum size of the body as received. Incompressible data grows a little by its coding. */
    private long maxReceivedBytes(BodyLimits limits) {
        long maxBytes = limits.maxRequestBytes();
        return coding == ContentCoding.IDENTITY ? maxBytes : maxBytes + CODING_OVERHEAD + maxBytes / CODING_DIVISOR;
    }

    long maxInflatedBytes(BodyLimits limits) {
        return jsonLength == UNKNOWN ? limits.maxJsonBytes() : limits.maxRequestBytes();
    }

    /** Returns the error of a body that exceeds {@link #maxInflatedBytes}. */
    InferenceException inflatedTooLarge(BodyLimits limits) {
        return InferenceException.tooLarge("Decompressed data size exceeds the maximum allowed value of "
                + maxInflatedBytes(limits) + " bytes." + advice(maxInflatedBytes(limits), limits));
    }

    /** Names the flag of the exceeded limit; for equal limits that of JSON. */
    private static String advice(long exceeded, BodyLimits limits) {
        String flag = exceeded == limits.maxJsonBytes() ? "input" : "request";
        return " Use --http-max-" + flag + "-size to increase the limit.";
    }

    private void checkJsonLength(long size) {
        if (jsonLength > size || jsonLength < UNKNOWN) {
            long declared = jsonLength < UNKNOWN ? jsonLength - UNKNOWN : jsonLength;
            throw JsonFields.invalid("inference header size should be in range (0, " + size + "), got: " + declared);
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

    /** Parses the number at the beginning of a text, as the reference server does. */
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
            // The reference server quotes the blank before an empty value.
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
        // A negative length must differ from an absent one.
        return length < 0 ? length + UNKNOWN : length;
    }
}
