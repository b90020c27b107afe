package dev.nereid.http.infer;

import dev.nereid.api.Quoted;

/** Prefix of error texts that name the request. Immutable. */
final class RequestTexts {
    private RequestTexts() {}

    /** Returns what errors begin with that name the request. */
    static String prefix(String id) {
        return "[request id: " + (id.isEmpty() ? "<id_unknown>" : Quoted.text(id)) + "] ";
    }
}
