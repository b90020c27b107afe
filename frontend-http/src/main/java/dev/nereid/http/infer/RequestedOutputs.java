package dev.nereid.http.infer;

import dev.nereid.api.RequestedOutput;
import java.util.List;

/** Requested outputs and the format of each. Immutable. */
final class RequestedOutputs {
    /** The format of an output: JSON, binary or shared memory. */
    enum Format {
        /** As numbers or texts in the JSON. */
        JSON,
        /** As bytes behind the JSON. */
        BINARY,
        /** In memory that the client shares. */
        SHARED
    }

    private static final RequestedOutputs ALL_JSON = new RequestedOutputs(List.of(), List.of(), Format.JSON);
    private static final RequestedOutputs ALL_BINARY = new RequestedOutputs(List.of(), List.of(), Format.BINARY);

    private final List<RequestedOutput> requested;
    private final List<Format> formats;
    private final Format defaultFormat;

    private RequestedOutputs(List<RequestedOutput> wanted, List<Format> forms, Format formByDefault) {
        this.requested = wanted;
        this.formats = forms;
        this.defaultFormat = formByDefault;
    }

    /** Wants every output of the model, all written in one way. */
    static RequestedOutputs all(boolean binary) {
        return binary ? ALL_BINARY : ALL_JSON;
    }

    /** Wants some outputs, each in the form at the same place. Taken over as they are. */
    static RequestedOutputs of(List<RequestedOutput> wanted, List<Format> forms) {
        return new RequestedOutputs(wanted, forms, Format.JSON);
    }

    /** Returns the outputs wanted; empty for all. */
    List<RequestedOutput> requested() {
        return requested;
    }

    /** Says whether an output is wanted in memory that the client shares. */
    boolean hasSharedMemoryOutputs() {
        return formats.contains(Format.SHARED);
    }

    /** Returns how an output is to be written. */
    Format format(String name) {
        for (int i = 0; i < requested.size(); i++) {
            if (requested.get(i).name().equals(name)) {
                return formats.get(i);
            }
        }
        return defaultFormat;
    }
}
