package dev.nereid.http.infer;

import dev.nereid.api.RequestedOutput;
import java.util.List;

/** Requested outputs and the format of each. Immutable. */
final class RequestedOutputs {
    /** The format of an output: JSON, binary or shared memory. */
    enum Format {
        /** Numbers or strings in the JSON. */
        JSON,
        /** Bytes behind the JSON. */
        BINARY,
        /** Bytes in shared memory. */
        SHARED
    }

    private static final RequestedOutputs ALL_JSON = new RequestedOutputs(List.of(), List.of(), Format.JSON);
    private static final RequestedOutputs ALL_BINARY = new RequestedOutputs(List.of(), List.of(), Format.BINARY);

    private final List<RequestedOutput> requested;
    private final List<Format> formats;
    private final Format defaultFormat;

    private RequestedOutputs(List<RequestedOutput> requested, List<Format> formats, Format defaultFormat) {
        this.requested = requested;
        this.formats = formats;
        this.defaultFormat = defaultFormat;
    }

    /** Requests every output of the model, all in one format. */
    static RequestedOutputs all(boolean binary) {
        return binary ? ALL_BINARY : ALL_JSON;
    }

    /** Requests some outputs, each in the format at the same index. Keeps the lists without copying them. */
    static RequestedOutputs of(List<RequestedOutput> requested, List<Format> formats) {
        return new RequestedOutputs(requested, formats, Format.JSON);
    }

    /** Returns the requested outputs; empty for all. */
    List<RequestedOutput> requested() {
        return requested;
    }

    boolean hasSharedMemoryOutputs() {
        return formats.contains(Format.SHARED);
    }

    Format format(String name) {
        for (int i = 0; i < requested.size(); i++) {
            if (requested.get(i).name().equals(name)) {
                return formats.get(i);
            }
        }
        return defaultFormat;
    }
}
