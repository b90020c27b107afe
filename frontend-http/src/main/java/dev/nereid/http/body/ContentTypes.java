package dev.nereid.http.body;

import io.vertx.core.http.HttpHeaders;

/** Content types of responses. Immutable. */
public final class ContentTypes {
    public static final CharSequence JSON = HttpHeaders.createOptimized("application/json");
    public static final CharSequence TEXT = HttpHeaders.createOptimized("text/plain");
    public static final CharSequence OCTET_STREAM = HttpHeaders.createOptimized("application/octet-stream");
    public static final CharSequence EVENT_STREAM = HttpHeaders.createOptimized("text/event-stream; charset=utf-8");

    private ContentTypes() {}
}
