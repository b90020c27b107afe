package dev.nereid.http;

import dev.nereid.api.Quoted;

/** Pieces of text that errors of requests share. Immutable. */
final class RequestTexts {
    private RequestTexts() {}

    /** Returns what errors begin with that name the request. */
    static String prefix(String id) {
        return "[request id: " + (id.isEmpty() ? "<id_unknown>" : Quoted.text(id)) + "] ";
    }
}
