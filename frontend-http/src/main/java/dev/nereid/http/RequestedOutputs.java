package dev.nereid.http;

import java.util.BitSet;
import java.util.List;

/** The outputs that a request names, and how each is to be written. Immutable. */
final class RequestedOutputs {
    private static final RequestedOutputs ALL_JSON = new RequestedOutputs(List.of(), new BitSet(), false);
    private static final RequestedOutputs ALL_BINARY = new RequestedOutputs(List.of(), new BitSet(), true);

    private final List<String> names;
    private final BitSet binary;
    private final boolean binaryByDefault;

    private RequestedOutputs(List<String> names, BitSet binary, boolean binaryByDefault) {
        this.names = names;
        this.binary = binary;
        this.binaryByDefault = binaryByDefault;
    }

    /** Wants every output of the model, all written in one way. */
    static RequestedOutputs all(boolean binary) {
        return binary ? ALL_BINARY : ALL_JSON;
    }

    /** Wants some outputs; those at the places set in {@code binary} are to be written as bytes. Taken over as is. */
    static RequestedOutputs of(List<String> names, BitSet binary) {
        return new RequestedOutputs(names, binary, false);
    }

    /** Returns the names; empty for all. */
    List<String> names() {
        return names;
    }

    /** Says whether an output is to be written as bytes instead of JSON. */
    boolean isBinary(String name) {
        int place = names.isEmpty() ? -1 : names.indexOf(name);
        return place < 0 ? binaryByDefault : binary.get(place);
    }
}
