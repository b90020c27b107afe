package dev.nereid.http;

import io.vertx.core.http.HttpHeaders;

/** Content types of responses. Immutable. */
final class ContentTypes {
    static final CharSequence JSON = HttpHeaders.createOptimized("application/json");
    static final CharSequence TEXT = HttpHeaders.createOptimized("text/plain");
    static final CharSequence OCTET_STREAM = HttpHeaders.createOptimized("application/octet-stream");
    static final CharSequence EVENT_STREAM = HttpHeaders.createOptimized("text/event-stream; charset=utf-8");

    private ContentTypes() {}
}
